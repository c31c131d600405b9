import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../base/clock.js';
import { CodedError } from '../base/errors.js';
import { openAiError } from './errors.js';

/** Milliseconds for the head of a request, and for all of it: a client that sends a byte a minute holds a socket no longer. */
export const HEAD_MS_MAX = 10_000;
export const REQUEST_MS_MAX = 60_000;
export const SOCKET_CHECK_MS = 2_000;

/** Idle keep-alive sockets; longer than the usual client's own, so that the client closes first. */
export const KEEP_ALIVE_MS = 75_000;

/** Sockets in all. */
export const CONNECTIONS_MAX = 4096;

/** After an answer to what does not parse, what still comes is thrown away for this long. */
const UNPARSED_LINGER_MS_MAX = 2_000;

export interface ListenerOptions {
  readonly clock: Clock;
  /** Names and values in turn, on answers that node's parser makes necessary too. */
  readonly standingHeaders: readonly string[];
  readonly handle: (request: IncomingMessage, response: ServerResponse, expectsContinue: boolean) => void;
  /** For tests; milliseconds. */
  readonly headMsMax?: number;
  readonly requestMsMax?: number;
  readonly socketCheckMs?: number;
}

export interface ListenAt {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
}

/** One HTTP/1.1 port: bounds on sockets and on slow heads and bodies, an answer to what does not parse, an end on time. */
export class Listener {
  readonly #server: Server;
  readonly #clock: Clock;
  readonly #standing: readonly string[];
  /** The latest answer on each socket, so that an error never cuts into one that has begun. */
  readonly #answers = new WeakMap<Duplex, ServerResponse>();

  constructor(options: ListenerOptions) {
    this.#clock = options.clock;
    this.#standing = options.standingHeaders;
    const requestTimeout = options.requestMsMax ?? REQUEST_MS_MAX;
    this.#server = createServer({
      // These bound the receiving of a request, never its answer.
      headersTimeout: Math.min(options.headMsMax ?? HEAD_MS_MAX, requestTimeout),
      requestTimeout,
      connectionsCheckingInterval: options.socketCheckMs ?? SOCKET_CHECK_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      noDelay: true,
      // The host is checked by whoever handles the request, and refused there in our own words.
      requireHostHeader: false,
    });
    this.#server.maxConnections = CONNECTIONS_MAX;
    const handle = (request: IncomingMessage, response: ServerResponse, expects: boolean): void => {
      this.#answers.set(request.socket, response);
      options.handle(request, response, expects);
    };
    this.#server.on('request', (request, response) => handle(request, response, false));
    this.#server.on('checkContinue', (request, response) => handle(request, response, true));
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket) => this.#clientError(error, socket));
  }

  /** Rejects with CodedError `usage` when the port is taken or may not be used. */
  listen(at: ListenAt): Promise<AddressInfo> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(at, error)));
      this.#server.listen(at.port, at.host, () => resolve(this.#server.address() as AddressInfo));
    });
  }

  /** Takes no more connections; resolves when all have ended, at the latest after `destroyMs`, when they are destroyed. */
  close(destroyMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#clock.after(destroyMs, () => this.#server.closeAllConnections());
      this.#server.close(() => {
        timer.cancel();
        resolve();
      });
      this.#server.closeIdleConnections();
    });
  }

  closeIdle(): void {
    this.#server.closeIdleConnections();
  }

  /** Answers what node's parser refused (a length together with chunked, an HTTP/2 preface, a head that never ends). */
  #clientError(error: NodeJS.ErrnoException, socket: Duplex): void {
    const answer = this.#answers.get(socket);
    const answering = answer?.headersSent && !answer.writableFinished;
    if (!socket.writable || socket.destroyed || answering || error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    const status = parserStatus(error.code);
    socket.end(rawAnswer(status, this.#standing));
    // What still comes is thrown away for a while, so that the answer is not lost in a reset.
    socket.resume();
    const timer = this.#clock.after(UNPARSED_LINGER_MS_MAX, () => socket.destroy());
    socket.once('end', () => socket.destroy()).once('close', () => timer.cancel());
    socket.on('error', () => socket.destroy());
  }
}

function parserStatus(code: string | undefined): number {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 408;
  return code === 'HPE_HEADER_OVERFLOW' ? 431 : 400;
}

function rawAnswer(status: number, standing: readonly string[]): string {
  const message =
    status === 408
      ? 'Expected the whole request in time, and it did not come.'
      : 'Expected a well-formed HTTP/1.1 request, got something else.';
  const body = JSON.stringify(openAiError('invalid_request', message));
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json\r\nconnection: close\r\n`;
  for (let i = 0; i < standing.length; i += 2) head += `${standing[i]}: ${standing[i + 1]}\r\n`;
  return `${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

function listenError(at: ListenAt, error: NodeJS.ErrnoException): CodedError {
  const why = error.code === 'EADDRINUSE' ? 'it is in use' : (error.code ?? 'an error');
  return new CodedError('usage', `Expected port \`${at.port}\` on \`${at.host}\` to be free, got: ${why}.`, {
    cause: error,
  });
}
