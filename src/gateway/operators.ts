import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../base/clock.js';
import { CodedError } from '../base/errors.js';
import type { Upstream } from '../upstream/upstream.js';
import {
  basicPassword,
  bearerKey,
  checkSameOrigin,
  HostRule,
  isLoopback,
  type ListenAt,
  Listener,
  type ListenTls,
} from '../wire/index.js';
import { HEALTH_EVERY_MS, HEALTH_MS_MAX, STATE_EVERY_MS } from './bounds.js';
import { Exchange } from './exchange.js';
import type { GatewayMetrics } from './metrics.js';
import { pathOf, requireMethod, urlOf } from './server.js';

/** The page at `/` and its numbers, as `dashboard/` makes them. */
export interface OperatorsPage {
  readonly html: string;
  /** Names and values in turn, for the page alone. */
  readonly headers: readonly string[];
  /** What `/state` answers: JSON. */
  state(): Promise<string>;
}

/** One engine, as far as `/healthz` asks. */
export interface OperatedEngine {
  readonly name: string;
  readonly upstream: Pick<Upstream, 'selfTest'>;
  /** Why it is out of service; null: it serves. */
  whyOut(): string | null;
}

export interface OperatorsOptions {
  /** The gateway's engines. */
  readonly engines: readonly OperatedEngine[];
  readonly metrics: GatewayMetrics;
  /** What `/findings` shows; each must be fit for JSON. */
  readonly findings: () => readonly unknown[];
  /** Absent: `/` and `/state` are not served. */
  readonly page?: OperatorsPage;
  readonly clock: Clock;
  readonly at: ListenAt;
  /** @default http */
  readonly tls?: ListenTls;
  /** SHA-256 of the operators' key, 64 hex digits; needed when the port is not on loopback. */
  readonly opsKeySha256?: string;
  /** True from the moment on in which the gateway takes no more requests: `/healthz` then says so. */
  readonly draining?: () => boolean;
  readonly hostNames?: readonly string[];
  readonly standingHeaders?: readonly string[];
}

interface Health {
  readonly atMs: number;
  readonly wrong: string | null;
}

/** Asked for in a browser, the key is typed as the password; the user's name is not looked at. */
const CHALLENGES: readonly string[] = ['Basic realm="Cofferdam operators", charset="UTF-8"', 'Bearer'];
const HTML_TYPE = 'text/html; charset=utf-8';
const KEY_EXPECTED =
  'Expected the operators’ key, as `Authorization: Bearer KEY` or as the password of `Authorization: Basic`, once.';

/** The operators' port: the page, metrics, findings, and a health that has been through the engine. */
export class OperatorsServer {
  readonly #options: OperatorsOptions;
  readonly #listener: Listener;
  readonly #hosts: HostRule;
  #keyDigest: Buffer | null = null;
  /** The self-test that runs or ran last, shared by all who ask within HEALTH_EVERY_MS of its start. */
  #health: { readonly startedMs: number; readonly result: Promise<Health> } | null = null;
  /** The reading that runs or ran last, shared by all who ask within STATE_EVERY_MS of its start. */
  #state: { readonly startedMs: number; readonly result: Promise<string> } | null = null;

  /** Throws CodedError `usage` when it would listen beyond loopback without a key. */
  constructor(options: OperatorsOptions) {
    this.#options = options;
    this.replaceKey(options.opsKeySha256 ?? null);
    this.#hosts = new HostRule(options.at.host, options.hostNames);
    this.#listener = new Listener({
      clock: options.clock,
      standingHeaders: options.standingHeaders ?? [],
      handle: (request, response, expectsContinue) => void this.#handle(request, response, expectsContinue),
      ...(options.tls === undefined ? {} : { tls: options.tls }),
    });
  }

  /** Another key from the next request on; null: none is needed. Throws CodedError `usage` beyond loopback without a key. */
  replaceKey(sha256: string | null): void {
    const { host } = this.#options.at;
    if (sha256 === null && !isLoopback(host)) {
      throw new CodedError(
        'usage',
        `Expected \`--ops-key\` when the operators' port listens beyond loopback, on \`${host}\`.`,
      );
    }
    this.#keyDigest = sha256 === null ? null : Buffer.from(sha256, 'hex');
  }

  /** Another certificate for connections from now on. Throws where it and its key are no pair. */
  replaceTls(tls: ListenTls): void {
    this.#listener.replaceTls(tls);
  }

  async listen(): Promise<{ readonly port: number; readonly url: string }> {
    const { port } = await this.#listener.listen(this.#options.at);
    return { port, url: urlOf(this.#options.at.host, port, this.#listener.scheme) };
  }

  close(): Promise<void> {
    return this.#listener.close(200);
  }

  async #handle(request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): Promise<void> {
    const context = {
      clock: this.#options.clock,
      standingHeaders: this.#options.standingHeaders ?? [],
      refused: () => {},
      challenges: CHALLENGES,
    };
    const exchange = new Exchange(context, request, response, expectsContinue);
    try {
      this.#hosts.check(request);
      checkSameOrigin(request);
      this.#authenticate(request);
      await this.#route(exchange, request);
    } catch (thrown) {
      exchange.refuse(thrown);
    }
  }

  #authenticate(request: IncomingMessage): void {
    if (this.#keyDigest === null) return;
    const key = bearerKey(request) ?? basicPassword(request) ?? '';
    if (!timingSafeEqual(this.#keyDigest, digest(key))) throw new CodedError('invalid_api_key', KEY_EXPECTED);
  }

  async #route(exchange: Exchange, request: IncomingMessage): Promise<void> {
    requireMethod(request, 'GET');
    const { page } = this.#options;
    const path = pathOf(request);
    if (page !== undefined && path === '/') return exchange.answer(200, page.html, page.headers, HTML_TYPE);
    if (page !== undefined && path === '/state') {
      const text = await this.#sharedState(page);
      if (!exchange.settled) exchange.answer(200, text);
      return;
    }
    switch (path) {
      case '/metrics': {
        const text = await this.#options.metrics.registry.metrics();
        if (!exchange.settled) exchange.answer(200, text, [], this.#options.metrics.registry.contentType);
        return;
      }
      case '/findings':
        exchange.answer(200, JSON.stringify(this.#options.findings()));
        return;
      case '/healthz': {
        if (this.#options.draining?.() === true) return exchange.answer(503, '{"status":"draining"}');
        const health = await this.#readHealth();
        if (!exchange.settled) exchange.answer(health.wrong === null ? 200 : 503, healthJson(health));
        return;
      }
      default:
        throw new CodedError('not_found', 'Expected `/`, `/metrics`, `/findings` or `/healthz`, got another path.');
    }
  }

  #sharedState(page: OperatorsPage): Promise<string> {
    const nowMs = this.#options.clock.nowMs();
    if (this.#state === null || nowMs - this.#state.startedMs >= STATE_EVERY_MS) {
      this.#state = { startedMs: nowMs, result: page.state() };
    }
    return this.#state.result;
  }

  /** One engine that serves is enough, where its self-test passes. */
  #readHealth(): Promise<Health> | Health {
    const { engines, clock } = this.#options;
    if (engines.some((engine) => engine.whyOut() === null)) return this.#sharedHealth();
    const words = engines.map((engine) => `${engine.name} is ${engine.whyOut()}`);
    return { wrong: words.join('; '), atMs: clock.wallMs() };
  }

  #sharedHealth(): Promise<Health> {
    const nowMs = this.#options.clock.nowMs();
    if (this.#health === null || nowMs - this.#health.startedMs >= HEALTH_EVERY_MS) {
      this.#health = { startedMs: nowMs, result: this.#selfTest() };
    }
    return this.#health.result;
  }

  async #selfTest(): Promise<Health> {
    const { engines, clock } = this.#options;
    const abort = new AbortController();
    const timer = clock.after(HEALTH_MS_MAX, () => abort.abort());
    const serving = engines.filter((engine) => engine.whyOut() === null);
    try {
      const wrongs = await Promise.all(
        serving.map(async ({ name, upstream }) => {
          const wrong = await upstream.selfTest(abort.signal).catch(() => 'the self-test could not be run');
          return wrong === null ? null : `${name}: ${wrong}`;
        }),
      );
      return { wrong: wrongs.includes(null) ? null : wrongs.join('; '), atMs: clock.wallMs() };
    } finally {
      timer.cancel();
    }
  }
}

function digest(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}

function healthJson(health: Health): string {
  const checkedAt = new Date(health.atMs).toISOString();
  return health.wrong === null
    ? JSON.stringify({ status: 'ok', checkedAt })
    : JSON.stringify({ status: 'failing', wrong: health.wrong, checkedAt });
}
