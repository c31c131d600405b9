import { assert } from '../../base/assert.js';
import type { Clock } from '../../base/clock.js';
import { type AskEngine, COUNT_BYTES_MAX, COUNT_MS_MAX } from '../counted-there.js';
import { nodeName, type NoticeKind, type NoticeSeverity, type NoticeSink, shownFigure, shownName } from '../notice.js';
import { OpenAiUpstream } from '../openai/adapter.js';
import { EndpointReader, failedReading, type Got, type NodeReading, NodeWatcher } from '../poll.js';
import { selfTestOf } from '../self-test.js';
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
import { countByLlama } from './count.js';
import { isPoolExceeded, llamaError } from './errors.js';
import { LeaveWatch } from './leave-watch.js';
import { LlamaRun } from './run.js';
import { type SlotLease, SlotTable } from './slots.js';
import { type LlamaLayout, type LlamaSlot, type LlamaState, readLlama } from './state.js';

export interface LlamaOptions {
  /** Where the server's `/v1` lies, such as `http://127.0.0.1:8080`. */
  readonly url: URL;
  /** The engine's own key, never a tenant's; null: it knows no keys. */
  readonly key: string | null;
  readonly tls?: EngineTls;
  /** What it has to serve, first the name that it is asked for. A server that stops to list one of them takes no requests. */
  readonly models: readonly string[];
  /** How its slots lie in the KV pool, as the operator knows. @default 'unknown' */
  readonly layout?: LlamaLayout;
  /** Tokens of the pool that the slots share (`--ctx-size`), as the operator knows. @default what one slot takes */
  readonly pool?: number | null;
  /** Lowers what the server says of one request's length. @default none */
  readonly context?: number | null;
  /**
   * `shared`: no request finds anything of an earlier one. `per-tenant`: a slot keeps its prompt for the tenant that sent it, and
   * forgets it when another takes the slot. @default 'shared'
   */
  readonly slots?: 'shared' | 'per-tenant';
  /** At most as many as it has slots. @default its slots */
  readonly runningMax?: number;
  /** What requests may ask of it. @default LLAMA_FEATURES */
  readonly features?: ReadonlySet<UpstreamFeature>;
  readonly clock: Clock;
  /** A prompt's tokens, template included. @default the server's own `/apply-template` and `/tokenize` */
  readonly count?: (prompt: Prompt) => PromptCount;
  readonly onNotice?: NoticeSink;
  readonly everyMs?: number;
  readonly retryMs?: number;
  /** How long a slot of which nothing came is seen idle. @default SETTLE_MS */
  readonly settleMs?: number;
  /** After how long a slot that can't be seen is taken as left. @default UNSEEN_MS */
  readonly unseenMs?: number;
  readonly firstByteMsMax?: number;
  readonly idleMsMax?: number;
}

/** Tokens of the shared pool that are kept for self-tests, which wait in nobody's queue. */
export const SELF_TEST_TOKENS = 16;

export const LLAMA_FEATURES: ReadonlySet<UpstreamFeature> = new Set<UpstreamFeature>([
  'sampling',
  'tools',
  'response-format',
  'logprobs',
  'reasoning',
]);

export const LLAMA_PATHS = ['/props', '/slots', '/v1/models'] as const;

/**
 * One llama-server. It has no salt, so what was sent before is kept from others by slots; and its slots may share one pool, where a
 * request too many ends every other, so that all that runs is held to the pool together and a slot counts until it is left.
 */
export class LlamaUpstream implements Upstream {
  readonly #o: LlamaOptions;
  readonly #inner: OpenAiUpstream;
  readonly #reader: EndpointReader;
  readonly #counter: EndpointReader;
  readonly #count: (prompt: Prompt) => PromptCount;
  readonly #watcher: NodeWatcher<LlamaState>;
  readonly #table = new SlotTable();
  readonly #leaves: LeaveWatch;
  readonly #waiting = new Set<LlamaRun>();
  readonly #node: string;
  #freeBefore: ReadonlyMap<number, number> = new Map();
  #strangers: ReadonlySet<number> = new Set();
  #saidStrangers = false;
  #testing: Promise<string | null> | null = null;
  #readMs: number;

  private constructor(options: LlamaOptions) {
    assert(options.models.length > 0, 'an upstream serves at least one model');
    const { clock, url, key, tls, onNotice, everyMs, retryMs, settleMs, unseenMs } = options;
    this.#o = options;
    this.#node = nodeName(url);
    this.#readMs = clock.wallMs();
    this.#inner = new OpenAiUpstream({
      ...options,
      features: options.features ?? LLAMA_FEATURES,
      errors: (status, error) => this.#meaning(status, error),
      // It answers a stream with `Keep-Alive`, and closes the connection behind it at once.
      keepsConnections: false,
      context: 1,
      pool: null,
      runningMax: 1,
      count: (prompt) => this.count(prompt),
    });
    const base = { clock, url: withoutV1(url), key, ...(tls === undefined ? {} : { tls }) };
    this.#reader = new EndpointReader(base);
    this.#counter = new EndpointReader({ ...base, msMax: COUNT_MS_MAX, bytesMax: COUNT_BYTES_MAX });
    const ask: AskEngine = (path, body) => this.#counter.post(path, body);
    this.#count = options.count ?? countByLlama(ask);
    this.#leaves = new LeaveWatch({
      clock,
      table: this.#table,
      look: () => this.#lookAtSlots(),
      ...(settleMs === undefined ? {} : { settleMs }),
      ...(unseenMs === undefined ? {} : { unseenMs }),
    });
    this.#watcher = new NodeWatcher<LlamaState>({
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
  static async open(options: LlamaOptions): Promise<LlamaUpstream> {
    const upstream = new LlamaUpstream(options);
    await upstream.#watcher.start();
    return upstream;
  }

  describe(): UpstreamDescription {
    const slots = this.#watcher.state?.slotCount ?? 1;
    const runningMax = Math.min(this.#o.runningMax ?? slots, slots);
    return { ...this.#inner.describe(), kind: 'llamacpp', models: this.#o.models, runningMax };
  }

  capacity(): Capacity {
    const state = this.#watcher.state;
    const context = lesser(state?.context ?? null, this.#o.context ?? null);
    const pool = this.#poolOf(state);
    return {
      nodes: [
        {
          node: this.#node,
          role: 'single',
          advertised: state?.context ?? null,
          pool: state?.pool ?? null,
          acceptLimit: null,
          source: state === null ? 'nothing yet' : `/props${LAYOUT_WORDS[this.#layout]}`,
          atMs: this.#readMs,
        },
      ],
      context,
      prefillPool: pool,
      decodePool: pool,
      pageTokens: 1,
    };
  }

  health(): UpstreamHealth {
    const { failure, state } = this.#watcher;
    if (failure !== null || state === null) {
      return { isUp: false, reason: 'unreachable', words: failure ?? 'it was not read yet' };
    }
    const missing = this.#missing(state);
    return missing === null ? { isUp: true } : { isUp: false, reason: 'changed', words: missing };
  }

  count(prompt: Prompt): PromptCount {
    return this.#count(prompt);
  }

  start(request: UpstreamRequest, sink: UpstreamSink): UpstreamRun {
    const run = new LlamaRun(sink, {
      begin: (lease, inner) => this.#inner.start(this.#withSlot(request, lease), inner),
      mayReuse: (lease) => this.#mayReuse(request, lease),
      over: (end) => this.#heedEnd(end),
      finished: (slot) => this.#table.finished(slot),
      cutShort: (slot, hadAnswer, onLeft) => {
        this.#table.cutShort(slot, onLeft);
        this.#leaves.watch(slot, hadAnswer);
      },
    });
    this.#waiting.add(run);
    const leave = this.#table.enter(request.tenant, (lease) => {
      this.#waiting.delete(run);
      run.take(lease);
    });
    run.onGivenUp = () => {
      this.#waiting.delete(run);
      leave();
    };
    return run;
  }

  /** One at a time: that is what is kept for them. */
  selfTest(signal: AbortSignal): Promise<string | null> {
    if (signal.aborted) return this.#inner.selfTest(signal);
    this.#testing ??= this.#selfTest(signal).finally(() => {
      this.#testing = null;
    });
    return this.#testing;
  }

  async close(): Promise<void> {
    this.#watcher.close();
    this.#leaves.close();
    for (const run of this.#waiting) run.abort();
    await this.#inner.close();
    this.#table.leaveAll();
    this.#reader.close();
    this.#counter.close();
  }

  #selfTest(signal: AbortSignal): Promise<string | null> {
    return new Promise((resolve) => {
      let leave = (): void => {};
      const giveUp = (): void => {
        leave();
        resolve('no slot became free in time');
      };
      signal.addEventListener('abort', giveUp, { once: true });
      leave = this.#table.enter(SELF_TEST_TENANT, (lease) => {
        signal.removeEventListener('abort', giveUp);
        void this.#testIn(lease.slot, signal).then(resolve);
      });
    });
  }

  async #testIn(slot: number, signal: AbortSignal): Promise<string | null> {
    const engineFields = { id_slot: slot, cache_prompt: false };
    const start = (request: UpstreamRequest, sink: UpstreamSink) =>
      this.#inner.start({ ...request, engineFields }, sink);
    const words = await selfTestOf({ start }, signal);
    if (words === null) this.#table.finished(slot);
    else {
      this.#table.cutShort(slot, () => {});
      this.#leaves.watch(slot, false);
    }
    return words;
  }

  get #layout(): LlamaLayout {
    return this.#o.layout ?? 'unknown';
  }

  /** What all that run may take together, without what is kept for self-tests. */
  #poolOf(state: LlamaState | null): number | null {
    if (state === null || state.pool === null) return null;
    if (this.#layout === 'split') return state.pool;
    return state.pool > SELF_TEST_TOKENS ? state.pool - SELF_TEST_TOKENS : null;
  }

  #withSlot(request: UpstreamRequest, lease: SlotLease): UpstreamRequest {
    const { slot_id: _, ...fields } = request.engineFields;
    const engineFields = { ...fields, id_slot: lease.slot, cache_prompt: this.#mayReuse(request, lease) };
    // Of a client that leaves, the server finds out while it writes: a whole answer would be made to its end for nobody.
    return { ...request, engineFields, streamed: true };
  }

  /** Whether what the slot kept may serve this request: its own tenant's, or anybody's with the guard off. */
  #mayReuse(request: UpstreamRequest, lease: SlotLease): boolean {
    return request.salt === '' || (this.#o.slots === 'per-tenant' && lease.isOwn);
  }

  /** Where all that ran has ended, what was counted and what was there are not the same. */
  #meaning(status: number | null, error: unknown): ReturnType<typeof llamaError> {
    if (isPoolExceeded(error)) {
      this.#notice('pool-exceeded', 'high', 'its pool was full, and it ended every request that ran in it');
    }
    return llamaError(status, error);
  }

  #heedEnd(end: UpstreamEnd): void {
    if (end.kind === 'failed' && end.code === 'engine_unavailable') void this.#watcher.readNow();
  }

  async #read(): Promise<NodeReading<LlamaState>> {
    this.#freeBefore = this.#table.free;
    const [props, slots, models] = await Promise.all(LLAMA_PATHS.map((path) => this.#reader.get(path)));
    const failed = failedReading(props!) ?? failedReading(models!) ?? unanswered(slots!);
    if (failed !== null) return failed;
    const answers = { props: bodyOf(props!), slots: bodyOf(slots!), models: bodyOf(models!) };
    return { kind: 'read', state: readLlama(answers, { layout: this.#layout, pool: this.#o.pool ?? null }) };
  }

  async #lookAtSlots(): Promise<readonly LlamaSlot[] | 'hidden' | 'failed'> {
    const got = await this.#reader.get('/slots');
    if (got.kind === 'failure') return 'failed';
    const { slots } = readLlama({ props: null, slots: bodyOf(got), models: null }, { layout: 'unknown', pool: null });
    // A server that is still loading says so with 503; one that hides its slots says 501, 403 or 404.
    return slots ?? (got.status === 503 ? 'failed' : 'hidden');
  }

  #onRead(now: LlamaState, before: LlamaState | null): void {
    this.#readMs = this.#o.clock.wallMs();
    this.#table.resize(now.slotCount ?? 0);
    this.#tellChanges(now, before);
    this.#lookForStrangers(now);
  }

  /** A free slot that is busy in two readings, and was not given out in between: somebody asks the server past the gateway. */
  #lookForStrangers({ slots }: LlamaState): void {
    const free = this.#table.free;
    const busy = (slots ?? []).filter(({ id, isProcessing }) => isProcessing && free.has(id));
    const now = new Set(busy.filter(({ id }) => this.#freeBefore.get(id) === free.get(id)).map(({ id }) => id));
    const stays = [...now].some((id) => this.#strangers.has(id));
    this.#strangers = now;
    if (stays && !this.#saidStrangers) {
      this.#notice(
        'foreign-requests',
        'high',
        'it works on requests that did not come from here, and they count against its pool too',
      );
    }
    this.#saidStrangers = stays || (this.#saidStrangers && now.size > 0);
  }

  #tellChanges(now: LlamaState, before: LlamaState | null): void {
    const missing = this.#missing(now);
    if (missing !== null && (before === null || this.#missing(before) === null))
      this.#notice('model-changed', 'high', missing);
    if (this.#poolOf(now) === null && (before === null || this.#poolOf(before) !== null)) {
      const why = now.unknown[0] ?? `its pool of ${shownFigure(now.pool)} holds nothing`;
      this.#notice('capacity-unknown', 'high', `nothing is admitted to it: ${why}`);
    }
    if (now.slots === null && (before === null || before.slots !== null)) {
      const words = 'it does not show its slots, so one whose request was cut short counts for a fixed time';
      this.#notice('slots-hidden', 'medium', words);
    }
    if (before === null) return;
    if (before.version !== now.version) {
      this.#notice('version-changed', 'medium', `from ${shownName(before.version)} to ${shownName(now.version)}`);
    }
    if (before.pool === null || now.pool === null || before.pool === now.pool) return;
    const kind = now.pool < before.pool ? 'pool-shrank' : 'pool-grew';
    this.#notice(kind, 'medium', `from ${shownFigure(before.pool)} to ${shownFigure(now.pool)}`);
  }

  #missing(state: LlamaState): string | null {
    const gone = this.#o.models.find((model) => !state.models.includes(model));
    if (gone === undefined) return null;
    return `it does not serve ${shownName(gone)} but ${shownName(state.models[0] ?? null)}`;
  }

  #notice(kind: NoticeKind, severity: NoticeSeverity, words: string): void {
    this.#o.onNotice?.({ kind, severity, node: this.#node, words });
  }
}

/** An owner of slots that no tenant is: they are numbered from 1. */
const SELF_TEST_TENANT = 0;

const LAYOUT_WORDS: Readonly<Record<LlamaLayout, string>> = {
  unified: ', one pool for all slots as configured',
  split: ', a part of the pool for each slot as configured',
  unknown: '; it does not say whether its slots share the pool, so they are taken to share what one takes',
};

function unanswered(got: Got): Extract<NodeReading<never>, { kind: 'failed' }> | null {
  return got.kind === 'failure' ? failedReading(got) : null;
}

function bodyOf(got: Got): string | null {
  return got.kind === 'answer' && got.status === 200 ? got.body : null;
}

/** The lesser of what is known; the operator's figure alone lowers nothing where the server says none. */
function lesser(said: number | null, own: number | null): number | null {
  if (said === null || own === null) return said;
  return Math.min(said, own);
}

function withoutV1(url: URL): URL {
  return new URL(url.href.replace(/\/(v1\/?)?$/, ''));
}
