/** The log of settled requests: a line of JSON each, kept within a bounded number of files; a disk that fails never stops serving. */
import { closeSync, fstatSync, openSync, renameSync, rmSync, write } from 'node:fs';
import { dirname } from 'node:path';
import type { Finding } from '../findings/finding.js';

/** Bytes of one file before it is renamed: a few hundred thousand requests. */
export const USAGE_ROTATE_BYTES: number = 128 * 1024 * 1024;
export const USAGE_ROTATE_BYTES_MIN = 4096;
export const USAGE_ROTATE_BYTES_MAX: number = 16 * 1024 ** 3;
export const USAGE_KEEP = 8;
export const USAGE_KEEP_MAX = 1000;
/** Bytes that wait for a slow disk; what comes on top is dropped and counted. */
export const USAGE_WAITING_BYTES_MAX: number = 16 * 1024 * 1024;

export interface UsageLogOptions {
  /** Absolute. Its folder is there. */
  readonly path: string;
  readonly rotateBytes: number;
  /** Renamed files that are kept: `PATH.1` is the newest. */
  readonly keep: number;
  /** Whatever fails is raised once, and once more when it works again. */
  readonly findings: { record(finding: Finding): unknown };
  /** For tests; as `fs.write`. */
  readonly writer?: (fd: number, bytes: Buffer, done: (error: Error | null, written: number) => void) => void;
}

/** Lines are written in the order in which they came, each whole, by one write at a time. */
export class UsageLog {
  readonly #options: UsageLogOptions;
  #file: number | null = null;
  #fileBytes = 0;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #isWriting = false;
  #isFailing = false;
  #isTorn = false;
  #dropped = 0;
  #written = 0;
  #closed: (() => void) | null = null;

  /** Never throws: a file that can't be opened is a finding, and is tried again with every line. */
  constructor(options: UsageLogOptions) {
    this.#options = options;
    this.#open();
  }

  /** Requests that are in the file, and such as were dropped since the disk failed or was too slow. */
  get counts(): { readonly written: number; readonly dropped: number } {
    return { written: this.#written, dropped: this.#dropped };
  }

  /** `record` is plain data without text of tenants. */
  append(record: object): void {
    if (this.#closed !== null) return void this.#dropped++;
    const line = Buffer.from(`${JSON.stringify(record)}\n`);
    if (this.#waitingBytes + line.length > USAGE_WAITING_BYTES_MAX) {
      this.#dropped++;
      this.#failed('the disk is slower than the requests');
      return;
    }
    this.#waiting.push(line);
    this.#waitingBytes += line.length;
    this.#next();
  }

  /** Resolves when what waits is written, or has failed. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#closed = (): void => {
        if (this.#file !== null) closeSync(this.#file);
        this.#file = null;
        resolve();
      };
      if (!this.#isWriting) this.#closed();
    });
  }

  #next(): void {
    if (this.#isWriting) return;
    if (this.#waiting.length === 0) return this.#closed?.();
    if (this.#file === null && !this.#open()) return this.#drop();
    if (this.#fileBytes >= this.#options.rotateBytes) this.#rotate();
    const file = this.#file;
    if (file === null) return this.#drop();
    const lines = this.#waiting.length;
    const bytes = Buffer.concat(this.#isTorn ? [Buffer.from('\n'), ...this.#waiting] : this.#waiting);
    this.#isTorn = false;
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#isWriting = true;
    this.#write(file, bytes, lines);
  }

  #write(file: number, bytes: Buffer, lines: number): void {
    const writer = this.#options.writer ?? write;
    writer(file, bytes, (error, written) => {
      if (error === null && written > 0 && written < bytes.length) {
        this.#fileBytes += written;
        return this.#write(file, bytes.subarray(written), lines);
      }
      this.#isWriting = false;
      if (error === null && written === bytes.length) this.#wrote(written, lines);
      else this.#lost(lines, error);
      this.#next();
    });
  }

  #wrote(bytes: number, lines: number): void {
    this.#fileBytes += bytes;
    this.#written += lines;
    if (!this.#isFailing) return;
    this.#isFailing = false;
    this.#options.findings.record(backFinding(this.#options.path, this.#dropped));
  }

  /** Half a line may be in the file: the next one begins behind a line break. */
  #lost(lines: number, error: Error | null): void {
    this.#dropped += lines;
    this.#isTorn = true;
    this.#failed((error as NodeJS.ErrnoException | null)?.code ?? 'nothing was written');
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }

  #drop(): void {
    this.#dropped += this.#waiting.length;
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#closed?.();
  }

  #open(): boolean {
    const { path } = this.#options;
    try {
      this.#file = openSync(path, 'a', 0o600);
      this.#fileBytes = fstatSync(this.#file).size;
      return true;
    } catch (thrown) {
      this.#failed((thrown as NodeJS.ErrnoException).code ?? 'an error');
      return false;
    }
  }

  #rotate(): void {
    const { path, keep } = this.#options;
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
    try {
      rmSync(`${path}.${keep}`, { force: true });
      for (let index = keep - 1; index >= 1; index--) renameIfThere(`${path}.${index}`, `${path}.${index + 1}`);
      renameIfThere(path, `${path}.1`);
    } catch (thrown) {
      this.#failed((thrown as NodeJS.ErrnoException).code ?? 'an error');
    }
    this.#open();
  }

  #failed(why: string): void {
    if (this.#isFailing) return;
    this.#isFailing = true;
    this.#options.findings.record(failedFinding(this.#options.path, why));
  }
}

function renameIfThere(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'ENOENT') throw thrown;
  }
}

function failedFinding(path: string, why: string): Finding {
  return {
    id: 'usage-log-failed',
    severity: 'high',
    title: 'Settled requests are not written down: whom a leak reached could not be told from this log',
    where: { node: 'gateway', source: path },
    observed: why,
    wanted: 'a log without holes',
    change: `Make room in \`${dirname(path)}\`, or name another file; what is asked meanwhile is served, and missing in the log.`,
    references: ['docs/GATEWAY.md'],
    certain: true,
  };
}

function backFinding(path: string, dropped: number): Finding {
  return {
    id: 'usage-log-back',
    severity: 'info',
    title: 'Settled requests are written down again',
    where: { node: 'gateway', source: path },
    observed: `${dropped} are missing since the start`,
    wanted: 'a log without holes',
    change: 'Nothing, unless the hole matters.',
    references: ['docs/GATEWAY.md'],
    certain: true,
  };
}
