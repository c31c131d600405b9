/**
 * An OpenAI-compatible engine that answers from a can: what stands behind both sides of a comparison, and behind the tests of
 * whatever speaks to one. Each answer repeats one word `max_tokens` times; the counts are those it is told to give.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { SystemClock } from '../../src/base/clock.js';
import type { AddressInfo, Socket } from 'node:net';

export interface CannedRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface CannedOptions {
  /** Tokens of a prompt, as this engine counts. */
  readonly count: (body: Readonly<Record<string, unknown>>) => number;
  /** Answers instead of the can, where it returns true. */
  readonly instead?: (request: CannedRequest, response: ServerResponse) => boolean;
  /** Milliseconds between two pieces of a stream; 0: as fast as the event loop turns. @default 0 */
  readonly gapMs?: number;
  /** PEM; the engine then speaks https. */
  readonly tls?: { readonly cert: string; readonly key: string };
}

const clock = new SystemClock();
const WORD = ' word';
const ROLE_JSON = '{"role":"assistant","content":""}';

export class CannedEngine {
  readonly requests: CannedRequest[] = [];
  readonly #options: CannedOptions;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Requests are kept for the tests to look at; a bench would only grow. */
  keepsRequests = true;

  constructor(options: CannedOptions) {
    this.#options = options;
    const receive = (request: IncomingMessage, response: ServerResponse): void => this.#receive(request, response);
    this.#server = options.tls === undefined ? createServer(receive) : createTlsServer(options.tls, receive);
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  /** How long a connection without a request stays open. */
  set keepAliveMs(ms: number) {
    this.#server.keepAliveTimeout = ms;
  }

  /** Requests whose connection is open now. */
  get connections(): number {
    return this.#sockets.size;
  }

  listen(): Promise<string> {
    return new Promise((resolve) => {
      this.#server.listen(0, '127.0.0.1', () => {
        const scheme = this.#options.tls === undefined ? 'http' : 'https';
        resolve(`${scheme}://127.0.0.1:${(this.#server.address() as AddressInfo).port}`);
      });
    });
  }

  close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
    });
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8');
      const body = (text === '' ? {} : JSON.parse(text)) as Record<string, unknown>;
      const what = { path: request.url ?? '', headers: request.headers, body };
      if (this.keepsRequests) this.requests.push(what);
      if (this.#options.instead?.(what, response) !== true) this.answer(what, response);
    });
  }

  /** The can, for an `instead` that only wanted to wait. */
  answer(request: CannedRequest, response: ServerResponse): void {
    const answer = new CannedAnswer(request, this.#options);
    if (request.body.stream === true) answer.stream(response);
    else answer.whole(response);
  }
}

class CannedAnswer {
  readonly #chat: boolean;
  readonly #tokens: number;
  readonly #usage: string;
  readonly #gapMs: number;

  constructor(request: CannedRequest, options: CannedOptions) {
    this.#chat = request.path.includes('chat');
    this.#tokens = typeof request.body.max_tokens === 'number' ? request.body.max_tokens : 16;
    const prompt = options.count(request.body);
    this.#usage = `{"prompt_tokens":${prompt},"completion_tokens":${this.#tokens},"total_tokens":${prompt + this.#tokens}}`;
    this.#gapMs = options.gapMs ?? 0;
  }

  whole(response: ServerResponse): void {
    const text = JSON.stringify(WORD.repeat(this.#tokens));
    const choice = this.#chat
      ? `{"index":0,"message":{"role":"assistant","content":${text}},"finish_reason":"length"}`
      : `{"index":0,"text":${text},"finish_reason":"length"}`;
    const body = `{"id":"canned","object":"chat.completion","created":1,"model":"canned","choices":[${choice}],"usage":${this.#usage}}`;
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
    response.end(body);
  }

  stream(response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    if (this.#chat) response.write(frame(`{"index":0,"delta":${ROLE_JSON},"finish_reason":null}`));
    let sent = 0;
    const more = (): void => {
      if (response.destroyed) return;
      if (sent++ === this.#tokens) response.end(this.#last());
      else {
        response.write(this.#piece());
        if (this.#gapMs === 0) clock.soon(more);
        else clock.after(this.#gapMs, more);
      }
    };
    more();
  }

  #piece(): string {
    const inner = this.#chat ? `"delta":{"content":"${WORD}"}` : `"text":"${WORD}"`;
    return frame(`{"index":0,${inner},"finish_reason":null}`);
  }

  #last(): string {
    const inner = this.#chat ? '"delta":{}' : '"text":""';
    const usage = `data: {"id":"canned","object":"chat.completion.chunk","created":1,"model":"canned","choices":[],"usage":${this.#usage}}\n\n`;
    return `${frame(`{"index":0,${inner},"finish_reason":"length"}`)}${usage}data: [DONE]\n\n`;
  }
}

function frame(choice: string): string {
  return `data: {"id":"canned","object":"chat.completion.chunk","created":1,"model":"canned","choices":[${choice}],"usage":null}\n\n`;
}
