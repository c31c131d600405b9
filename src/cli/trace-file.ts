/** Where `--trace FILE` writes: one write at a time, lines waiting meanwhile, up to a bound. Serving never waits for the disk. */
import { type FileHandle, open } from 'node:fs/promises';
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import type { EngineConfig } from '../engine/config.js';
import type { Finding } from '../findings/finding.js';
import { faultsOf } from '../handoff/faults.js';
import { ALL_GUARDS, guardsOf } from '../handoff/guards.js';
import { type TraceFacts, TraceWriter } from '../handoff/trace.js';

/** Characters that wait to be written; some seconds of a busy engine. With more of them the disk does not keep up. */
const WAITING_MAX = 32 * 2 ** 20;

export class TraceFile {
  readonly writer: TraceWriter;
  readonly #handle: Pick<FileHandle, 'appendFile' | 'close'>;
  readonly #onStop: (words: string) => void;
  #waiting = '';
  #writing: Promise<void> | null = null;
  #stopped: string | null = null;

  /** `onStop` hears once why no more is written. */
  constructor(
    handle: Pick<FileHandle, 'appendFile' | 'close'>,
    facts: TraceFacts,
    onStop: (words: string) => void = () => {},
  ) {
    this.#handle = handle;
    this.#onStop = onStop;
    this.writer = new TraceWriter((line) => this.#take(line), facts);
  }

  /** Why tracing stopped; null: it did not. */
  get stopped(): string | null {
    return this.#stopped;
  }

  #take(line: string): void {
    if (this.#stopped !== null) return;
    this.#waiting += `${line}\n`;
    if (this.#waiting.length > WAITING_MAX) return this.#stop('the disk does not keep up');
    this.#writing ??= this.#write();
  }

  async #write(): Promise<void> {
    try {
      while (this.#waiting !== '' && this.#stopped === null) {
        const text = this.#waiting;
        this.#waiting = '';
        await this.#handle.appendFile(text);
      }
    } catch (error) {
      this.#stop(reasonOf(error));
    }
    this.#writing = null;
  }

  #stop(words: string): void {
    this.#stopped = words;
    this.#waiting = '';
    this.#onStop(words);
  }

  /** Resolves when all that was taken is written, or given up. */
  async flush(): Promise<void> {
    while (this.#writing !== null) await this.#writing;
  }

  async close(): Promise<void> {
    await this.flush();
    try {
      await this.#handle.close();
    } catch (error) {
      if (this.#stopped === null) this.#stop(reasonOf(error));
    }
  }
}

const reasonOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : String(error);

/**
 * Opens the file, over what was there, and writes the first line; null where no trace is asked for. Throws CodedError `usage` where that
 * cannot be done.
 */
export async function openTrace(
  path: string | null,
  config: EngineConfig,
  onStop: (words: string) => void,
): Promise<TraceFile | null> {
  if (path === null) return null;
  let words: string;
  let isOpen = false;
  try {
    const handle = await open(path, 'w');
    const file = new TraceFile(handle, factsOf(config), (why) => (isOpen ? onStop(why) : undefined));
    await file.flush();
    isOpen = file.stopped === null;
    if (file.stopped === null) return file;
    words = file.stopped;
    await file.close();
  } catch (error) {
    words = reasonOf(error);
  }
  throw new CodedError('usage', `Expected \`--trace\` to be a file that can be written, got ${shown(path)} (${words})`);
}

function factsOf(config: EngineConfig): TraceFacts {
  const { context, prefillPool, decodePool, pageTokens, runningMax, rules } = config;
  const guardsOff = guardsOf(ALL_GUARDS & ~rules.guards);
  return { context, prefillPool, decodePool, pageTokens, runningMax, faults: faultsOf(rules.faults), guardsOff };
}

export const stoppedWords = (why: string): string => `the trace stopped (${why}); what is in the file is cut`;

/** A trace that can be written no further; serving goes on. */
export function traceFinding(why: string): Finding {
  return {
    id: 'engine.trace-stopped',
    severity: 'low',
    title: 'The trace of the embedded engine stopped before the engine did',
    where: { node: 'embedded engine', source: '--trace' },
    observed: why,
    wanted: 'a file that takes every record until the engine ends',
    change: 'Requests are served as before. Make room or choose another disk, and start again to trace.',
    references: ['docs/ENGINE.md'],
    certain: true,
  };
}
