import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
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

/** Sockets in all. Where there are more, the one that has been idle longest makes room. */
export const CONNECTIONS_MAX = 4096;
/** Sockets above that bound, for the case that none is idle; what comes then is dropped. */
const CONNECTIONS_SPARE = 64;

/** Requests that one socket may have sent ahead of their turn; a client that sends more has its socket closed. */
export const PIPELINED_MAX = 128;

/** After an answer to what does not parse, what still comes is thrown away for this long. */
const UNPARSED_LINGER_MS_MAX = 2_000;

export interface ListenerOptions {
  readonly clock: Clock;
  /** Names and values in turn, on answers that node's parser makes necessary too. */
  readonly standingHeaders: readonly string[];
  readonly handle: (request: IncomingMessage, response: ServerResponse, expectsContinue: boolean) => void;
  /** The port speaks https. Throws where they are no pair. @default http */
  readonly tls?: ListenTls;
  /** For tests; milliseconds. */
  readonly headMsMax?: number;
  readonly requestMsMax?: number;
  readonly socketCheckMs?: number;
  readonly connectionsMax?: number;
}

/** PEM: the certificate, those of the authorities between behind it, and its private key. */
export interface ListenTls {
  readonly cert: string;
  readonly key: string;
}

export interface ListenAt {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** Not shared with other processes of a cluster. @default false */
  readonly exclusive?: boolean;
}

/** The requests of one socket: the answer whose turn it is, so that an error never cuts into it, and who waits behind it. */
interface Turns {
  answer: ServerResponse | null;
  readonly waiting: { request: IncomingMessage; response: ServerResponse; expectsContinue: boolean }[];
}

/** One HTTP/1.1 port: bounds on sockets and on slow heads and bodies, an answer to what does not parse, an end on time. */
export class Listener {
  readonly #server: Server | TlsServer;
  readonly #clock: Clock;
  readonly #standing: readonly string[];
  readonly #handle: ListenerOptions['handle'];
  readonly #turns = new WeakMap<Duplex, Turns>();
  readonly #connectionsMax: number;
  #connections = 0;
  /** Sockets without a request, idle longest first. */
  readonly #idle = new Set<Duplex>();
  /** Connections over TLS before they are secured, by their peer's address and port. */
  readonly #shaking = new Map<string, Socket>();

  constructor(options: ListenerOptions) {
    this.#clock = options.clock;
    this.#standing = options.standingHeaders;
    this.#handle = options.handle;
    const requestTimeout = options.requestMsMax ?? REQUEST_MS_MAX;
    const common = {
      // These bound the receiving of a request, never its answer.
      headersTimeout: Math.min(options.headMsMax ?? HEAD_MS_MAX, requestTimeout),
      requestTimeout,
      connectionsCheckingInterval: options.socketCheckMs ?? SOCKET_CHECK_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      noDelay: true,
      // The host is checked by whoever handles the request, and refused there in our own words.
      requireHostHeader: false,
    };
    this.#server =
      options.tls === undefined
        ? createServer(common)
        : createTlsServer({
            ...common,
            ...options.tls,
            minVersion: 'TLSv1.2',
            handshakeTimeout: common.headersTimeout,
          });
    this.#connectionsMax = options.connectionsMax ?? CONNECTIONS_MAX;
    this.#server.maxConnections = this.#connectionsMax + CONNECTIONS_SPARE;
    this.#server.on('connection', (socket: Socket) => this.#connected(socket));
    this.#server.on('secureConnection', (socket: Socket) => this.#secured(socket));
    // By default node drops the headers after the 2000th in silence, and a second `Authorization` among them would not be
    // seen. The size of a head (16 KiB) bounds their number.
    this.#server.maxHeadersCount = 0;
    this.#server.on('request', (request, response) => this.#inTurn(request, response, false));
    this.#server.on('checkContinue', (request, response) => this.#inTurn(request, response, true));
    // An expectation that is not known is passed over (RFC 9110, section 10.1.1): node's own 417 would lack our headers.
    this.#server.on('checkExpectation', (request, response) => this.#inTurn(request, response, false));
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket) => this.#clientError(error, socket));
  }

  /** `http` or `https`. */
  get scheme(): 'http' | 'https' {
    return this.#server instanceof TlsServer ? 'https' : 'http';
  }

  /** Another certificate for connections from now on. Throws where they are no pair, and then the old one stays. */
  replaceTls(tls: ListenTls): void {
    if (this.#server instanceof TlsServer) this.#server.setSecureContext({ ...tls, minVersion: 'TLSv1.2' });
  }

  /** Rejects with CodedError `usage` when the port is taken or may not be used. */
  listen(at: ListenAt): Promise<AddressInfo> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(at, error)));
      this.#server.listen({ ...at }, () => resolve(this.#server.address() as AddressInfo));
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

  /** Idle sockets cost an attacker nothing, not even a key: they must not keep out who has something to ask. */
  #connected(socket: Socket): void {
    this.#connections++;
    this.#idle.add(socket);
    const peer = peerOf(socket);
    if (this.scheme === 'https') this.#shaking.set(peer, socket);
    socket.once('close', () => {
      this.#connections--;
      this.#idle.delete(socket);
      this.#shaking.delete(peer);
    });
    if (this.#connections <= this.#connectionsMax) return;
    const [longest] = this.#idle;
    if (longest === undefined || longest === socket) return;
    this.#idle.delete(longest);
    longest.destroy();
  }

  /** Requests come through the secured socket: from here on it is the one that is idle or not. */
  #secured(socket: Socket): void {
    const peer = peerOf(socket);
    const below = this.#shaking.get(peer);
    if (below !== undefined) this.#idle.delete(below);
    this.#shaking.delete(peer);
    this.#idle.add(socket);
    socket.once('close', () => this.#idle.delete(socket));
  }

  /**
   * One request of a socket at a time (RFC 9112, section 9.3.2: only safe methods may be answered side by side). An answer that
   * waits behind another has no socket: it never hears that its client left, and what it holds would be held for ever.
   */
  #inTurn(request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void {
    const { socket } = request;
    const turns = this.#turns.get(socket);
    if (turns === undefined) {
      this.#turns.set(socket, { answer: response, waiting: [] });
    } else if (turns.answer !== null) {
      if (turns.waiting.length >= PIPELINED_MAX) socket.destroy();
      else turns.waiting.push({ request, response, expectsContinue });
      return;
    } else turns.answer = response;
    this.#begin(request, response, expectsContinue);
  }

  #begin(request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void {
    const { socket } = request;
    const turns = this.#turns.get(socket)!;
    turns.answer = response;
    this.#idle.delete(socket);
    response.once('close', () => {
      const next = socket.destroyed ? undefined : turns.waiting.shift();
      if (next === undefined) {
        turns.answer = null;
        if (!socket.destroyed) this.#idle.add(socket);
      } else this.#begin(next.request, next.response, next.expectsContinue);
    });
    this.#handle(request, response, expectsContinue);
  }

  /** Answers what node's parser refused (a length together with chunked, an HTTP/2 preface, a head that never ends). */
  #clientError(error: NodeJS.ErrnoException, socket: Duplex): void {
    const answer = this.#turns.get(socket)?.answer;
    const answering = answer?.headersSent && !answer.writableFinished;
    // What fails before it is secured has nobody to answer: a plain answer would be read as noise.
    const isUnsecured = error.code?.startsWith('ERR_SSL_') === true || error.code === 'ERR_TLS_HANDSHAKE_TIMEOUT';
    if (!socket.writable || socket.destroyed || answering || isUnsecured || error.code === 'ECONNRESET') {
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

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
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
