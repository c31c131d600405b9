/** What a node says of itself: SGLang's fields where this engine has an honest value for them, and no others. */
import { effectiveLimit } from '../../handoff/admission.js';
import { faultsOf } from '../../handoff/faults.js';
import { ALL_GUARDS, guardsOf } from '../../handoff/guards.js';
import { LAB_CONFIG } from '../../model/lab-weights.js';
import type { EngineStats, PageCounts } from '../../handoff/engine-port.js';
import type { EngineConfig } from '../config.js';
import { ENGINE_MODEL, ENGINE_VERSION } from '../coordinator.js';
import { geometryOf } from '../parts.js';
import type { LegRole } from './leg.js';

export const VERSION: string = `cofferdam-${ENGINE_VERSION}`;

/** A node as its listener presents it. */
export interface NodeView {
  readonly role: LegRole;
  readonly config: EngineConfig;
  readonly host: string;
  readonly port: number;
  /** Seconds that the start took, and when it was (seconds since 1970). */
  readonly startupS: number;
  readonly startedS: number;
}

/** Tokens of the pool that this node stands for: its own, or as a single node the smaller one, which decides what fits. */
export function poolTokens({ role, config }: NodeView): number {
  if (role === 'single') return Math.min(config.prefillPool, config.decodePool);
  return role === 'prefill' ? config.prefillPool : config.decodePool;
}

export function poolPages(view: NodeView, stats: EngineStats): PageCounts {
  const { role, config } = view;
  const isPrefill = role === 'prefill' || (role === 'single' && config.prefillPool < config.decodePool);
  return isPrefill ? stats.prefillPages : stats.decodePages;
}

/** As in SGLang: the shortest prompt that is refused. */
export function refusedLength(view: NodeView): number {
  return Math.min(view.config.context, poolTokens(view) + 1);
}

export const disaggregationMode = (role: LegRole): string => (role === 'single' ? 'null' : role);

const gigabytes = (bytes: number): number => Math.round((bytes / 1e9) * 1e6) / 1e6;

export function kvCacheGb(view: NodeView): number {
  const { config } = view;
  return gigabytes((poolTokens(view) / config.pageTokens) * geometryOf(config).pageBytes);
}

/** Of the checkpoint in float32. */
export function weightGb(): number {
  const { vocab, hidden, layers, heads, kvHeads, headDim, intermediate } = LAB_CONFIG;
  const layer = 2 * hidden + 2 * hidden * headDim * (heads + kvHeads) + 3 * hidden * intermediate;
  return gigabytes(4 * (2 * vocab * hidden + hidden + layers * layer));
}

/** What SGLang calls the server's arguments. */
function serverArgs(view: NodeView): Record<string, unknown> {
  const { role, config } = view;
  return {
    model_path: ENGINE_MODEL,
    tokenizer_path: ENGINE_MODEL,
    served_model_name: ENGINE_MODEL,
    skip_tokenizer_init: false,
    trust_remote_code: false,
    context_length: config.context,
    is_embedding: false,
    dtype: 'float32',
    quantization: null,
    kv_cache_dtype: 'float32',
    max_running_requests: config.runningMax,
    max_total_tokens: poolTokens(view),
    chunked_prefill_size: config.chunkTokens,
    page_size: config.pageTokens,
    schedule_policy: 'fcfs',
    enable_priority_scheduling: false,
    disable_radix_cache: !config.prefixCache,
    tp_size: 1,
    pp_size: 1,
    dp_size: 1,
    dcp_size: 1,
    device: 'cpu',
    random_seed: config.seed,
    host: view.host,
    port: view.port,
    api_key: null,
    admin_api_key: null,
    weight_version: 'default',
    allow_auto_truncate: false,
    enable_metrics: true,
    enable_lora: false,
    enable_custom_logit_processor: false,
    disaggregation_mode: disaggregationMode(role),
    disaggregation_transfer_backend: 'shared-memory',
    disaggregation_bootstrap_port: null,
    load_balance_method: 'follow_bootstrap_room',
  };
}

export function serverInfo(view: NodeView, stats: EngineStats, throughput: number): string {
  const { config } = view;
  const args = serverArgs(view);
  return JSON.stringify({
    ...args,
    status: 'ready',
    max_total_num_tokens: poolTokens(view),
    max_req_input_len: refusedLength(view),
    startup_time: view.startupS,
    internal_states: [
      {
        ...args,
        startup_time: view.startupS,
        effective_max_running_requests_per_dp: config.runningMax,
        last_gen_throughput: throughput,
        memory_usage: memoryUsage(view),
      },
    ],
    version: VERSION,
    kv_events: null,
    cofferdam: ownFacts(view, stats),
  });
}

function memoryUsage(view: NodeView): Record<string, unknown> {
  return {
    weight: weightGb(),
    kvcache: kvCacheGb(view),
    token_capacity: poolTokens(view),
    token_capacity_swa: null,
    graph: {},
  };
}

/** What SGLang has no field for. */
function ownFacts(view: NodeView, stats: EngineStats): Record<string, unknown> {
  const { config } = view;
  const limit = effectiveLimit(config);
  return {
    faults: faultsOf(config.rules.faults),
    guards_off: guardsOf(ALL_GUARDS & ~config.rules.guards),
    effective_limit: limit?.tokens ?? null,
    limited_by: limit?.limitedBy ?? null,
    pages_verified: stats.pagesVerified,
  };
}

export function modelInfo(view: NodeView): string {
  return JSON.stringify({
    model_path: ENGINE_MODEL,
    served_model_name: ENGINE_MODEL,
    tokenizer_path: ENGINE_MODEL,
    is_generation: true,
    preferred_sampling_params: null,
    weight_version: 'default',
    load_format: 'auto',
    reasoning_parser: null,
    tool_call_parser: null,
    has_image_understanding: false,
    has_audio_understanding: false,
    model_type: 'llama',
    architectures: ['LlamaForCausalLM'],
    disaggregation_mode: disaggregationMode(view.role),
  });
}

/** `max_model_len` is the context, as in SGLang: NOT what the pools let in. */
export function modelsJson(view: NodeView): string {
  const card = {
    id: ENGINE_MODEL,
    object: 'model',
    created: view.startedS,
    owned_by: 'cofferdam',
    root: ENGINE_MODEL,
    parent: null,
    max_model_len: view.config.context,
  };
  return JSON.stringify({ object: 'list', data: [card] });
}

export interface Queues {
  /** Legs that wait for their partner at this node. */
  readonly bootstrap: number;
  /** Requests that wait for a slot. */
  readonly waiting: number;
}

/** As in SGLang: pages that are kept for a later prompt can be given up, and are not in use. */
export function usedTokens(view: NodeView, stats: EngineStats): number {
  const { leased, draining } = poolPages(view, stats);
  return (leased + draining) * view.config.pageTokens;
}

export function loadsJson(
  view: NodeView,
  stats: EngineStats,
  queues: Queues,
  wallMs: number,
  throughput: number,
): string {
  const used = usedTokens(view, stats);
  const capacity = poolTokens(view);
  const load = {
    timestamp: wallMs / 1000,
    dp_rank: 0,
    num_running_reqs: stats.running,
    num_waiting_reqs: queues.waiting,
    num_used_tokens: used,
    num_total_tokens: used,
    max_total_num_tokens: capacity,
    max_running_requests: view.config.runningMax,
    token_usage: used / capacity,
    gen_throughput: throughput,
    cache_hit_rate: 0,
    utilization: stats.running / view.config.runningMax,
    memory: { weight_gb: weightGb(), kv_cache_gb: kvCacheGb(view), graph_gb: 0, token_capacity: capacity },
    disaggregation: {
      mode: disaggregationMode(view.role),
      prefill_bootstrap_queue_reqs: view.role === 'prefill' ? queues.bootstrap : 0,
      decode_prealloc_queue_reqs: view.role === 'decode' ? queues.bootstrap : 0,
    },
    queues: { waiting: queues.waiting, grammar: 0, paused: 0, retracted: 0 },
  };
  return JSON.stringify({
    timestamp: new Date(wallMs).toISOString(),
    version: VERSION,
    accelerator: null,
    num_accelerators: 1,
    loads: [load],
  });
}

export function tokenizeJson(ids: Int32Array, context: number): string {
  return JSON.stringify({ tokens: Array.from(ids), count: ids.length, max_model_len: context });
}
