/** vLLM 0.8 to 0.33: what its answers and metrics say. Pure; null for what is none of them. The log is in `read-log.ts`. */
import { parsePrometheus, type Sample } from '../prometheus.js';
import type { Fact, KvTransferConfig, Reading } from '../reading.js';
import { asList, asPort, asShape, asText, field, flagText, keepable, type Shape, tokensOf } from '../shapes.js';
import type { NodeRole } from '../upstream.js';

const METRIC = /^(?:ray_)?vllm[:_]/;
/** Scalars of a connector's extra configuration that are kept. */
export const EXTRA_MAX = 100;
/** Connectors inside connectors are followed so far. */
const NESTING_MAX = 4;

/** `GET /version`. */
export function readVersion(json: unknown): Reading | null {
  const shape = asShape(json);
  const version = shape === null ? null : asText(field(shape, 'version'));
  if (shape === null || version === null || Object.keys(shape).length !== 1) return null;
  return { engine: 'vllm', facts: [{ kind: 'version', text: version }] };
}

/** `GET /metrics`; null without one of vLLM's. Through Ray the names begin with `ray_`. */
export function readMetrics(text: string): Reading | null {
  const samples = parsePrometheus(text, (name) => METRIC.test(name));
  if (samples.length === 0) return null;
  const facts: Fact[] = [];
  const engines = new Set(samples.map(({ labels }) => labels.engine).filter((engine) => engine !== undefined));
  for (const sample of samples) {
    const name = sample.name.replace(/^ray_/, '').replace(/^vllm_/, 'vllm:');
    if (name === 'vllm:cache_config_info') facts.push(...cacheFacts(sample, engines.size > 1));
    facts.push({ kind: 'sample', name, labels: keptLabels(sample.labels), value: sample.value, line: sample.line });
  }
  const model = samples.find(({ labels }) => labels.model_name !== undefined)?.labels.model_name;
  if (model !== undefined && model !== '') facts.push({ kind: 'model', name: model });
  return { engine: 'vllm', facts };
}

function keptLabels(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, keepable(name, value) ?? '']));
}

/** Labels of the configuration that are flags too. */
const LABEL_FLAGS: Readonly<Record<string, string>> = {
  enable_prefix_caching: 'enable-prefix-caching',
  prefix_caching_hash_algo: 'prefix-caching-hash-algo',
  num_gpu_blocks_override: 'num-gpu-blocks-override',
  gpu_memory_utilization: 'gpu-memory-utilization',
  mamba_cache_mode: 'mamba-cache-mode',
};

/**
 * One series for each engine, that is, for each data-parallel rank: a request lives on one, so they are never added up. One
 * block is never given out (the null block), and only the product of blocks and block size tells it; for a hybrid model that
 * product means nothing, and the figure that is printed is requests of full length times that length.
 */
function cacheFacts({ labels, line }: Sample, several: boolean): Fact[] {
  const facts: Fact[] = [];
  const rank = several ? (labels.engine ?? null) : null;
  const blocks = tokensOf(labels.num_gpu_blocks);
  const block = tokensOf(labels.block_size);
  const printed = tokensOf(labels.kv_cache_size_tokens);
  const product = blocks === null || block === null ? null : blocks * block;
  if (block !== null) facts.push({ kind: 'page', tokens: block, line });
  if (printed !== null && printed !== product) {
    facts.push({ kind: 'pool', tokens: printed, rank, estimate: true, line });
  } else if (product !== null && product > block!) {
    facts.push({ kind: 'pool', tokens: product - block!, rank, estimate: printed === null && isHybrid(labels), line });
  } else {
    const said = labels.num_gpu_blocks ?? labels.kv_cache_size_tokens ?? 'nothing';
    facts.push({
      kind: 'pool-unsaid',
      why: `vllm:cache_config_info says \`${said.slice(0, 40)}\` of its blocks`,
      line,
    });
  }
  const times = Number(labels.kv_cache_max_concurrency ?? Number.NaN);
  if (Number.isFinite(times) && times > 0) facts.push({ kind: 'concurrency', times, rank, line });
  for (const [label, name] of Object.entries(LABEL_FLAGS)) {
    const value = labels[label];
    if (value === undefined) continue;
    facts.push({ kind: 'flag', name, value: pythonText(value), form: 'resolved', line });
  }
  return facts;
}

function isHybrid(labels: Readonly<Record<string, string>>): boolean {
  return labels.mamba_block_size !== undefined && labels.mamba_block_size !== 'None';
}

function pythonText(value: string): string | null {
  return value === 'None' ? null : value === 'True' ? 'true' : value === 'False' ? 'false' : value;
}

/** `--kv-transfer-config`, parsed. Null: it is no such object. */
export function readTransferConfig(json: unknown): KvTransferConfig | null {
  const shape = asShape(json);
  const connector = shape === null ? null : asText(field(shape, 'kv_connector'));
  if (shape === null || connector === null) return null;
  const extra = asShape(field(shape, 'kv_connector_extra_config'));
  return {
    connector,
    role: asText(field(shape, 'kv_role')),
    loadFailurePolicy: asText(field(shape, 'kv_load_failure_policy')),
    ip: asText(field(shape, 'kv_ip')),
    port: asPort(field(shape, 'kv_port')),
    extra: extra === null ? {} : scalars(extra),
    inner: extra === null ? [] : innerConnectors(extra, 0),
  };
}

function scalars(shape: Shape): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(shape).slice(0, EXTRA_MAX)) {
    if (typeof value === 'object') continue;
    const text = keepable(name, flagText(value));
    if (text !== null && name !== '__proto__') kept[name] = text;
  }
  return kept;
}

function innerConnectors(extra: Shape, depth: number): string[] {
  if (depth >= NESTING_MAX) return [];
  const found: string[] = [];
  for (const item of asList(field(extra, 'connectors')).slice(0, EXTRA_MAX)) {
    const shape = asShape(item);
    const name = shape === null ? null : asText(field(shape, 'kv_connector'));
    if (name !== null) found.push(name);
    const deeper = shape === null ? null : asShape(field(shape, 'kv_connector_extra_config'));
    if (deeper !== null) found.push(...innerConnectors(deeper, depth + 1));
  }
  return found;
}

/** A producer fills KV for others, a consumer takes it; `kv_both` may be either. */
export function vllmRole(config: KvTransferConfig): NodeRole {
  if (config.role === 'kv_producer') return 'prefill';
  return config.role === 'kv_consumer' ? 'decode' : 'unknown';
}

/**
 * `--max-model-len` as people write it: `k`, `m`, `g` are powers of 1000 and `K`, `M`, `G` of 1024; `auto` and −1 mean what
 * fits. Null: none of these, or what fits.
 */
export function humanTokens(text: string): number | null {
  const match = /^(\d{1,13})(?:\.(\d{1,6}))?([kKmMgG]?)$/.exec(text.trim().replaceAll('_', ''));
  if (match === null) return null;
  const suffix = match[3]!;
  if (suffix === '' && match[2] !== undefined) return null;
  const base = suffix === suffix.toLowerCase() ? 1000 : 1024;
  const power = suffix === '' ? 0 : 'kmg'.indexOf(suffix.toLowerCase()) + 1;
  return tokensOf(String(Math.round(Number(`${match[1]}.${match[2] ?? '0'}`) * base ** power)));
}
