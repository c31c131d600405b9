import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../base/clock.js';
import { CodedError } from '../base/errors.js';
import { ALL_GUARDS, type GuardBits, standingHeaders } from '../handoff/guards.js';
import type { EngineStats } from '../handoff/engine-port.js';
import type { Marker } from '../markers/marker.js';
import type { Upstream } from '../upstream/upstream.js';
import {
  BODY_BYTES_MAX,
  HostRule,
  type ListenAt,
  Listener,
  type ListenerOptions,
  type ListenTls,
  type Route,
} from '../wire/index.js';
import { CLOSE_FAIL_MS, CLOSE_GRACE_MS } from './bounds.js';
import type { LadderContext } from './context.js';
import { Exchange, type ExchangeContext } from './exchange.js';
import type { HoldBack } from './guard/channel.js';
import { BoundedFindings, type FindingSink } from './findings.js';
import { type Engine, engineOut } from './engine.js';
import { commonFeatures, modelsAnswer, modelsOf } from './models.js';
import { openEngines } from './open-engines.js';
import { Ladder } from './ladder.js';
import { GatewayMetrics } from './metrics.js';
import { Shield, type ShieldBounds } from './shield.js';
import { PRIORITY_STRIDES } from './tenant-limits.js';
import { TenantMeter } from './tenant-meter.js';
import type { Tenant, TenantConfig, TenantRegistry } from './tenants.js';
import type { Settlement } from './settlement.js';
import { openAccount, type TenantAccount, type WaitingRoom } from './waiting.js';

export interface GatewayOptions {
  /** One or more. Those that serve the same model share its requests. */
  readonly upstreams: readonly Upstream[];
  /** What they are called in metrics and findings, in the same order. @default `engine-1`, `engine-2` … */
  readonly engineNames?: readonly string[];
  readonly tenants: TenantRegistry;
  readonly clock: Clock;
  readonly findings: FindingSink;
  /** The guards that are on, the engine's included. @default ALL_GUARDS */
  readonly guards?: GuardBits;
  /** Names of the faults that the embedded engine runs with. */
  readonly faults?: readonly string[];
  /** Further names for `Host`. */
  readonly hostNames?: readonly string[];
  /** The embedded engine's own numbers, for the metrics. */
  readonly stats?: () => EngineStats;
  /** Where a request gives no temperature. OpenAI's is 1. @default 1 */
  readonly temperatureDefault?: number;
  /** Bytes. @default BODY_BYTES_MAX */
  readonly bodyBytesMax?: number;
  /** @default TENANT_OPEN_MAX */
  readonly tenantOpenMax?: number;
  /** @default WAITING_MAX */
  readonly waitingMax?: number;
  /** @default WAIT_MS_MAX */
  readonly waitMsMax?: number;
  /** How long open requests may go on when the gateway closes. @default CLOSE_GRACE_MS */
  readonly closeGraceMs?: number;
  /** Live markers: what must turn up in answers to its owner, a tenant's name, only. */
  readonly markers?: readonly Marker[];
  /**
   * How much of the end of an answer is held back while markers are live: null, what may become part of one; a number, at least so
   * many characters; 0, nothing, so that up to eleven characters of a marker leave before it is recognised. @default null
   */
  readonly holdBack?: HoldBack;
  /** Whether suspicion sends sentinels and an engine may leave rotation. @default true */
  readonly sentinels?: boolean;
  /** Between sentinels of each engine that nobody's suspicion asked for, while it has traffic; 0: none. @default PATROL_EVERY_MS */
  readonly sentinelEveryMs?: number;
  /** Called once for each request of a tenant when nothing is held for it any more. Must not throw. */
  readonly onSettled?: (settlement: Settlement) => void;
  /** What goes on for clients that left before the first token. @default the bounds of `bounds.ts` */
  readonly shield?: ShieldBounds;
  /** @default http */
  readonly tls?: ListenTls;
  /** For tests. */
  readonly socketBounds?: Pick<ListenerOptions, 'headMsMax' | 'requestMsMax' | 'socketCheckMs' | 'connectionsMax'>;
}

/** Markers that operators gave; the owner of each is a tenant's name. */
export interface GivenMarkers {
  readonly markers: readonly Marker[];
  readonly holdBack: HoldBack;
}

/** What can change while requests are open. */
export interface GatewayBounds {
  readonly bodyBytesMax: number;
  readonly tenantOpenMax: number;
  readonly waitingMax: number;
  readonly waitMsMax: number;
}

export { standingHeaders };

/** The tenants' port: OpenAI's routes on top of one or more engines. */
export class Gateway {
  readonly metrics: GatewayMetrics;
  /** In the order of the options; at least one. */
  readonly engines: readonly Engine[];
  readonly shield: Shield;
  readonly #options: GatewayOptions;
  readonly #listener: Listener;
  readonly #ladder: Ladder;
  readonly #exchangeContext: ExchangeContext;
  readonly #open = new Set<Exchange>();
  /** Of every tenant since the start: one that comes back finds what it still has open. */
  readonly #accounts = new Map<Tenant, TenantAccount>();
  readonly #meters = new Map<Tenant, TenantMeter>();
  readonly #startedS: number;
  #hosts: HostRule | null = null;
  #closing: Promise<void> | null = null;
  #bodyBytesMax: number;
  /** Takes no more requests; called when nothing is open any more. */
  #drained: (() => void) | null = null;

  constructor(options: GatewayOptions) {
    this.#options = options;
    const { tenants, clock } = options;
    const guards = options.guards ?? ALL_GUARDS;
    const standing = standingHeaders(guards, options.faults ?? []);
    this.#startedS = Math.floor(clock.wallMs() / 1000);
    for (const tenant of tenants.tenants) this.#openTenant(tenant);
    this.#bodyBytesMax = options.bodyBytesMax ?? BODY_BYTES_MAX;
    this.metrics = new GatewayMetrics({
      engines: { [Symbol.iterator]: () => this.engines[Symbol.iterator]() },
      accounts: { [Symbol.iterator]: () => this.accounts[Symbol.iterator]() },
      ...(options.stats === undefined ? {} : { stats: options.stats }),
    });
    this.#exchangeContext = {
      clock,
      standingHeaders: standing,
      refused: (error) => this.metrics.refused(error.code),
    };
    const bodyBytesMax = (): number => this.#bodyBytesMax;
    const findings = new BoundedFindings(options.findings);
    this.shield = newShield(options, this.metrics);
    this.engines = openEngines({
      ...options,
      guards,
      findings,
      metrics: this.metrics,
      shield: this.shield,
      tenantCount: tenants.tenants.length,
      strideOf: ({ tenant }) => PRIORITY_STRIDES[tenants.limitsOf(tenant).priority ?? 'normal'],
      onOut: (engine) => this.#engineOut(engine),
    });
    const context: LadderContext = {
      engines: this.engines,
      models: () => this.models,
      features: (model) => commonFeatures(this.engines.filter((engine) => engine.serves(model))),
      registry: tenants,
      accounts: this.#accounts,
      meters: this.#meters,
      guards,
      metrics: this.metrics,
      findings,
      onSettled: options.onSettled ?? ((): void => {}),
      clock,
      get bodyBytesMax() {
        return bodyBytesMax();
      },
      temperatureDefault: options.temperatureDefault ?? 1,
    };
    this.#ladder = new Ladder(context);
    this.#listener = new Listener({
      clock,
      standingHeaders: standing,
      handle: (request, response, expectsContinue) => this.#handle(request, response, expectsContinue),
      ...(options.tls === undefined ? {} : { tls: options.tls }),
      ...options.socketBounds,
    });
  }

  /** Open HTTP requests, whatever they wait for. */
  get open(): number {
    return this.#open.size;
  }

  /** What runs and waits at all engines together. `heldTokens`: leased and draining. */
  get room(): { readonly running: number; readonly waiting: number; readonly heldTokens: number } {
    const sum = (of: (room: WaitingRoom) => number): number =>
      this.engines.reduce((total, { room }) => total + of(room), 0);
    return {
      running: sum((room) => room.running),
      waiting: sum((room) => room.waiting),
      heldTokens: sum((room) => room.heldTokens),
    };
  }

  /** The names of the models of all engines, each once. */
  get models(): readonly string[] {
    return modelsOf(this.engines);
  }

  /** Rejects with CodedError `usage` when the port can't be had. */
  async listen(at: ListenAt): Promise<{ readonly port: number; readonly url: string }> {
    this.#hosts = new HostRule(at.host, this.#options.hostNames);
    const { port } = await this.#listener.listen(at);
    return { port, url: urlOf(at.host, port, this.#listener.scheme) };
  }

  /** Another certificate for connections from now on. Throws where it and its key are no pair. */
  replaceTls(tls: ListenTls): void {
    this.#listener.replaceTls(tls);
  }

  /** Of the tenants there are, and of those that are gone and have something open. */
  get accounts(): readonly TenantAccount[] {
    const there = new Set(this.#options.tenants.tenants);
    return [...this.#accounts.values()].filter((account) => there.has(account.tenant) || !isIdle(account));
  }

  #openTenant(tenant: Tenant): void {
    const { tenants, clock } = this.#options;
    this.#accounts.set(tenant, openAccount(tenant));
    this.#meters.set(
      tenant,
      new TenantMeter(
        () => tenants.limitsOf(tenant),
        () => clock.nowMs(),
      ),
    );
  }

  /** Whether it takes no more requests. */
  get draining(): boolean {
    return this.#drained !== null || this.#closing !== null;
  }

  /**
   * Other tenants, keys and bounds from the next request on, all at once; open requests keep what they had. Throws CodedError
   * `usage`, and then nothing has changed.
   */
  reconfigure(tenants: readonly TenantConfig[], bounds: GatewayBounds): void {
    const registry = this.#options.tenants;
    registry.replace(tenants);
    for (const tenant of registry.tenants) {
      if (!this.#accounts.has(tenant)) this.#openTenant(tenant);
    }
    this.#bodyBytesMax = bounds.bodyBytesMax;
    for (const { room } of this.engines) room.setBounds({ ...bounds, tenants: registry.tenants.length });
  }

  /** Live markers instead of those before, for answers that begin from now on. Engines share what is live. */
  giveMarkers({ markers, holdBack }: GivenMarkers): void {
    this.engines[0]!.watch.markers.give(markers, holdBack);
  }

  /**
   * Refuses what comes from now on and lets open requests go on, waiting ones included; resolves when none is open, at the latest
   * after `graceMs`. The port stays open, so that whoever asks is told; `close` ends what is left.
   */
  drain(graceMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#options.clock.after(graceMs, resolve);
      this.#drained = (): void => {
        timer.cancel();
        resolve();
      };
      for (const { response } of this.#open) response.shouldKeepAlive = false;
      if (this.#open.size === 0) this.#drained();
    });
  }

  /** Open requests finish or fail with `shutting_down`; resolves within CLOSE_GRACE_MS and CLOSE_FAIL_MS together. */
  close(): Promise<void> {
    this.#closing ??= this.#close(this.#drained === null ? (this.#options.closeGraceMs ?? CLOSE_GRACE_MS) : 0);
    return this.#closing;
  }

  /** Ends everything that waits or runs with an error. */
  #endAll(error: () => CodedError): void {
    for (const { room } of this.engines) room.refuseAll(error);
    this.shield.cutAll();
    for (const exchange of this.#open) exchange.interrupt(error());
  }

  /** Ends what runs on it with an error; what waits for it goes elsewhere, or is refused. */
  #engineOut(engine: Engine): void {
    engine.room.evict(engineOut);
    this.shield.cutAll(engine);
    for (const exchange of this.#open) {
      if (exchange.holder === engine) exchange.interrupt(engineOut());
    }
  }

  async #close(graceMs: number): Promise<void> {
    const closed = this.#listener.close(graceMs + CLOSE_FAIL_MS);
    for (const engine of this.engines) engine.close();
    this.shield.close();
    for (const { room } of this.engines) room.refuseAll(shuttingDown);
    const failing = this.#options.clock.after(graceMs, () => {
      this.#endAll(shuttingDown);
      this.#options.clock.soon(() => this.#listener.closeIdle());
    });
    await closed;
    failing.cancel();
  }

  #handle(request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void {
    const exchange = new Exchange(this.#exchangeContext, request, response, expectsContinue);
    this.#open.add(exchange);
    if (this.#drained !== null) response.shouldKeepAlive = false;
    response.once('close', () => {
      this.#open.delete(exchange);
      if (this.#open.size === 0) this.#drained?.();
      if (this.#closing !== null) this.#options.clock.soon(() => this.#listener.closeIdle());
    });
    try {
      this.#hosts!.check(request);
      this.#route(exchange, request);
    } catch (thrown) {
      exchange.refuse(thrown);
    }
  }

  #route(exchange: Exchange, request: IncomingMessage): void {
    const path = pathOf(request);
    if (path === '/health') {
      requireMethod(request, 'GET');
      if (this.draining) throw shuttingDown();
      if (!this.engines.some((engine) => engine.isServing)) throw engineOut();
      exchange.answer(200, '{"status":"ok"}');
      return;
    }
    const route = ROUTES.get(path);
    if (route !== undefined) {
      requireMethod(request, 'POST');
      if (this.draining) throw shuttingDown();
      void this.#ladder.serve(exchange, route);
      return;
    }
    if (path === '/v1/models' || path.startsWith('/v1/models/')) {
      requireMethod(request, 'GET');
      this.#ladder.authenticate(exchange);
      exchange.answer(200, modelsAnswer(path, this.engines, this.#startedS));
      return;
    }
    throw new CodedError('not_found', 'Expected the path of a route that is served here, got another one.');
  }
}

const ROUTES: ReadonlyMap<string, Route> = new Map([
  ['/v1/chat/completions', 'chat'],
  ['/v1/completions', 'completions'],
]);

function isIdle({ running, waiting, leasedTokens, drainingTokens, bodyBytes }: TenantAccount): boolean {
  return running + waiting + leasedTokens + drainingTokens + bodyBytes === 0;
}

function newShield({ clock, shield }: GatewayOptions, { safety }: GatewayMetrics): Shield {
  return new Shield({
    clock,
    ...shield,
    onOver: (outcome, promptTokens, ms) => safety.shielded(outcome, promptTokens, ms),
    onRefused: () => safety.shieldRefused(),
  });
}

export function shuttingDown(): CodedError {
  return new CodedError('shutting_down', 'The server is shutting down; send the request again later.');
}

export function urlOf(host: string, port: number, scheme: 'http' | 'https'): string {
  return `${scheme}://${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}:${port}`;
}

export function pathOf(request: IncomingMessage): string {
  const url = request.url ?? '/';
  const query = url.indexOf('?');
  return query < 0 ? url : url.slice(0, query);
}

/** HEAD goes wherever GET does (RFC 9110, section 9.1); node leaves the body out. */
export function requireMethod(request: IncomingMessage, method: 'GET' | 'POST'): void {
  if (request.method === method || (method === 'GET' && request.method === 'HEAD')) return;
  throw new CodedError('method_not_allowed', `Expected the method \`${method}\` on this path, got another one.`, {
    allow: method === 'GET' ? 'GET, HEAD' : method,
  });
}
