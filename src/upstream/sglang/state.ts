/** What one SGLang node is just now, from its answers; how two such looks differ; and which two nodes may be paired. Pure. */
import { type NoticeKind, type NoticeSeverity, shownFigure, shownName, type UpstreamNotice } from '../notice.js';
import type { Fact, FactKind, Reading } from '../reading.js';
import { asList, asPort, asShape, asText, asTokens, field, type Shape, TOKENS_MAX } from '../shapes.js';
import type { NodeRole } from '../upstream.js';
import { RANKS_MAX, readMetrics, readServerInfo } from './read.js';

/** Tokens throughout; null: not said, or said as something that is no number of tokens. */
export interface SglangState {
  readonly version: string | null;
  /** Differs from start to start; never shown. */
  readonly start: string | null;
  readonly role: NodeRole;
  readonly model: string | null;
  readonly context: number | null;
  /** Of the data-parallel rank that has the least. */
  readonly pool: number | null;
  /** The longest prompt that is taken. */
  readonly acceptLimit: number | null;
  readonly pageTokens: number | null;
  readonly kvDtype: string | null;
  /** Whether KV pages are checksummed from prefill to decode. */
  readonly checksum: boolean;
  readonly radixCacheOff: boolean;
  /** Requests that run at once, all ranks together. */
  readonly runningMax: number | null;
  /** Where a prefill node's bootstrap server listens. */
  readonly bootstrapPort: number | null;
  readonly hasMetrics: boolean;
  /** Data-parallel ranks that told of themselves. */
  readonly ranks: number;
}

/** Answers of one node; only the first must be there. `models` is wanted where `info` says no context. */
export interface SglangAnswers {
  readonly info: unknown;
  readonly models?: Reading | null;
  readonly metrics?: string | null;
}

/** More than engines keep to themselves of what their pool holds (6 tokens, or a block of a diffusion model). */
const SLACK_TOKENS_MAX = 1024;
const START_CHARACTERS_MAX = 2_000;

/** Null: it is no `/server_info` of SGLang's. */
export function sglangState({ info, models, metrics }: SglangAnswers): SglangState | null {
  const reading = readServerInfo(info);
  const shape = asShape(info);
  if (reading === null || shape === null) return null;
  const states = asList(field(shape, 'internal_states')).slice(0, RANKS_MAX).map(asShape);
  const first = <K extends FactKind>(kind: K) => factOf(reading, kind);
  const context = first('advertised')?.tokens ?? (models ? (factOf(models, 'advertised')?.tokens ?? null) : null);
  const second = metrics === null || metrics === undefined ? null : readMetrics(metrics);
  const pools = poolsOf(shape, states, reading, second);
  const role = first('role')?.role ?? 'unknown';
  const start = field(shape, 'startup_time');
  return {
    version: first('version')?.text ?? null,
    start: start === undefined ? null : (JSON.stringify(start) ?? '').slice(0, START_CHARACTERS_MAX),
    role,
    model: first('model')?.name ?? null,
    context,
    pool: pools === null ? null : least(pools, role === 'decode' ? slidingPools(reading) : []),
    acceptLimit: acceptLimit(shape, context, pools),
    pageTokens: first('page')?.tokens ?? null,
    kvDtype: asText(field(shape, 'kv_cache_dtype')),
    checksum: field(shape, 'disaggregation_enable_kv_checksum') === true,
    radixCacheOff: field(shape, 'disable_radix_cache') === true,
    runningMax: runningMax(shape, states),
    bootstrapPort: asPort(field(shape, 'disaggregation_bootstrap_port')),
    hasMetrics: field(shape, 'enable_metrics') === true,
    ranks: Math.max(1, states.length),
  };
}

function factOf<K extends FactKind>(reading: Reading, kind: K): Extract<Fact, { kind: K }> | undefined {
  return reading.facts.find((fact): fact is Extract<Fact, { kind: K }> => fact.kind === kind);
}

function least(one: readonly number[], other: readonly number[]): number {
  return Math.min(...one, ...other);
}

/**
 * The pools of all ranks, by both sources; null where one of them is said as something that is no pool, or a rank is silent: the
 * smallest decides, so that one that is not known leaves nothing known.
 */
function poolsOf(
  info: Shape,
  states: readonly (Shape | null)[],
  reading: Reading,
  second: Reading | null,
): readonly number[] | null {
  if (isSaidWrongly(info, 'max_total_num_tokens')) return null;
  for (const state of states) {
    const memory = state === null ? null : asShape(field(state, 'memory_usage'));
    if (memory !== null && isSaidWrongly(memory, 'token_capacity')) return null;
  }
  if (reading.facts.some(({ kind }) => kind === 'pool-unsaid')) return null;
  const pools = [...reading.facts, ...(second?.facts ?? [])].flatMap((fact) =>
    fact.kind === 'pool' ? [fact.tokens] : [],
  );
  return pools.length === 0 ? null : pools;
}

/** `0`, `None` and `-1` are said, and are no figure. */
function isSaidWrongly(shape: Shape, name: string): boolean {
  return Object.hasOwn(shape, name) && asTokens(field(shape, name)) === null;
}

/** Decode of a sliding-window model allocates in both pools before a transfer. */
function slidingPools(reading: Reading): number[] {
  return reading.facts.flatMap((fact) => (fact.kind === 'pool-swa' ? [fact.tokens] : []));
}

/**
 * The engine says the shortest prompt that it refuses, for its first rank alone. Another rank with a smaller pool keeps as much back
 * from its own.
 */
function acceptLimit(info: Shape, context: number | null, pools: readonly number[] | null): number | null {
  const refused = asTokens(field(info, 'max_req_input_len'));
  if (refused === null || refused === 1 || context === null || pools === null) return null;
  const said = asTokens(field(info, 'max_total_num_tokens'));
  const top = said ?? pools[0]!;
  const slack = Math.min(context, top) - refused;
  const smallest = Math.min(...pools);
  if (said !== null && smallest >= said) return Math.min(refused - 1, smallest);
  // The limit was made for another pool than those that are known.
  if (slack < 0 || slack > SLACK_TOKENS_MAX) return null;
  const own = Math.min(context, smallest) - slack - 1;
  return own < 1 ? null : Math.min(refused - 1, own);
}

function runningMax(info: Shape, states: readonly (Shape | null)[]): number | null {
  let sum = 0;
  for (const state of states) {
    const own = state === null ? null : asTokens(field(state, 'effective_max_running_requests_per_dp'));
    if (own === null) return asTokens(field(info, 'max_running_requests'));
    sum = Math.min(sum + own, TOKENS_MAX);
  }
  return states.length === 0 ? asTokens(field(info, 'max_running_requests')) : sum;
}

/** The longest prompt that the node holds and takes; null: not known, so that nothing is admitted. */
export function promptMax({ pool, acceptLimit: limit }: SglangState): number | null {
  return pool === null || limit === null ? null : Math.min(pool, limit);
}

/** What has changed between two looks at one node, for the operators. `before` null: the first look. */
export function sglangChanges(node: string, before: SglangState | null, now: SglangState): UpstreamNotice[] {
  const notices: UpstreamNotice[] = [];
  const say = (kind: NoticeKind, severity: NoticeSeverity, words: string): void => {
    notices.push({ kind, severity, node, words });
  };
  if (promptMax(now) === null && (before === null || promptMax(before) !== null)) {
    say('capacity-unknown', 'high', `it does not say what it holds (${unsaid(now)}), so nothing is admitted`);
  }
  if (before === null) return notices;
  if (before.version !== now.version)
    say('version-changed', 'medium', `version ${shownName(before.version)} became ${shownName(now.version)}`);
  else if (before.start !== now.start) say('restarted', 'low', 'it was started again');
  if (before.model !== now.model)
    say('model-changed', 'high', `model ${shownName(before.model)} became ${shownName(now.model)}`);
  if (before.role !== now.role) say('role-switched', 'high', `role ${before.role} became ${now.role}`);
  if (before.pool !== null && now.pool !== null && before.pool !== now.pool) {
    const words = `pool of ${shownFigure(before.pool)} became ${shownFigure(now.pool)}`;
    if (now.pool < before.pool) say('pool-shrank', 'medium', words);
    else say('pool-grew', 'info', words);
  }
  return notices;
}

function unsaid({ pool, acceptLimit: limit, context }: SglangState): string {
  const missing = [
    ...(context === null ? ['context_length'] : []),
    ...(pool === null ? ['token_capacity'] : []),
    ...(limit === null ? ['max_req_input_len'] : []),
  ];
  return `no usable ${missing.join(', ')}`;
}

/** Why a prefill node must not be paired with a decode node; null: it may. */
export function pairMismatch(prefill: SglangState, decode: SglangState): string | null {
  if (prefill.role !== 'prefill') return `its role is ${prefill.role}`;
  if (decode.role !== 'decode') return `the role of the decode node is ${decode.role}`;
  for (const [what, key] of MUST_AGREE) {
    const [own, other] = [prefill[key], decode[key]];
    if (own === null || own !== other) return `${what} ${shown(own)}, decode has ${shown(other)}`;
  }
  return null;
}

const MUST_AGREE = [
  ['version', 'version'],
  ['page size', 'pageTokens'],
  ['KV cache type', 'kvDtype'],
  ['context', 'context'],
  ['model', 'model'],
  ['KV checksum', 'checksum'],
] as const satisfies readonly (readonly [string, keyof SglangState])[];

function shown(value: string | number | boolean | null): string {
  return typeof value === 'string' || value === null ? shownName(value) : String(value);
}
