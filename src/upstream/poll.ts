/**
 * What nodes say of themselves, asked again and again: one bounded request, and a watcher that reads on a timer, at once after a
 * transport fault, and more often while a node does not answer.
 */
import type { Agent, IncomingMessage } from 'node:http';
import type { Clock, Timer } from '../base/clock.js';
import type { NoticeSink } from './notice.js';
import { type EngineTls, engineAgent, engineRequest } from './transport.js';

/** Bytes of one answer: SGLang's `/server_info` has some 32,000, a busy node's `/metrics` some hundred thousand. */
export const READ_BYTES_MAX = 16_777_216;
/** Milliseconds for one whole answer. An engine in the middle of a long prefill answers late. */
export const READ_MS_MAX = 5_000;
/** Milliseconds between two readings of a node that answers, and of one that does not. */
export const READ_EVERY_MS = 10_000;
export const RETRY_EVERY_MS = 1_000;
/** Answers that are late in a row before a node counts as unreachable. A connection that fails counts at once. */
export const LATE_MAX = 3;

export interface ReaderOptions {
  readonly clock: Clock;
  /** The node; a path in it comes before every path that is asked for. */
  readonly url: URL;
  /** The engine's own key; null: it knows none. */
  readonly key: string | null;
  readonly tls?: EngineTls;
  /** @default READ_MS_MAX */
  readonly msMax?: number;
  /** @default READ_BYTES_MAX */
  readonly bytesMax?: number;
}

/** `gone`: no connection, or it broke. `late`: no whole answer in time. `words` name no address and no byte of a body. */
export type Got =
  | { readonly kind: 'answer'; readonly status: number; readonly body: string }
  | { readonly kind: 'failure'; readonly why: 'gone' | 'late' | 'too-long'; readonly words: string };

/** Asks one node. Bounded in time and bytes; redirects are answers like any other. Never rejects. */
export class EndpointReader {
  readonly #o: ReaderOptions;
  readonly #agent: Agent;
  readonly #base: string;
  readonly #headers: readonly string[];

  constructor(options: ReaderOptions) {
    this.#o = options;
    this.#agent = engineAgent(options.url, options.tls);
    this.#base = options.url.origin + options.url.pathname.replace(/\/+$/, '');
    this.#headers = ['accept', '*/*', ...(options.key === null ? [] : ['authorization', `Bearer ${options.key}`])];
  }

  /** `path` begins with a slash. */
  get(path: string): Promise<Got> {
    return this.#ask('GET', path, null);
  }

  /** For the few questions that engines take as a POST, such as `/tokenize`. `body` is sent as JSON. */
  post(path: string, body: unknown): Promise<Got> {
    return this.#ask('POST', path, JSON.stringify(body));
  }

  close(): void {
    this.#agent.destroy();
  }

  #ask(method: string, path: string, body: string | null): Promise<Got> {
    const { clock, msMax = READ_MS_MAX, bytesMax = READ_BYTES_MAX } = this.#o;
    const headers =
      body === null
        ? this.#headers
        : [...this.#headers, 'content-type', 'application/json', 'content-length', String(Buffer.byteLength(body))];
    return new Promise((resolve) => {
      const request = engineRequest(new URL(this.#base + path), { agent: this.#agent, method, headers });
      let isDone = false;
      const done = (got: Got): void => {
        if (isDone) return;
        isDone = true;
        timer.cancel();
        resolve(got);
        // A connection whose answer came whole is kept.
        if (got.kind === 'failure') request.destroy();
      };
      const timer = clock.after(msMax, () => done(failure('late', `no whole answer within ${msMax} ms`)));
      request.on('response', (response) => collect(response, bytesMax, done));
      request.on('error', (error: NodeJS.ErrnoException) =>
        done(failure('gone', `the connection failed (${error.code ?? 'no code'})`)),
      );
      request.end(body ?? undefined);
    });
  }
}

function collect(response: IncomingMessage, bytesMax: number, done: (got: Got) => void): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > bytesMax) done(failure('too-long', `the answer went on after ${bytesMax} bytes`));
    else chunks.push(chunk);
  });
  response.on('error', () => done(failure('gone', 'the answer was cut')));
  response.on('close', () => done(failure('gone', 'the answer was cut')));
  response.on('end', () =>
    done({ kind: 'answer', status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') }),
  );
}

function failure(why: 'gone' | 'late' | 'too-long', words: string): Got {
  return { kind: 'failure', why, words };
}

/** The JSON of an answer of status 200; undefined where it is none. */
export function jsonOf(got: Got): unknown {
  if (got.kind !== 'answer' || got.status !== 200) return undefined;
  try {
    return JSON.parse(got.body) as unknown;
  } catch {
    return undefined;
  }
}

/** What one reading of a node gave. `isGone`: nothing listens there; else it was late, or said no. */
export type NodeReading<S> =
  | { readonly kind: 'read'; readonly state: S }
  | { readonly kind: 'failed'; readonly isGone: boolean; readonly words: string };

/** The failed reading that an answer stands for; null: it is an answer of status 200. */
export function failedReading(got: Got): Extract<NodeReading<never>, { kind: 'failed' }> | null {
  if (got.kind === 'failure') return { kind: 'failed', isGone: got.why === 'gone', words: got.words };
  if (got.status === 200) return null;
  return { kind: 'failed', isGone: false, words: `status ${got.status}` };
}

export interface WatcherOptions<S> {
  readonly clock: Clock;
  /** How notices name the node. */
  readonly node: string;
  /** Reads everything that is wanted of the node, once. A rejection counts as no answer. */
  readonly read: () => Promise<NodeReading<S>>;
  /** Called after every reading, also a failed one; `before` is null at the first that was read. */
  readonly onRead?: (now: S, before: S | null) => void;
  readonly onNotice?: NoticeSink;
  /** @default READ_EVERY_MS */
  readonly everyMs?: number;
  /** @default RETRY_EVERY_MS */
  readonly retryMs?: number;
}

/** One node under watch: what it said last, and whether it answers. One reading at a time. */
export class NodeWatcher<S> {
  readonly #o: WatcherOptions<S>;
  #state: S | null = null;
  #failure: string | null = 'it was not read yet';
  #late = 0;
  #timer: Timer | null = null;
  #reading: Promise<void> | null = null;
  #again = false;
  #isClosed = false;

  constructor(options: WatcherOptions<S>) {
    this.#o = options;
  }

  /** What it said when it last answered; null: it never has. */
  get state(): S | null {
    return this.#state;
  }

  /** Why it counts as unreachable; null: it answers. */
  get failure(): string | null {
    return this.#failure;
  }

  get isUp(): boolean {
    return this.#failure === null;
  }

  /** The first reading; the node is under watch from here on, whatever came. */
  start(): Promise<void> {
    return this.readNow();
  }

  /** Reads at once: after a transport fault, after a reconnection. While a reading goes on, one more follows it. */
  readNow(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    if (this.#reading !== null) {
      this.#again = true;
      return this.#reading;
    }
    this.#timer?.cancel();
    this.#timer = null;
    this.#reading = this.#readOn();
    return this.#reading;
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#timer = null;
  }

  async #readOn(): Promise<void> {
    do {
      this.#again = false;
      this.#take(await this.#readOnce());
    } while (this.#again && !this.#isClosed);
    this.#reading = null;
    this.#arm();
  }

  async #readOnce(): Promise<NodeReading<S>> {
    try {
      return await this.#o.read();
    } catch {
      return { kind: 'failed', isGone: false, words: 'its answer could not be read' };
    }
  }

  #take(reading: NodeReading<S>): void {
    if (this.#isClosed) return;
    if (reading.kind === 'failed') return this.#failed(reading.isGone, reading.words);
    const before = this.#state;
    const wasUp = this.isUp;
    this.#state = reading.state;
    this.#failure = null;
    this.#late = 0;
    if (!wasUp && before !== null) this.#notice('back', 'low', 'it answers again');
    this.#o.onRead?.(reading.state, before);
  }

  #failed(isGone: boolean, words: string): void {
    this.#late++;
    const first = this.#state === null;
    if (!isGone && !first && this.#late < LATE_MAX) return;
    const wasUp = this.isUp;
    this.#failure = words;
    if (wasUp || (first && this.#late === 1)) this.#notice('unreachable', 'high', `it does not answer: ${words}`);
  }

  #notice(kind: 'unreachable' | 'back', severity: 'high' | 'low', words: string): void {
    this.#o.onNotice?.({ kind, severity, node: this.#o.node, words });
  }

  #arm(): void {
    if (this.#isClosed) return;
    const { clock, everyMs = READ_EVERY_MS, retryMs = RETRY_EVERY_MS } = this.#o;
    // A late answer is asked for again soon: the node may be on its way out.
    const waitMs = this.isUp && this.#late === 0 ? everyMs : Math.min(retryMs, everyMs);
    this.#timer = clock.after(waitMs, () => {
      this.#timer = null;
      void this.readNow();
    });
  }
}
