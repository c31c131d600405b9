/** What one vLLM server is and holds, put together from its answers. Pure: nothing here asks, and nothing here waits. */
import { readModels } from '../models.js';
import { parsePrometheus } from '../prometheus.js';
import type { Fact, Reading } from '../reading.js';
import { tokensOf } from '../shapes.js';
import { isAtLeastVersion, parseVersion } from '../version.js';
import { readMetrics, readVersion } from './read.js';

/** Bodies as they came; null: that endpoint did not answer with 200. */
export interface VllmAnswers {
  readonly version: string | null;
  readonly models: string | null;
  readonly metrics: string | null;
}

/** One engine behind the server, that is, one data-parallel rank: a request lives on one of them. */
export interface VllmEngine {
  /** As its label says; `0` where there is one. */
  readonly rank: string;
  /** Tokens that one request can fill; null: not said, or not in a way that could be trusted. */
  readonly pool: number | null;
  /** Requests that wait for room; null: not said. */
  readonly waiting: number | null;
  readonly running: number | null;
  /** Share of the pool in use, 0 to 1; null: not said. */
  readonly usage: number | null;
  /** Changes whenever the engine gets on with any request. */
  readonly progress: string;
  /** Its memory is given away: it takes requests and answers none. */
  readonly isAsleep: boolean;
}

export interface VllmState {
  readonly version: string | null;
  readonly models: readonly string[];
  /** `max_model_len`; null: not said. */
  readonly context: number | null;
  /** The least of its engines' pools; null as soon as one of them is not known. */
  readonly pool: number | null;
  readonly pageTokens: number;
  readonly engines: readonly VllmEngine[];
  /** When the server's process began, in seconds since 1970; null: not said. */
  readonly startedS: number | null;
  /** Whether `cache_salt` separates prefixes in this version; null: the version is not known. */
  readonly honoursSalt: boolean | null;
  /** Null: not said. */
  readonly cachesPrefixes: boolean | null;
  /** Why the context or the pool is not known; empty where both are. */
  readonly unknown: readonly string[];
}

/** The first version whose prefix cache takes a salt. */
export const SALT_SINCE = '0.9.0';

type Sample = Extract<Fact, { kind: 'sample' }>;

export function readVllm(answers: VllmAnswers): VllmState {
  const version = factOf(jsonReading(answers.version, readVersion), 'version')?.text ?? null;
  const cards = jsonReading(answers.models, readModels);
  const metrics = answers.metrics === null ? null : readMetrics(answers.metrics);
  const lengths = factsOf(cards, 'advertised').map(({ tokens }) => tokens);
  const context = lengths.length === 0 ? null : Math.min(...lengths);
  const pages = factsOf(metrics, 'page').map(({ tokens }) => tokens);
  const engines = enginesOf(factsOf(metrics, 'sample'));
  const pools = engines.map(({ pool }) => pool);
  const pool = pools.length === 0 || pools.includes(null) ? null : Math.min(...(pools as number[]));
  const caching = factsOf(metrics, 'flag').find(({ name }) => name === 'enable-prefix-caching')?.value;
  return {
    version,
    models: factsOf(cards, 'model').map(({ name }) => name),
    context,
    pool,
    pageTokens: pages.length === 0 ? 1 : Math.max(...pages),
    engines,
    startedS: answers.metrics === null ? null : startOf(answers.metrics),
    honoursSalt: isAtLeastVersion(version === null ? null : parseVersion(version), SALT_SINCE),
    cachesPrefixes: caching === undefined || caching === null ? null : caching === 'true',
    unknown: [
      ...(context === null ? ['/v1/models does not say max_model_len'] : []),
      ...(pool === null ? [whyNoPool(metrics, engines)] : []),
    ],
  };
}

function startOf(metrics: string): number | null {
  return parsePrometheus(metrics, (name) => name === 'process_start_time_seconds')[0]?.value ?? null;
}

function whyNoPool(metrics: Reading | null, engines: readonly VllmEngine[]): string {
  if (metrics === null) return '/metrics does not answer as vLLM does';
  const unsaid = factOf(metrics, 'pool-unsaid')?.why;
  if (unsaid !== undefined) return unsaid;
  const missing = engines.filter(({ pool }) => pool === null).length;
  return engines.length === 0
    ? '/metrics names no engine'
    : `vllm:cache_config_info does not say what ${missing} of ${engines.length} engines hold`;
}

const INFO = 'vllm:cache_config_info';
/** Counters that stand still while nothing runs. */
const PROGRESS = [
  'vllm:prompt_tokens_total',
  'vllm:generation_tokens_total',
  'vllm:request_success_total',
  'vllm:num_preemptions_total',
] as const;

/** Every engine that any sample names: one that does not say its pool is not passed over. */
function enginesOf(samples: readonly Sample[]): VllmEngine[] {
  const known = samples.filter(
    ({ name }) => name === INFO || name === WAITING || (PROGRESS as readonly string[]).includes(name),
  );
  const ranks = new Set(known.map(({ labels }) => labels.engine ?? '0'));
  return [...ranks].map((rank) =>
    engineOf(
      rank,
      samples.filter(({ labels }) => (labels.engine ?? '0') === rank),
    ),
  );
}

const WAITING = 'vllm:num_requests_waiting';
const SLEEP = 'vllm:engine_sleep_state';

function engineOf(rank: string, samples: readonly Sample[]): VllmEngine {
  const sum = (name: string): number | null => {
    const found = samples.filter((sample) => sample.name === name);
    return found.length === 0 ? null : found.reduce((total, { value }) => total + value, 0);
  };
  const byReason = samples.filter(({ name }) => name === `${WAITING}_by_reason`);
  const forRoom = byReason.filter(({ labels }) => labels.reason === 'capacity');
  const info = samples.find(({ name }) => name === INFO);
  return {
    rank,
    pool: info === undefined ? null : poolOf(info.labels),
    waiting: byReason.length === 0 ? sum(WAITING) : forRoom.reduce((total, { value }) => total + value, 0),
    running: sum('vllm:num_requests_running'),
    usage: sum('vllm:kv_cache_usage_perc'),
    isAsleep: samples.some(
      ({ name, labels, value }) => name === SLEEP && labels.sleep_state === 'awake' && value === 0,
    ),
    progress: PROGRESS.map((name) => sum(name) ?? '').join('/'),
  };
}

/**
 * Tokens that one request can fill. One block is never given out. Where the printed size is no product of blocks and block
 * size (hybrid models, context parallelism) the share of the blocks that are given out is taken of it. An engine that prints no
 * size and whose groups of layers may differ says nothing that could be relied on.
 */
function poolOf(labels: Readonly<Record<string, string>>): number | null {
  const blocks = tokensOf(labels.num_gpu_blocks);
  const block = tokensOf(labels.block_size);
  if (blocks === null || block === null || blocks < 2) return null;
  const printed = tokensOf(labels.kv_cache_size_tokens);
  if (printed !== null) return Math.floor((printed / blocks) * (blocks - 1));
  if (labels.kv_cache_size_tokens !== undefined) return null;
  const mayDiffer = [labels.mamba_block_size, labels.sliding_window].some(
    (said) => said !== undefined && said !== 'None',
  );
  return mayDiffer ? null : (blocks - 1) * block;
}

function jsonReading(body: string | null, read: (json: unknown) => Reading | null): Reading | null {
  if (body === null) return null;
  try {
    return read(JSON.parse(body));
  } catch {
    return null;
  }
}

function factsOf<Kind extends Fact['kind']>(reading: Reading | null, kind: Kind): Extract<Fact, { kind: Kind }>[] {
  const facts = reading?.facts ?? [];
  return facts.filter((fact): fact is Extract<Fact, { kind: Kind }> => fact.kind === kind);
}

function factOf<Kind extends Fact['kind']>(reading: Reading | null, kind: Kind): Extract<Fact, { kind: Kind }> | null {
  return factsOf(reading, kind)[0] ?? null;
}
