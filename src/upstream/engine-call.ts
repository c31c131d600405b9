import type { Agent, ClientRequest, IncomingMessage } from 'node:http';
import type { Clock, Timer } from '../base/clock.js';
import { engineRequest } from './transport.js';

/** What one call hears: `answered` at most once, then `data`, and `over` exactly once, after which nothing follows. */
export interface EngineCallSink {
  answered(status: number, contentType: string): void;
  data(chunk: Buffer): void;
  /** Null: the answer came whole. Else what went wrong, for operators: no address, no byte of a body. */
  over(failure: string | null): void;
}

export interface EngineCallOptions {
  readonly clock: Clock;
  readonly agent: Agent;
  readonly url: URL;
  /** Names and values in turn; `content-length` is added. */
  readonly headers: readonly string[];
  readonly body: string;
  /** How long the first byte of the answer may take. */
  readonly firstByteMsMax: number;
  /** How long may pass between two pieces of the answer, while they are wanted. */
  readonly idleMsMax: number;
  /** Bytes of the answer; an engine that sends more is cut off. */
  readonly bytesMax: number;
}

/**
 * One POST to an engine. Redirects are not followed, nothing is sent twice, and times are idle times: a healthy stream may take
 * as long as it takes.
 */
export class EngineCall {
  readonly #options: EngineCallOptions;
  readonly #sink: EngineCallSink;
  readonly #request: ClientRequest;
  #response: IncomingMessage | null = null;
  #bytes = 0;
  #over = false;
  #paused = false;
  #quietSinceMs: number;
  #timer: Timer;

  constructor(options: EngineCallOptions, sink: EngineCallSink) {
    this.#options = options;
    this.#sink = sink;
    const { url, agent, headers, body } = options;
    this.#request = engineRequest(url, {
      agent,
      method: 'POST',
      headers: [...headers, 'content-length', String(Buffer.byteLength(body))],
    });
    this.#quietSinceMs = options.clock.nowMs();
    this.#timer = options.clock.after(options.firstByteMsMax, () => this.#onQuiet());
    this.#request.on('response', (response) => this.#onResponse(response));
    this.#request.on('error', (error: NodeJS.ErrnoException) =>
      this.#fail(`the connection failed (${error.code ?? 'no code'})`),
    );
    this.#request.end(body);
  }

  /** Ends the call; `over` follows at once if it has not been called. */
  abort(): void {
    this.#fail('it was aborted here');
  }

  /** Takes nothing more from the engine until `resume`; the time in between is not the engine's. */
  pause(): void {
    if (this.#over || this.#paused) return;
    this.#paused = true;
    this.#response?.pause();
  }

  resume(): void {
    if (this.#over || !this.#paused) return;
    this.#paused = false;
    this.#quietSinceMs = this.#options.clock.nowMs();
    this.#response?.resume();
  }

  #onResponse(response: IncomingMessage): void {
    if (this.#over) return void response.destroy();
    const { clock, idleMsMax } = this.#options;
    this.#response = response;
    this.#quietSinceMs = clock.nowMs();
    this.#timer.cancel();
    this.#timer = clock.after(idleMsMax, () => this.#onQuiet());
    response.on('error', () => this.#fail('the answer was cut'));
    response.on('close', () => this.#fail('the answer was cut'));
    this.#sink.answered(response.statusCode ?? 0, response.headers['content-type'] ?? '');
    response.on('data', (chunk: Buffer) => this.#onData(chunk));
    response.on('end', () => this.#finish(response.complete ? null : 'the answer was cut'));
    if (this.#paused) response.pause();
  }

  #onData(chunk: Buffer): void {
    if (this.#over) return;
    this.#quietSinceMs = this.#options.clock.nowMs();
    this.#bytes += chunk.length;
    if (this.#bytes > this.#options.bytesMax) this.#fail(`the answer went on after ${this.#options.bytesMax} bytes`);
    else this.#sink.data(chunk);
  }

  /** One timer for all pieces: it looks how long it has been quiet, and comes back for the rest. */
  #onQuiet(): void {
    if (this.#over) return;
    const { clock, firstByteMsMax, idleMsMax } = this.#options;
    const max = this.#response === null ? firstByteMsMax : idleMsMax;
    const quietMs = this.#paused ? 0 : clock.nowMs() - this.#quietSinceMs;
    if (quietMs >= max) this.#fail(`nothing came for ${max} ms`);
    else this.#timer = clock.after(max - quietMs, () => this.#onQuiet());
  }

  #fail(failure: string): void {
    if (this.#over) return;
    this.#finish(failure);
    this.#request.destroy();
  }

  #finish(failure: string | null): void {
    if (this.#over) return;
    this.#over = true;
    this.#timer.cancel();
    this.#sink.over(failure);
  }
}
