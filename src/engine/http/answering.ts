/** The sending of one answer: its headers, its end, and whether its client is still there. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { assert } from '../../base/assert.js';
import type { Clock } from '../../base/clock.js';
import type { Failure } from './failure.js';

export interface AnsweringContext {
  readonly clock: Clock;
  /** Names and values in turn, in every answer: which guards are off, which faults are on. */
  readonly standingHeaders: readonly string[];
}

export class Answering {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly arrivedMs: number;
  /** The client left before its answer was complete. */
  onGone: (() => void) | null = null;
  /** The server ends this request from its side. */
  onInterrupt: ((failure: Failure) => void) | null = null;
  readonly #context: AnsweringContext;

  constructor(context: AnsweringContext, request: IncomingMessage, response: ServerResponse) {
    this.#context = context;
    this.request = request;
    this.response = response;
    this.arrivedMs = context.clock.nowMs();
    response.on('close', () => {
      if (!response.writableFinished) this.onGone?.();
    });
    // Writing to a socket that was reset: `close` follows and is what counts.
    response.on('error', () => {});
  }

  get isAnswered(): boolean {
    return this.response.headersSent || this.response.destroyed;
  }

  answer(status: number, text: string, headers: readonly string[] = [], contentType = 'application/json'): void {
    if (this.response.destroyed) return;
    assert(!this.response.headersSent, 'a request is answered once');
    const body = Buffer.from(text);
    // The body of the request may still be on its way: then the connection can't be used again.
    const closing = this.request.complete ? [] : ['connection', 'close'];
    this.response.writeHead(status, [
      'content-type',
      contentType,
      'content-length',
      String(body.length),
      ...closing,
      ...headers,
      ...this.#context.standingHeaders,
    ]);
    this.response.end(body);
    if (!this.request.complete) this.request.resume();
  }

  beginStream(): void {
    this.response.writeHead(200, [
      'content-type',
      'text/event-stream; charset=utf-8',
      'cache-control',
      'no-store',
      ...this.#context.standingHeaders,
    ]);
  }

  endStream(frames: string): void {
    if (!this.response.destroyed) this.response.end(frames);
  }
}
