/** One listener of the engine: its routes, as the node of one role gives them. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../base/clock.js';
import { CodedError } from '../../base/errors.js';
import { isLoopback } from '../../base/loopback.js';
import { encode } from '../../tokenizer/bytes.js';
import {
  asCodedError,
  BODY_BYTES_MAX,
  checkBodyHead,
  HostRule,
  Listener,
  parseJsonObject,
  readBody,
  SSE_DONE,
} from '../../wire/index.js';
import type { EngineConfig } from '../config.js';
import { Answering } from './answering.js';
import { type CallRoute, readCall, roomIn } from './call.js';
import { badRequest, doorFailure, type Failure, failureHeaders, SHUTTING_DOWN } from './failure.js';
import { loadsJson, modelInfo, modelsJson, type NodeView, type Queues, serverInfo, tokenizeJson } from './info.js';
import { Leg, type LegRole } from './leg.js';
import { metricsText } from './metrics.js';
import type { EngineStats } from '../../handoff/engine-port.js';
import type { EngineCounters } from './counters.js';
import { doorFrame, failureJson } from './shapes.js';

export interface NodeOptions {
  readonly role: LegRole;
  readonly config: EngineConfig;
  readonly clock: Clock;
  readonly standingHeaders: readonly string[];
  readonly counters: EngineCounters;
  readonly startupS: number;
  readonly stats: () => EngineStats;
  readonly queues: () => Queues;
  /** A request that passed the door. */
  readonly take: (leg: Leg) => void;
  /** A request with a room that the door refused: its partner must hear of it. */
  readonly refused: (room: bigint, failure: Failure) => void;
  /** One token through the engine; resolves with what went wrong, or null. */
  readonly selfTest: () => Promise<string | null>;
  readonly stallMsMax?: number;
}

const CALLS: ReadonlyMap<string, CallRoute> = new Map([
  ['/v1/chat/completions', 'chat'],
  ['/v1/completions', 'completions'],
  ['/generate', 'generate'],
]);

export class EngineNode {
  readonly #o: NodeOptions;
  readonly #listener: Listener;
  readonly #open = new Set<Answering>();
  readonly #asks: ReadonlyMap<string, () => string>;
  #hosts: HostRule | null = null;
  #view: NodeView | null = null;
  #isClosing = false;

  constructor(options: NodeOptions) {
    this.#o = options;
    const { clock, standingHeaders, counters, stats, queues } = options;
    this.#listener = new Listener({
      clock,
      standingHeaders,
      handle: (request, response, expectsContinue) => this.#handle(request, response, expectsContinue),
    });
    const throughput = (): number => counters.throughput(clock.nowMs());
    this.#asks = new Map([
      ['/server_info', () => serverInfo(this.#viewed(), stats(), throughput())],
      ['/get_server_info', () => serverInfo(this.#viewed(), stats(), throughput())],
      ['/model_info', () => modelInfo(this.#viewed())],
      ['/get_model_info', () => modelInfo(this.#viewed())],
      ['/v1/models', () => modelsJson(this.#viewed())],
      ['/v1/loads', () => loadsJson(this.#viewed(), stats(), queues(), clock.wallMs(), throughput())],
    ]);
  }

  /** Open HTTP requests. */
  get open(): number {
    return this.#open.size;
  }

  /** Rejects with CodedError `usage` when the port can't be had. */
  async listen(host: string, port: number): Promise<string> {
    // Beyond loopback the names under which the machine is known are not ours to know.
    this.#hosts = isLoopback(host) ? new HostRule(host) : null;
    const { clock, config, role, startupS } = this.#o;
    const address = await this.#listener.listen({ host, port });
    const startedS = Math.floor(clock.wallMs() / 1000);
    this.#view = { role, config, host, port: address.port, startupS, startedS };
    return `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
  }

  /** Open requests finish, fail after `graceMs`, and lose their sockets after `destroyMs`. */
  async close(graceMs: number, destroyMs: number): Promise<void> {
    this.#isClosing = true;
    const closed = this.#listener.close(destroyMs);
    const failing = this.#o.clock.after(graceMs, () => {
      for (const answering of this.#open) answering.onInterrupt?.(SHUTTING_DOWN);
      this.#o.clock.soon(() => this.#listener.closeIdle());
    });
    await closed;
    failing.cancel();
  }

  #viewed(): NodeView {
    return this.#view!;
  }

  #handle(request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void {
    const answering = new Answering(this.#o, request, response);
    this.#open.add(answering);
    response.once('close', () => {
      this.#open.delete(answering);
      if (this.#isClosing) this.#o.clock.soon(() => this.#listener.closeIdle());
    });
    this.#serve(answering, expectsContinue).catch((thrown: unknown) => this.#refuse(answering, null, thrown));
  }

  async #serve(answering: Answering, expectsContinue: boolean): Promise<void> {
    const { request } = answering;
    this.#hosts?.check(request);
    const path = (request.url ?? '/').split('?', 1)[0]!;
    const ask = this.#asks.get(path);
    if (ask !== undefined) {
      requireMethod(request, 'GET');
      return answering.answer(200, ask());
    }
    if (path === '/metrics') return this.#metrics(answering);
    if (path === '/health' || path === '/health_generate') return await this.#health(answering, path);
    const route = CALLS.get(path);
    if (route === undefined && path !== '/tokenize' && path !== '/v1/tokenize') {
      throw new CodedError('not_found', 'Expected the path of a route that is served here, got another one.');
    }
    requireMethod(request, 'POST');
    checkBodyHead(request, BODY_BYTES_MAX);
    if (expectsContinue) answering.response.writeContinue();
    const raw = await readBody(request, { bytesMax: BODY_BYTES_MAX });
    // Prompts may come as lists of token ids here.
    const body = parseJsonObject(raw, BODY_BYTES_MAX);
    if (route === undefined) return answering.answer(200, this.#tokenize(body));
    this.#call(answering, route, body, raw);
  }

  #call(answering: Answering, route: CallRoute, body: Readonly<Record<string, unknown>>, raw: Buffer): void {
    const { config, clock, counters, role, stallMsMax } = this.#o;
    counters.requests++;
    if (answering.isAnswered) return;
    if (this.#isClosing) throw new CodedError('shutting_down', SHUTTING_DOWN.message);
    try {
      const call = readCall(route, body, raw, config.context);
      const pace = stallMsMax === undefined ? {} : { stallMsMax };
      this.#o.take(new Leg({ call, role, answering, clock, ...pace }));
    } catch (thrown) {
      const failure = doorFailure(asCodedError(thrown));
      const room = roomIn(body, raw);
      if (role !== 'single' && room !== null) this.#o.refused(room, failure);
      counters.aborted++;
      if (route === 'generate' && body.stream === true) {
        answering.beginStream();
        answering.endStream(doorFrame(failure) + SSE_DONE);
      } else this.#refuse(answering, route, thrown);
    }
  }

  #refuse(answering: Answering, route: CallRoute | null, thrown: unknown): void {
    if (answering.isAnswered) return;
    const failure = doorFailure(asCodedError(thrown));
    answering.answer(failure.status, failureJson(route, failure), failureHeaders(failure));
  }

  #tokenize(body: Readonly<Record<string, unknown>>): string {
    const { prompt } = body;
    if (typeof prompt !== 'string') throw badRequest('Expected `prompt` to be a text.');
    return tokenizeJson(encode(prompt), this.#o.config.context);
  }

  #metrics(answering: Answering): void {
    requireMethod(answering.request, 'GET');
    const { stats, queues, counters, clock } = this.#o;
    const text = metricsText(this.#viewed(), stats(), queues(), counters, clock.nowMs());
    answering.answer(200, text, [], 'text/plain; version=0.0.4; charset=utf-8');
  }

  async #health(answering: Answering, path: string): Promise<void> {
    requireMethod(answering.request, 'GET');
    const wrong = this.#isClosing || (path === '/health_generate' && (await this.#o.selfTest()) !== null);
    if (!answering.isAnswered) answering.answer(wrong ? 503 : 200, '');
  }
}

function requireMethod(request: IncomingMessage, method: string): void {
  if (request.method === method) return;
  throw new CodedError('method_not_allowed', `Expected the method \`${method}\` on this path, got another one.`);
}
