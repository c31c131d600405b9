import type { Agent } from 'node:http';
import type { Clock } from '../../base/clock.js';
import { readModels } from '../models.js';
import { nodeName, type NoticeSink } from '../notice.js';
import { EndpointReader, failedReading, type Got, jsonOf, type NodeReading, NodeWatcher } from '../poll.js';
import { type EngineTls, engineAgent } from '../transport.js';
import type { NodeCapacity } from '../upstream.js';
import { sglangChanges, type SglangState, sglangState } from './state.js';

export interface SglangNodeOptions {
  readonly url: URL;
  /** The engine's own key, never a tenant's; null: it knows no keys. */
  readonly key: string | null;
  readonly tls?: EngineTls;
  readonly clock: Clock;
  readonly onNotice: NoticeSink;
  /** Milliseconds between two readings. @default READ_EVERY_MS */
  readonly everyMs?: number;
  /** Milliseconds that one answer may take. @default READ_MS_MAX */
  readonly readMsMax?: number;
  /** Where prefill's bootstrap server is reached by decode, if it is not the URL's host, or not the port that the node says. */
  readonly bootstrap?: { readonly host?: string; readonly port?: number | null };
}

const INFO_PATHS = ['/server_info', '/get_server_info'] as const;

/** One SGLang server: what it says of itself, and what it has to do for us. Several upstreams may share a prefill node. */
export class SglangNode {
  readonly name: string;
  readonly url: URL;
  readonly agent: Agent;
  /** Names and values in turn, for every request. */
  readonly headers: readonly string[];
  /** Tokens of prompts that were sent to it and are not answered. Invariant: tokensInFlight >= 0. */
  tokensInFlight = 0;
  readonly #o: SglangNodeOptions;
  readonly #reader: EndpointReader;
  readonly #watcher: NodeWatcher<SglangState>;
  readonly #listeners: (() => void)[] = [];
  /** The path that answered last. */
  #infoPath: (typeof INFO_PATHS)[number] = INFO_PATHS[0];
  #metrics: { readonly start: string | null; readonly text: string } | null = null;
  #readAtMs = 0;
  #users = 0;

  constructor(options: SglangNodeOptions) {
    this.#o = options;
    const { url, key, tls, clock, onNotice, everyMs, readMsMax } = options;
    this.url = url;
    this.name = nodeName(url);
    this.agent = engineAgent(url, tls);
    this.headers = ['content-type', 'application/json', ...(key === null ? [] : ['authorization', `Bearer ${key}`])];
    this.#reader = new EndpointReader({
      clock,
      url,
      key,
      ...(tls === undefined ? {} : { tls }),
      ...(readMsMax === undefined ? {} : { msMax: readMsMax }),
    });
    this.#watcher = new NodeWatcher<SglangState>({
      clock,
      node: this.name,
      read: () => this.#read(),
      onRead: (now, before) => this.#onRead(now, before),
      onNotice,
      ...(everyMs === undefined ? {} : { everyMs }),
    });
  }

  /** What it said last; null: it never answered as SGLang does. */
  get state(): SglangState | null {
    return this.#watcher.state;
  }

  /** Why it counts as unreachable; null: it answers. */
  get failure(): string | null {
    return this.#watcher.failure;
  }

  /** `bootstrap_host` of requests that it prefills: as routers write it, an IPv6 address in brackets. */
  get bootstrapHost(): string {
    return this.#o.bootstrap?.host ?? this.url.hostname;
  }

  get bootstrapPort(): number | null {
    const { port } = this.#o.bootstrap ?? {};
    return port === undefined ? (this.state?.bootstrapPort ?? null) : port;
  }

  /** One more upstream sends through it: the node closes with the last of them. */
  use(): this {
    this.#users++;
    return this;
  }

  /** Calls `listener` after every reading that changed what the node is. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** The first reading; the node is under watch from here on. */
  start(): Promise<void> {
    return this.#watcher.start();
  }

  /** After a transport fault: is it still there, and still the same? */
  readNow(): Promise<void> {
    return this.#watcher.readNow();
  }

  /** The URL of a route below the node's. */
  route(path: string): URL {
    return new URL(this.url.origin + this.url.pathname.replace(/\/+$/, '') + path);
  }

  capacity(): NodeCapacity {
    const { state } = this;
    return {
      node: this.name,
      role: state?.role ?? 'unknown',
      advertised: state?.context ?? null,
      pool: state?.pool ?? null,
      acceptLimit: state?.acceptLimit ?? null,
      source: `${this.#infoPath}${this.#metrics === null ? '' : ', /metrics'}`,
      atMs: this.#readAtMs,
    };
  }

  /** Called once by each of its users. */
  close(): void {
    if (--this.#users > 0) return;
    this.#watcher.close();
    this.#reader.close();
    this.agent.destroy();
  }

  async #read(): Promise<NodeReading<SglangState>> {
    const got = await this.#readInfo();
    const failed = failedReading(got);
    if (failed !== null) return failed;
    const info = jsonOf(got);
    let state = sglangState({ info, metrics: this.#metrics?.text ?? null });
    // Something else listens there: that is no slow answer, it is another node.
    if (state === null) return { kind: 'failed', isGone: true, words: 'its answer is not that of an SGLang server' };
    const models = state.context === null ? readModels(jsonOf(await this.#reader.get('/v1/models'))) : null;
    await this.#readMetrics(state);
    state = sglangState({ info, models, metrics: this.#metrics?.text ?? null }) ?? state;
    this.#readAtMs = this.#o.clock.wallMs();
    return { kind: 'read', state };
  }

  async #readInfo(): Promise<Got> {
    const got = await this.#reader.get(this.#infoPath);
    if (got.kind !== 'answer' || got.status !== 404) return got;
    const other = INFO_PATHS.find((path) => path !== this.#infoPath)!;
    const second = await this.#reader.get(other);
    if (second.kind === 'answer' && second.status === 200) this.#infoPath = other;
    return second;
  }

  /** The second source is the same for as long as the server runs, so it is read once a start, and where the first says too little. */
  async #readMetrics(state: SglangState): Promise<void> {
    if (this.#metrics !== null && this.#metrics.start !== state.start) this.#metrics = null;
    if (!state.hasMetrics || (this.#metrics !== null && state.pool !== null)) return;
    const got = await this.#reader.get('/metrics');
    if (got.kind === 'answer' && got.status === 200) this.#metrics = { start: state.start, text: poolLines(got.body) };
  }

  #onRead(now: SglangState, before: SglangState | null): void {
    for (const notice of sglangChanges(this.name, before, now)) this.#o.onNotice(notice);
    if (before === null || JSON.stringify(before) !== JSON.stringify(now)) for (const each of this.#listeners) each();
  }
}

/** Of a node's metrics, the lines about its pool: the rest may be long, and is not looked at again. */
function poolLines(text: string): string {
  return text
    .split('\n')
    .filter((line) => /^(?:ray_)?sglang[:_](?:max_total_num_tokens|cache_config_info)/.test(line))
    .join('\n');
}
