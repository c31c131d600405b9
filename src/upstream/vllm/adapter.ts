import type { Clock, Timer } from '../../base/clock.js';
import { assert } from '../../base/assert.js';
import { type AskEngine, COUNT_BYTES_MAX, COUNT_MS_MAX } from '../counted-there.js';
import { nodeName, type NoticeKind, type NoticeSeverity, type NoticeSink, shownFigure, shownName } from '../notice.js';
import { OpenAiUpstream } from '../openai/adapter.js';
import { EndpointReader, failedReading, type Got, type NodeReading, NodeWatcher } from '../poll.js';
import type { EngineTls } from '../transport.js';
import type {
  Capacity,
  Prompt,
  PromptCount,
  Upstream,
  UpstreamDescription,
  UpstreamEnd,
  UpstreamFeature,
  UpstreamHealth,
  UpstreamRequest,
  UpstreamRun,
  UpstreamSink,
} from '../upstream.js';
import { countByVllm } from './count.js';
import { vllmError } from './errors.js';
import { STALL_MS, StallWatch } from './stall.js';
import { readVllm, SALT_SINCE, type VllmAnswers, type VllmState } from './state.js';

export interface VllmOptions {
  /** Where the server's `/v1` lies, such as `http://127.0.0.1:8000`. */
  readonly url: URL;
  /** The engine's own key, never a tenant's; null: it knows no keys. */
  readonly key: string | null;
  readonly tls?: EngineTls;
  /** What it has to serve, first the name that it is asked for. A server that stops to list one of them takes no requests. */
  readonly models: readonly string[];
  /** @default RUNNING_MAX */
  readonly runningMax?: number;
  /** The operator's own limits, in tokens: they lower what the server says, and stand in where it says nothing. @default none */
  readonly context?: number | null;
  readonly pool?: number | null;
  /** What requests may ask of it. @default VLLM_FEATURES */
  readonly features?: ReadonlySet<UpstreamFeature>;
  readonly clock: Clock;
  /** A prompt's tokens, template included. @default the server's own `/tokenize` */
  readonly count?: (prompt: Prompt) => PromptCount;
  readonly onNotice?: NoticeSink;
  /** Between two readings. @default READ_EVERY_MS */
  readonly everyMs?: number;
  /** While nothing answers. @default RETRY_EVERY_MS */
  readonly retryMs?: number;
  /** @default STALL_MS */
  readonly stallMs?: number;
  readonly firstByteMsMax?: number;
  readonly idleMsMax?: number;
}

/** vLLM's own default of `--max-num-seqs` on most machines; it does not say the figure. */
export const RUNNING_MAX = 256;
/** Between two readings while a queue stands still. */
const LOOK_AGAIN_MS = 1_000;

/** Tools are refused by a server that was started without its parser for them. */
export const VLLM_FEATURES: ReadonlySet<UpstreamFeature> = new Set<UpstreamFeature>([
  'sampling',
  'tools',
  'response-format',
  'logprobs',
  'reasoning',
]);

export const VLLM_PATHS = ['/version', '/v1/models', '/metrics'] as const;

/** One open request, and when the engine last gave a sign of it. */
interface Open {
  readonly run: UpstreamRun;
  lastMs: number;
  /** The engine stands still: an abort here ends it as the engine's failure. */
  isStalled: boolean;
}

/** One vLLM server, whose `cache_salt` is set here and whose prompts are held to what its pool can hold. */
export class VllmUpstream implements Upstream {
  readonly #o: VllmOptions;
  readonly #inner: OpenAiUpstream;
  readonly #reader: EndpointReader;
  readonly #counter: EndpointReader;
  readonly #count: (prompt: Prompt) => PromptCount;
  readonly #watcher: NodeWatcher<VllmState>;
  readonly #stall: StallWatch;
  readonly #open = new Set<Open>();
  readonly #stallMs: number;
  readonly #node: string;
  #stalled: readonly string[] = [];
  #again: Timer | null = null;
  #readMs: number;

  private constructor(options: VllmOptions) {
    assert(options.models.length > 0, 'an upstream serves at least one model');
    const { clock, url, key, tls, onNotice, everyMs, retryMs } = options;
    this.#o = options;
    this.#node = nodeName(url);
    this.#stallMs = options.stallMs ?? STALL_MS;
    this.#stall = new StallWatch(this.#stallMs);
    this.#readMs = clock.wallMs();
    this.#inner = new OpenAiUpstream({
      ...options,
      features: options.features ?? VLLM_FEATURES,
      errors: vllmError,
      context: 1,
      pool: null,
      runningMax: options.runningMax ?? RUNNING_MAX,
      count: (prompt) => this.count(prompt),
    });
    const base = { clock, url: withoutV1(url), key, ...(tls === undefined ? {} : { tls }) };
    this.#reader = new EndpointReader(base);
    this.#counter = new EndpointReader({ ...base, msMax: COUNT_MS_MAX, bytesMax: COUNT_BYTES_MAX });
    const ask: AskEngine = (path, body) => this.#counter.post(path, body);
    this.#count = options.count ?? countByVllm(ask, options.models[0]!);
    this.#watcher = new NodeWatcher<VllmState>({
      clock,
      node: this.#node,
      read: () => this.#read(),
      onRead: (now, before) => this.#onRead(now, before),
      ...(onNotice === undefined ? {} : { onNotice }),
      ...(everyMs === undefined ? {} : { everyMs }),
      ...(retryMs === undefined ? {} : { retryMs }),
    });
  }

  /** Reads the server once; it is under watch from then on, whatever it answered. */
  static async open(options: VllmOptions): Promise<VllmUpstream> {
    const upstream = new VllmUpstream(options);
    await upstream.#watcher.start();
    return upstream;
  }

  describe(): UpstreamDescription {
    return { ...this.#inner.describe(), kind: 'vllm', models: this.#o.models };
  }

  capacity(): Capacity {
    const state = this.#watcher.state;
    const context = lesser(state?.context ?? null, this.#o.context ?? null);
    const pool = lesser(state?.pool ?? null, this.#o.pool ?? null);
    const engines = state?.engines ?? [];
    return {
      nodes: (engines.length === 0 ? [null] : engines).map((engine) => ({
        node: engines.length > 1 ? `${this.#node} rank ${shownName(engine!.rank)}` : this.#node,
        role: 'single',
        advertised: state?.context ?? null,
        pool: engine?.pool ?? null,
        acceptLimit: null,
        source: state === null ? 'nothing yet' : sourceOf(state),
        atMs: this.#readMs,
      })),
      context,
      prefillPool: pool,
      decodePool: pool,
      pageTokens: state?.pageTokens ?? 1,
    };
  }

  health(): UpstreamHealth {
    const { failure, state } = this.#watcher;
    if (failure !== null || state === null) {
      return { isUp: false, reason: 'unreachable', words: failure ?? 'it was not read yet' };
    }
    const missing = this.#missing(state);
    if (missing !== null) return { isUp: false, reason: 'changed', words: missing };
    if (this.#stalled.length > 0) return { isUp: false, reason: 'stalled', words: STALLED_WORDS };
    if (state.engines.some(({ isAsleep }) => isAsleep)) return { isUp: false, reason: 'stalled', words: 'it sleeps' };
    return { isUp: true };
  }

  count(prompt: Prompt): PromptCount {
    return this.#count(prompt);
  }

  start(request: UpstreamRequest, sink: UpstreamSink): UpstreamRun {
    const salted = request.salt !== '' && this.#watcher.state?.honoursSalt === true;
    const { truncate_prompt_tokens: _, ...fields } = request.engineFields;
    const engineFields = salted ? { ...fields, cache_salt: request.salt } : fields;
    // What answers at once does so before the run is here.
    let open: Open | null = null;
    let ended = false;
    const seen = (): void => {
      if (open !== null) open.lastMs = this.#o.clock.nowMs();
    };
    const run = this.#inner.start(
      { ...request, engineFields },
      {
        started: (counts) => {
          seen();
          sink.started(counts);
        },
        text: (piece, tokens) => {
          seen();
          sink.text(piece, tokens);
        },
        piece: (piece, tokens) => {
          seen();
          sink.piece(piece, tokens);
        },
        end: (end) => {
          ended = true;
          if (open !== null) this.#open.delete(open);
          this.#heedEnd(end);
          sink.end(open?.isStalled === true && end.kind === 'aborted' ? stalledEnd() : withOwnCache(end, salted));
        },
        released: () => sink.released(),
      },
    );
    open = { run, lastMs: this.#o.clock.nowMs(), isStalled: false };
    if (!ended) this.#open.add(open);
    return run;
  }

  selfTest(signal: AbortSignal): Promise<string | null> {
    const health = this.health();
    // One more request behind a head that never moves would only wait too.
    if (!health.isUp && health.reason === 'stalled') return Promise.resolve(health.words);
    return this.#inner.selfTest(signal);
  }

  async close(): Promise<void> {
    this.#again?.cancel();
    this.#watcher.close();
    await this.#inner.close();
    this.#reader.close();
    this.#counter.close();
  }

  /** A transport fault may mean that the server is not what it was. */
  #heedEnd(end: UpstreamEnd): void {
    if (end.kind === 'failed' && end.code === 'engine_unavailable') void this.#watcher.readNow();
  }

  async #read(): Promise<NodeReading<VllmState>> {
    const [version, models, metrics] = await Promise.all(VLLM_PATHS.map((path) => this.#reader.get(path)));
    const failed = failedReading(models!) ?? unanswered(metrics!) ?? unanswered(version!);
    if (failed !== null) return failed;
    const answers: VllmAnswers = { version: bodyOf(version!), models: bodyOf(models!), metrics: bodyOf(metrics!) };
    return { kind: 'read', state: readVllm(answers) };
  }

  #onRead(now: VllmState, before: VllmState | null): void {
    const { clock } = this.#o;
    this.#readMs = clock.wallMs();
    this.#tellChanges(now, before);
    const was = this.#stalled.length > 0;
    this.#stalled = this.#stall.see(now.engines, clock.nowMs());
    if (this.#stalled.length > 0) this.#endStalled();
    if (was !== this.#stalled.length > 0) {
      if (was) this.#notice('back', 'low', 'its queue moves again');
      else this.#notice('stalled', 'high', STALLED_WORDS);
    }
    this.#again?.cancel();
    this.#again = null;
    if (now.engines.some(({ rank }) => this.#stall.sinceMs(rank) !== null)) {
      const soonMs = Math.min(LOOK_AGAIN_MS, this.#stallMs);
      this.#again = clock.after(soonMs, () => void this.#watcher.readNow());
    }
  }

  /** What has had no sign for as long as the queue has stood still is part of it: the head goes only when its client goes. */
  #endStalled(): void {
    const beforeMs = this.#o.clock.nowMs() - this.#stallMs;
    for (const open of this.#open) {
      if (open.lastMs > beforeMs) continue;
      open.isStalled = true;
      open.run.abort();
    }
  }

  #tellChanges(now: VllmState, before: VllmState | null): void {
    const missing = this.#missing(now);
    if (missing !== null && (before === null || this.#missing(before) === null))
      this.#notice('model-changed', 'high', missing);
    if (this.#isUnknown(now) && (before === null || !this.#isUnknown(before))) {
      this.#notice('capacity-unknown', 'high', `nothing is admitted to it: ${now.unknown.join('; ')}`);
    }
    if (
      now.honoursSalt !== true &&
      now.cachesPrefixes !== false &&
      (before === null || before.version !== now.version)
    ) {
      const words = `its prefix cache is shared by all tenants: version ${shownName(now.version)}, salts since ${SALT_SINCE}`;
      this.#notice('no-salt', 'high', words);
    }
    if (before === null) return;
    if (before.version !== now.version) {
      this.#notice('version-changed', 'medium', `from ${shownName(before.version)} to ${shownName(now.version)}`);
    }
    if (before.startedS !== null && now.startedS !== null && before.startedS !== now.startedS) {
      this.#notice('restarted', 'medium', 'its process began anew');
    }
    if (before.pool === null || now.pool === null || before.pool === now.pool) return;
    const kind = now.pool < before.pool ? 'pool-shrank' : 'pool-grew';
    this.#notice(kind, 'medium', `from ${shownFigure(before.pool)} to ${shownFigure(now.pool)}`);
  }

  #isUnknown(state: VllmState): boolean {
    const { context, pool } = this.#o;
    return lesser(state.context, context ?? null) === null || lesser(state.pool, pool ?? null) === null;
  }

  /** Why the server is not the one that was set up; null: it is. */
  #missing(state: VllmState): string | null {
    const gone = this.#o.models.find((model) => !state.models.includes(model));
    if (gone === undefined) return null;
    return `it does not serve ${shownName(gone)} but ${shownName(state.models[0] ?? null)}`;
  }

  #notice(kind: NoticeKind, severity: NoticeSeverity, words: string): void {
    this.#o.onNotice?.({ kind, severity, node: this.#node, words });
  }
}

const STALLED_WORDS = 'requests wait in it for room, none runs, and nothing moves';

function stalledEnd(): UpstreamEnd {
  return {
    kind: 'failed',
    code: 'engine_unavailable',
    message: 'The engine makes no progress; send the request again later.',
    detail: STALLED_WORDS,
    guard: null,
  };
}

/** What came out of the prefix cache is told only where the cache is the tenant's own and the figure can be one. */
function withOwnCache(end: UpstreamEnd, salted: boolean): UpstreamEnd {
  if (end.kind === 'failed' || end.usage === null) return end;
  const { cachedTokens, promptTokens } = end.usage;
  if (cachedTokens === null || (salted && cachedTokens < promptTokens)) return end;
  return { ...end, usage: { ...end.usage, cachedTokens: null } };
}

function sourceOf(state: VllmState): string {
  return state.pool === null ? '/v1/models' : '/v1/models and vllm:cache_config_info';
}

/** An endpoint that gave no answer at all; one that says no is an answer. */
function unanswered(got: Got): Extract<NodeReading<never>, { kind: 'failed' }> | null {
  return got.kind === 'failure' ? failedReading(got) : null;
}

function bodyOf(got: Got): string | null {
  return got.kind === 'answer' && got.status === 200 ? got.body : null;
}

/** The lesser of what is known. */
function lesser(said: number | null, own: number | null): number | null {
  if (said === null || own === null) return said ?? own;
  return Math.min(said, own);
}

function withoutV1(url: URL): URL {
  return new URL(url.href.replace(/\/(v1\/?)?$/, ''));
}
