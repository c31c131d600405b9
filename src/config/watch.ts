/** Whether files changed, seen by looking: editors replace a file, shared folders send no events, and a look at a small file costs nothing. */
import { createHash } from 'node:crypto';
import { open, stat } from 'node:fs/promises';
import type { Clock, Timer } from '../base/clock.js';
import { FILE_BYTES_MAX } from './tree.js';

/** Milliseconds between two looks. A change is taken when two looks in a row saw the same, so that half a file never is. */
export const LOOK_EVERY_MS = 500;
/** A file may change twice within one tick of its clock; one that was written so lately is read again. */
const FRESH_MS = 3_000;

export interface FileWatchOptions {
  readonly clock: Clock;
  /** Asked at every look: the files that count now. */
  readonly paths: () => readonly string[];
  /** What a file holds, as a digest. @default a SHA-256, read again only when the file may have changed */
  readonly digestOf?: (path: string) => Promise<string>;
  /** The files now hold something else, or the watch has just begun. */
  readonly changed: () => void;
}

export class FileWatch {
  readonly #options: FileWatchOptions;
  readonly #digestOf: (path: string) => Promise<string>;
  #taken: string | null = null;
  #seen: string | null = null;
  #timer: Timer | null = null;
  #stopped = false;

  constructor(options: FileWatchOptions) {
    this.#options = options;
    const digests = new FileDigests(options.clock);
    this.#digestOf = options.digestOf ?? ((path) => digests.of(path));
    this.#next();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  #next(): void {
    if (this.#stopped) return;
    this.#timer = this.#options.clock.after(LOOK_EVERY_MS, () => void this.#look());
  }

  async #look(): Promise<void> {
    const digests: string[] = [];
    for (const path of this.#options.paths()) digests.push(await this.#digestOf(path));
    if (this.#stopped) return;
    const now = digests.join(' ');
    const settled = now === this.#seen;
    this.#seen = now;
    if (settled && now !== this.#taken) {
      this.#taken = now;
      this.#options.changed();
    }
    this.#next();
  }
}

interface Remembered {
  readonly signature: string;
  readonly fresh: boolean;
  readonly digest: string;
}

/** Never rejects: a file that can't be read has a digest that says so. */
class FileDigests {
  readonly #clock: Clock;
  readonly #known = new Map<string, Remembered>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async of(path: string): Promise<string> {
    try {
      const { dev, ino, size, mtimeMs, ctimeMs, mode } = await stat(path);
      const signature = [dev, ino, size, mtimeMs, ctimeMs, mode].join(':');
      const known = this.#known.get(path);
      if (known?.signature === signature && !known.fresh) return known.digest;
      const fresh = Math.abs(this.#clock.wallMs() - mtimeMs) < FRESH_MS;
      const digest = size > FILE_BYTES_MAX ? signature : await readDigest(path);
      this.#known.set(path, { signature, fresh, digest });
      return digest;
    } catch (thrown) {
      this.#known.delete(path);
      return (thrown as NodeJS.ErrnoException).code ?? 'unreadable';
    }
  }
}

async function readDigest(path: string): Promise<string> {
  const file = await open(path, 'r');
  try {
    if (!(await file.stat()).isFile()) return 'no file';
    const { buffer, bytesRead } = await file.read(Buffer.alloc(FILE_BYTES_MAX + 1), 0, FILE_BYTES_MAX + 1, 0);
    return createHash('sha256').update(buffer.subarray(0, bytesRead)).digest('hex');
  } finally {
    await file.close();
  }
}
