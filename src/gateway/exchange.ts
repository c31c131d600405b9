import type { IncomingMessage, ServerResponse } from 'node:http';
import { assert } from '../base/assert.js';
import type { Clock } from '../base/clock.js';
import { CodedError } from '../base/errors.js';
import { asCodedError, checkedRequestId, errorFrame, errorJson, freshId, readHeader } from '../wire/index.js';
import { LINGER_BYTES_MAX, LINGER_MS_MAX } from './bounds.js';

/** Why an open request is interrupted: its client left, or the gateway ends it with an error. */
export type Interruption = 'gone' | CodedError;

export interface ExchangeContext {
  readonly clock: Clock;
  /** Names and values in turn: headers that every answer carries, such as which guards are off. */
  readonly standingHeaders: readonly string[];
  /** Called once for every error that is answered. */
  readonly refused: (error: CodedError) => void;
  /** What `WWW-Authenticate` says where a key is missing or wrong, one header each. @default ['Bearer'] */
  readonly challenges?: readonly string[];
}

/**
 * One HTTP request and its answer. Exactly one terminal result leaves: a whole answer, an error, or the end of a stream; or
 * the client is gone.
 */
export class Exchange {
  /** Our own; the id in the body of an answer. What the client called its request is echoed in `x-request-id` and nothing else. */
  readonly id: string = freshId();
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly arrivedMs: number;
  /** What an interruption has to undo now; set by whoever holds something for this request. */
  onInterrupt: ((why: Interruption) => void) | null = null;
  /** The engine that runs it, for whoever ends everything on that one; null: none does. */
  holder: object | null = null;
  /** Called once, when the terminal result has left or the client has; null: it was an answer. */
  onSettled: ((error: CodedError | null) => void) | null = null;
  readonly #context: ExchangeContext;
  #expectsContinue: boolean;
  #settled = false;

  constructor(
    context: ExchangeContext,
    request: IncomingMessage,
    response: ServerResponse,
    expectsContinue: boolean = false,
  ) {
    this.#context = context;
    this.request = request;
    this.response = response;
    this.arrivedMs = context.clock.nowMs();
    this.#expectsContinue = expectsContinue;
    response.on('close', () => this.#closed());
    // Writing to a socket that was reset: `close` follows and is what counts.
    response.on('error', () => {});
  }

  /** Whether the terminal result has left, or the client has. */
  get settled(): boolean {
    return this.#settled;
  }

  get streaming(): boolean {
    return this.response.headersSent && !this.#settled;
  }

  /** For a client that sent `Expect: 100-continue`: its body is wanted (RFC 9110, section 10.1.1). */
  wantBody(): void {
    if (!this.#expectsContinue) return;
    this.#expectsContinue = false;
    this.response.writeContinue();
  }

  /** A whole answer; JSON unless `contentType` says otherwise. */
  answer(
    status: number,
    text: string,
    headers: readonly string[] = [],
    contentType: string = 'application/json',
  ): void {
    this.#write(status, text, headers, contentType);
    this.onSettled?.(null);
  }

  #write(status: number, text: string, headers: readonly string[], contentType: string = 'application/json'): void {
    assert(!this.#settled, 'a request is answered once');
    this.#settled = true;
    // The body of the request may still be on its way: then the connection can't be used again.
    const unread = !this.request.complete && hasBody(this.request);
    this.response.writeHead(status, [
      'content-type',
      contentType,
      'content-length',
      String(Buffer.byteLength(text)),
      ...(unread ? ['connection', 'close'] : []),
      ...headers,
      ...this.#commonHeaders(),
    ]);
    if (unread && !this.#expectsContinue) this.#endAfterLinger(text);
    // As a string: node then sends head and body in one write.
    else this.response.end(text);
  }

  /** An error, in whichever form can still leave: as a whole answer, or as an event of the stream that has begun. */
  refuse(thrown: unknown): void {
    if (this.#settled) return;
    const error = asCodedError(thrown);
    this.#context.refused(error);
    if (error.code === 'client_closed_request') {
      this.#settled = true;
      this.response.destroy();
    } else if (this.response.headersSent) {
      this.#settled = true;
      this.response.end(errorFrame(errorJson(error)));
    } else this.#write(error.status, errorJson(error), errorHeaders(error, this.#context.challenges ?? ['Bearer']));
    this.onSettled?.(error);
  }

  beginStream(): void {
    assert(!this.#settled && !this.response.headersSent, 'a stream begins once');
    this.response.writeHead(200, [
      'content-type',
      'text/event-stream; charset=utf-8',
      // Reverse proxies would otherwise hold the stream back.
      'x-accel-buffering',
      'no',
      ...this.#commonHeaders(),
    ]);
  }

  endStream(frames: string): void {
    assert(this.streaming, 'only a stream that has begun can end');
    this.#settled = true;
    this.response.end(frames);
    this.onSettled?.(null);
  }

  /** Ends the request from here, whatever it waits for. */
  interrupt(error: CodedError): void {
    if (this.#settled) return;
    const undo = this.onInterrupt;
    this.onInterrupt = null;
    if (undo === null) this.refuse(error);
    else undo(error);
  }

  #closed(): void {
    if (this.#settled) return;
    this.#settled = true;
    const left = new CodedError('client_closed_request', 'The client left.');
    this.#context.refused(left);
    this.onSettled?.(left);
    const undo = this.onInterrupt;
    this.onInterrupt = null;
    undo?.('gone');
  }

  #commonHeaders(): readonly string[] {
    return [
      'x-request-id',
      checkedRequestId(readHeader(this.request, 'x-request-id')) ?? this.id,
      'cache-control',
      'no-store',
      'x-content-type-options',
      'nosniff',
      ...this.#context.standingHeaders,
    ];
  }

  /**
   * Sends the whole answer but keeps the connection until the client has sent what it wanted to, within bounds: closing
   * on unread bytes resets the connection, and the client would lose the answer.
   */
  #endAfterLinger(text: string): void {
    const { request, response } = this;
    let bytes = 0;
    const end = (): void => {
      timer.cancel();
      request.off('data', onData).off('end', end).off('close', end);
      response.end();
    };
    const onData = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (bytes > LINGER_BYTES_MAX) end();
    };
    const timer = this.#context.clock.after(LINGER_MS_MAX, end);
    request.on('data', onData).on('end', end).on('close', end);
    response.write(text);
    request.resume();
  }
}

/** Whether the head announces a body. A request without one is answered before node calls it complete. */
function hasBody(request: IncomingMessage): boolean {
  const length = readHeader(request, 'content-length');
  return readHeader(request, 'transfer-encoding') !== undefined || (length !== undefined && length !== '0');
}

function errorHeaders(error: CodedError, challenges: readonly string[]): string[] {
  const headers: string[] = [];
  if (error.retryAfterS !== undefined) headers.push('retry-after', String(error.retryAfterS));
  if (error.allow !== undefined) headers.push('allow', error.allow);
  if (error.code === 'invalid_api_key') headers.push(...challenges.flatMap((each) => ['www-authenticate', each]));
  return headers;
}
