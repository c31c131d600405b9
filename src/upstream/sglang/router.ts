import { assert } from '../../base/assert.js';
import { CodedError } from '../../base/errors.js';
import { nodeName, type NoticeKind, type NoticeSeverity } from '../notice.js';
import { OpenAiRun } from '../openai/run.js';
import { wantedOf } from '../openai/request.js';
import { EndpointReader, failedReading, jsonOf, type NodeReading, NodeWatcher } from '../poll.js';
import { selfTestOf } from '../self-test.js';
import type {
  Capacity,
  Prompt,
  PromptCount,
  Upstream,
  UpstreamDescription,
  UpstreamHealth,
  UpstreamRequest,
  UpstreamRun,
  UpstreamSink,
} from '../upstream.js';
import { isAtLeastVersion, parseVersion } from '../version.js';
import { readWorkers } from './detect.js';
import { isTransportFault } from './errors.js';
import { SglangNode, type SglangNodeOptions } from './node.js';
import { requestBody } from './request.js';
import { callTo, meaningOf, RUNNING_MAX, SGLANG_FEATURES, type SglangOptions, watchedSink } from './single.js';
import { promptMax, type SglangState } from './state.js';

/** What a deployment may insist on. Behind a router neither can be had by us. */
export type RouterRequirement = 'salt' | 'prefill-count';

export interface SglangRouterOptions extends SglangOptions {
  /** The router. Its key goes to it and to no worker. */
  readonly node: Omit<SglangNodeOptions, 'clock' | 'onNotice' | 'bootstrap'>;
  /** The workers behind it; null: those that it lists. */
  readonly workers: readonly SglangNode[] | null;
  /** @default nothing */
  readonly require?: readonly RouterRequirement[];
}

/** From here on prefill hands no request on that it has refused. */
const FIXED_VERSION = '0.5.21';
/** Where no page size is known, nothing is admitted either. */
const PAGE_TOKENS = 1;

/**
 * A router of SGLang's in front of its workers. It decides which of them gets a request, so that a prompt must fit all of them; it
 * drops the salt, answers with decode's words alone, and repeats what fails.
 */
export class SglangRouterUpstream implements Upstream {
  readonly #o: SglangRouterOptions;
  /** The way to the router; it says nothing of sizes itself. */
  readonly #router: SglangNode;
  readonly #reader: EndpointReader;
  readonly #watcher: NodeWatcher<readonly URL[]>;
  readonly #workers = new Map<string, SglangNode>();
  readonly #open = new Set<UpstreamRun>();
  #model: string | null;

  private constructor(options: SglangRouterOptions) {
    const { node, clock, onNotice, workers } = options;
    this.#o = options;
    this.#model = options.model ?? null;
    this.#router = new SglangNode({ ...node, clock, onNotice });
    const { url, key, tls, readMsMax, everyMs } = node;
    this.#reader = new EndpointReader({
      clock,
      url,
      key,
      ...(tls === undefined ? {} : { tls }),
      ...(readMsMax === undefined ? {} : { msMax: readMsMax }),
    });
    for (const each of workers ?? []) this.#workers.set(each.url.href, each.use());
    this.#watcher = new NodeWatcher({
      clock,
      node: nodeName(url),
      read: () => this.#read(),
      onNotice,
      ...(everyMs === undefined ? {} : { everyMs }),
    });
  }

  /**
   * Reads the router and its workers once, and says what can't be done through it. Throws CodedError `usage` where a requirement
   * can't be met, or no model is known.
   */
  static async open(options: SglangRouterOptions): Promise<SglangRouterUpstream> {
    const upstream = new SglangRouterUpstream(options);
    try {
      await Promise.all([...upstream.#workers.values()].map((each) => each.start()));
      await upstream.#watcher.start();
      upstream.#requireModel();
      upstream.#sayLimits();
      return upstream;
    } catch (thrown) {
      await upstream.close();
      throw thrown;
    }
  }

  describe(): UpstreamDescription {
    assert(this.#model !== null, 'a router that was opened has a model');
    const runningMax = this.#o.runningMax ?? RUNNING_MAX;
    return { kind: 'sglang-router', models: [this.#model], runningMax, features: SGLANG_FEATURES, exactPieces: false };
  }

  /** The least of all workers of a role: which of them gets a request is not ours to say. */
  capacity(): Capacity {
    const states = this.#states();
    const known = states.length > 0 && states.every((state) => state !== null) ? states : null;
    const least = (figures: readonly (number | null)[]): number | null => {
      const all = figures.filter((figure) => figure !== null);
      return figures.length === 0 || all.length < figures.length ? null : Math.min(...all);
    };
    const pool = (other: 'prefill' | 'decode'): number | null =>
      known === null ? null : least(known.filter(({ role }) => role !== other).map((state) => promptMax(state)));
    return {
      nodes: [
        { ...this.#router.capacity(), role: 'router', source: 'its workers' },
        ...[...this.#workers.values()].map((each) => each.capacity()),
      ],
      context: known === null ? null : least(known.map(({ context }) => context)),
      prefillPool: pool('decode'),
      decodePool: pool('prefill'),
      pageTokens: known?.[0]?.pageTokens ?? PAGE_TOKENS,
    };
  }

  health(): UpstreamHealth {
    const down = this.#watcher.failure;
    if (down !== null) return { isUp: false, reason: 'unreachable', words: `${this.#router.name}: ${down}` };
    const workers = [...this.#workers.values()];
    if (workers.every(({ failure }) => failure !== null)) {
      return { isUp: false, reason: 'unreachable', words: `${this.#router.name}: none of its workers answers` };
    }
    const other = workers.find(({ state }) => state !== null && state.model !== this.#model);
    if (other === undefined) return { isUp: true };
    return { isUp: false, reason: 'changed', words: `${other.name}: it serves another model` };
  }

  count(prompt: Prompt): PromptCount {
    return this.#o.count(prompt);
  }

  /** Reads the router and its workers again. */
  async readNow(): Promise<void> {
    await Promise.all([this.#watcher.readNow(), ...[...this.#workers.values()].map((each) => each.readNow())]);
  }

  start(request: UpstreamRequest, sink: UpstreamSink): UpstreamRun {
    const model = this.describe().models[0]!;
    const streamed = request.streamed ?? true;
    const call = callTo(this.#router, request, requestBody(request, model, streamed, null), this.#o);
    const wanted = wantedOf(request, new Set([model]), SGLANG_FEATURES);
    const watched = watchedSink(
      sink,
      (end) => {
        if (isTransportFault(end)) void this.readNow();
      },
      () => this.#open.delete(run),
    );
    const errors = meaningOf(this.#router.name, this.#o.onNotice);
    const run = new OpenAiRun(call, streamed, wanted, watched, errors);
    this.#open.add(run);
    return {
      nodes: [this.#router.name],
      abort: () => run.abort(),
      acknowledge: (tokens) => run.acknowledge(tokens),
    };
  }

  selfTest(signal: AbortSignal): Promise<string | null> {
    return selfTestOf(this, signal);
  }

  close(): Promise<void> {
    for (const run of this.#open) run.abort();
    this.#watcher.close();
    this.#reader.close();
    this.#router.close();
    for (const each of this.#workers.values()) each.close();
    return Promise.resolve();
  }

  #states(): (SglangState | null)[] {
    return [...this.#workers.values()].map(({ state }) => state);
  }

  /** Whether the router is there, and which workers it has where they are its to say. */
  async #read(): Promise<NodeReading<readonly URL[]>> {
    if (this.#o.workers !== null) {
      const got = await this.#reader.get('/health');
      return failedReading(got) ?? { kind: 'read', state: [] };
    }
    const got = await this.#reader.get('/workers');
    const failed = failedReading(got);
    if (failed !== null) return failed;
    const workers = readWorkers(jsonOf(got));
    if (workers === null) return { kind: 'failed', isGone: true, words: 'it lists no workers' };
    await this.#follow(workers.map(({ url }) => url));
    return { kind: 'read', state: workers.map(({ url }) => url) };
  }

  /** The workers that it has now. Whoever can register one there gets no key of ours. */
  async #follow(urls: readonly URL[]): Promise<void> {
    const now = new Set(urls.map(({ href }) => href));
    for (const [href, worker] of this.#workers) {
      if (now.has(href)) continue;
      this.#workers.delete(href);
      worker.close();
    }
    const { clock, onNotice, node } = this.#o;
    const { everyMs, readMsMax } = node;
    const fresh: SglangNode[] = [];
    for (const url of urls) {
      if (this.#workers.has(url.href)) continue;
      const bounds = {
        ...(everyMs === undefined ? {} : { everyMs }),
        ...(readMsMax === undefined ? {} : { readMsMax }),
      };
      const worker = new SglangNode({ url, key: null, clock, onNotice, ...bounds }).use();
      this.#workers.set(url.href, worker);
      fresh.push(worker);
    }
    await Promise.all(fresh.map((worker) => worker.start()));
  }

  #requireModel(): void {
    this.#model ??= this.#states().find((state) => state !== null)?.model ?? null;
    if (this.#model !== null) return;
    const why = this.#watcher.failure ?? 'none of its workers says its model';
    throw new CodedError(
      'usage',
      `Expected a worker behind ${this.#router.name} to say its model (${why}); start it first, or name its model and its workers.`,
    );
  }

  /** What is not known of a worker is taken for the worse. */
  #sayLimits(): void {
    const states = this.#states();
    const say = (kind: NoticeKind, severity: NoticeSeverity, words: string): void =>
      this.#o.onNotice({ kind, severity, node: this.#router.name, words });
    const shares = states.length === 0 || states.some((state) => state === null || !state.radixCacheOff);
    if (shares) {
      this.#refuse('salt', 'the radix cache of its workers is on');
      say(
        'no-salt',
        'high',
        'it drops the salt, so that tenants share cached prefixes: switch the radix cache of its workers off',
      );
    }
    const pairs = states.length === 0 || states.some((state) => state === null || state.role !== 'single');
    if (pairs) {
      this.#refuse('prefill-count', 'it answers with decode’s count alone');
      const fixed = states.every((state) => isFixed(state?.version ?? null));
      say(
        'no-prefill-count',
        fixed ? 'medium' : 'high',
        'it does not pass on what prefill counted, so that it can not be compared',
      );
    }
    say('repeats-elsewhere', 'medium', 'it repeats requests that fail, on other workers; how often is its own setting');
  }

  #refuse(requirement: RouterRequirement, why: string): void {
    if (!(this.#o.require ?? []).includes(requirement)) return;
    throw new CodedError(
      'usage',
      `Expected \`${requirement}\` to be possible through the router at ${this.#router.name}, but ${why}; name the workers as upstreams themselves.`,
    );
  }
}

function isFixed(version: string | null): boolean {
  return version !== null && isAtLeastVersion(parseVersion(version), FIXED_VERSION) === true;
}
