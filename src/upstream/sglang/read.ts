/** SGLang 0.4 to 0.5.23: what its answers and metrics say. Pure; null for what is none of them. The log is in `read-log.ts`. */
import { parsePrometheus, type Sample } from '../prometheus.js';
import type { Fact, Reading } from '../reading.js';
import {
  asList,
  asPort,
  asShape,
  asText,
  asTokens,
  field,
  flagText,
  isSecretName,
  keepable,
  keepableVariable,
  type Shape,
  tokensOf,
} from '../shapes.js';
import type { NodeRole } from '../upstream.js';
import { isAtLeastVersion, parseVersion } from '../version.js';

/** Ranks of one node that are looked at. */
export const RANKS_MAX = 1024;
/** Metrics kept of one node. */
const METRIC = /^(?:ray_)?sglang[:_]/;

/** Fields of `/server_info` that are no flags. */
const NOT_FLAGS: ReadonlySet<string> = new Set([
  'status',
  'max_total_num_tokens',
  'max_req_input_len',
  'startup_time',
  'internal_states',
  'version',
  'kv_events',
  'kv_event_sources',
  'launch_command',
  'frontend',
  'hicache_object_layout',
]);

export function sglangRole(mode: unknown): NodeRole | null {
  if (mode === 'prefill' || mode === 'decode') return mode;
  return mode === 'null' || mode === null || mode === 'unified' ? 'single' : null;
}

/** `GET /server_info`, or `/get_server_info` as older versions name it. */
export function readServerInfo(json: unknown): Reading | null {
  const info = asShape(json);
  if (info === null || !('internal_states' in info || 'max_total_num_tokens' in info)) return null;
  if (!('model_path' in info || 'version' in info || 'disaggregation_mode' in info)) return null;
  const facts: Fact[] = [{ kind: 'flags-complete', form: 'resolved' }];
  const version = asText(field(info, 'version'));
  if (version !== null) facts.push({ kind: 'version', text: version });
  facts.push(...figures(info), ...flagFacts(info), ...stateFacts(info));
  return { engine: 'sglang', facts };
}

function figures(info: Shape): Fact[] {
  const facts: Fact[] = [];
  const states = asList(field(info, 'internal_states')).slice(0, RANKS_MAX).map(asShape);
  // The role that it plays now: after a role switch the configuration still tells the old one.
  const live = states.map((state) => (state === null ? undefined : field(state, 'disaggregation_mode')));
  const role = sglangRole(live.find((mode) => typeof mode === 'string') ?? field(info, 'disaggregation_mode'));
  if (role !== null && ('disaggregation_mode' in info || live.some(Boolean))) facts.push({ kind: 'role', role });
  const context = asTokens(field(info, 'context_length'));
  if (context !== null) facts.push({ kind: 'advertised', tokens: context });
  const page = asTokens(field(info, 'page_size'));
  if (page !== null) facts.push({ kind: 'page', tokens: page });
  const refused = asTokens(field(info, 'max_req_input_len'));
  if (refused !== null) facts.push({ kind: 'refused-from', tokens: refused });
  const port = asPort(field(info, 'port'));
  const host = asText(field(info, 'host'));
  if (port !== null && host !== null) facts.push({ kind: 'listens', host, port });
  const model = asText(field(info, 'served_model_name')) ?? asText(field(info, 'model_path'));
  if (model !== null) facts.push({ kind: 'model', name: model });
  if (field(info, 'status') === 'ready') facts.push({ kind: 'ready' });
  facts.push(...pools(info, states));
  return facts;
}

/** Each rank has a pool of its own; the figure on top is the first rank's. */
function pools(info: Shape, states: readonly (Shape | null)[]): Fact[] {
  const facts: Fact[] = [];
  const top = asTokens(field(info, 'max_total_num_tokens'));
  const context = asTokens(field(info, 'dcp_size')) ?? 1;
  if (context > 1) {
    // Up to 0.5.19 the figure counts one rank's rows; later ones count them all.
    const whole = isAtLeastVersion(parseVersion(asText(field(info, 'version')) ?? ''), '0.5.21') ?? false;
    if (top !== null) facts.push({ kind: 'pool', tokens: whole ? top : top * context, rank: null, estimate: true });
    return facts;
  }
  for (const [index, state] of states.entries()) {
    const memory = state === null ? null : asShape(field(state, 'memory_usage'));
    if (memory === null) continue;
    const tokens = asTokens(field(memory, 'token_capacity'));
    const rank = states.length > 1 ? String(index) : null;
    if (tokens !== null) facts.push({ kind: 'pool', tokens, rank, estimate: false });
    const swa = asTokens(field(memory, 'token_capacity_swa'));
    if (swa !== null) facts.push({ kind: 'pool-swa', tokens: swa, rank });
  }
  const ranks = facts.filter(({ kind }) => kind === 'pool').length;
  if (top !== null && ranks === 0) facts.push({ kind: 'pool', tokens: top, rank: null, estimate: false });
  const spoken = states.length > 1 && ranks < states.length;
  if (spoken) facts.push({ kind: 'pool-unsaid', why: `${ranks} of ${states.length} ranks told their pool` });
  return facts;
}

function flagFacts(info: Shape): Fact[] {
  const facts: Fact[] = [];
  for (const [name, value] of Object.entries(info)) {
    if (NOT_FLAGS.has(name) || name.startsWith('_') || name.length > 100) continue;
    const text = flagText(value);
    facts.push({ kind: 'flag', name: name.replaceAll('_', '-'), value: keepable(name, text), form: 'resolved' });
    if (text !== null && text !== '' && isSecretName(name)) facts.push({ kind: 'key-shown', field: name });
  }
  const command = asText(field(info, 'launch_command')) ?? asList(field(info, 'launch_command')).join(' ');
  const shown = /--(?:admin-)?api-key[=\s]+(\S+)/.exec(command)?.[1];
  if (shown !== undefined && !/^['"]?\*+/.test(shown)) facts.push({ kind: 'key-shown', field: 'launch_command' });
  return facts;
}

/** `env_vars` is there from 0.5.19, and only with `SGLANG_EXPOSE_OWN_ENV_VARS=1`. */
function stateFacts(info: Shape): Fact[] {
  const first = asShape(asList(field(info, 'internal_states'))[0]);
  const variables = first === null ? null : asShape(field(first, 'env_vars'));
  if (variables === null) return [];
  const facts: Fact[] = [{ kind: 'variables-complete', prefix: 'SGLANG_' }];
  for (const [name, value] of Object.entries(variables).slice(0, RANKS_MAX)) {
    facts.push({ kind: 'variable', name, value: keepableVariable(name, flagText(value)) });
  }
  return facts;
}

/** `GET /model_info`. */
export function readModelInfo(json: unknown): Reading | null {
  const info = asShape(json);
  if (info === null || !('is_generation' in info) || !('model_path' in info)) return null;
  const facts: Fact[] = [];
  const model = asText(field(info, 'served_model_name')) ?? asText(field(info, 'model_path'));
  if (model !== null) facts.push({ kind: 'model', name: model });
  for (const name of asList(field(info, 'architectures')).slice(0, 8)) {
    const text = asText(name);
    if (text !== null) facts.push({ kind: 'architecture', name: text });
  }
  const type = asText(field(info, 'model_type'));
  if (type !== null) facts.push({ kind: 'architecture', name: type });
  const role = 'disaggregation_mode' in info ? sglangRole(field(info, 'disaggregation_mode')) : null;
  if (role !== null) facts.push({ kind: 'role', role });
  return { engine: 'sglang', facts };
}

/** `GET /v1/loads`: a pool for each rank. */
export function readLoads(json: unknown): Reading | null {
  const shape = asShape(json);
  const loads = shape === null ? undefined : field(shape, 'loads');
  if (shape === null || !Array.isArray(loads)) return null;
  const facts: Fact[] = [];
  const version = asText(field(shape, 'version'));
  if (version !== null) facts.push({ kind: 'version', text: version });
  const ranks = (loads as unknown[]).slice(0, RANKS_MAX).map(asShape);
  for (const load of ranks) {
    if (load === null) continue;
    const tokens = asTokens(field(load, 'max_total_num_tokens'));
    const number = field(load, 'dp_rank');
    const rank = ranks.length > 1 && typeof number === 'number' ? String(number) : null;
    if (tokens !== null) facts.push({ kind: 'pool', tokens, rank, estimate: false });
    const disaggregation = asShape(field(load, 'disaggregation'));
    const role = disaggregation === null ? null : sglangRole(field(disaggregation, 'mode'));
    if (role !== null) facts.push({ kind: 'role', role });
  }
  return { engine: 'sglang', facts };
}

/** `GET /metrics`; null without one of SGLang's. */
export function readMetrics(text: string): Reading | null {
  const samples = parsePrometheus(text, (name) => METRIC.test(name));
  if (samples.length === 0) return null;
  const facts: Fact[] = [];
  for (const sample of samples) {
    const name = sample.name.replace(/^ray_/, '').replace(/^sglang_/, 'sglang:');
    facts.push({ kind: 'sample', name, labels: sample.labels, value: sample.value, line: sample.line });
    facts.push(...constants(name, sample));
  }
  const roles = new Set(samples.map(({ labels }) => labels.engine_type).filter((type) => type !== undefined));
  const [only] = roles;
  const role = roles.size === 1 ? sglangRole(only) : null;
  if (role !== null) facts.push({ kind: 'role', role });
  return { engine: 'sglang', facts };
}

function constants(name: string, { labels, value, line }: Sample): Fact[] {
  const rank = labels.dp_rank ?? null;
  const tokens = asTokens(value);
  if (tokens === null && name !== 'sglang:cache_config_info') return [];
  switch (name) {
    case 'sglang:max_total_num_tokens':
      return [{ kind: 'pool', tokens: tokens!, rank, estimate: false, line }];
    case 'sglang:max_total_num_tokens_swa':
      return [{ kind: 'pool-swa', tokens: tokens!, rank, line }];
    case 'sglang:context_len':
      return [{ kind: 'advertised', tokens: tokens!, line }];
    case 'sglang:page_size':
      return [{ kind: 'page', tokens: tokens!, line }];
    case 'sglang:cache_config_info': {
      const pages = tokensOf(labels.num_pages);
      const page = tokensOf(labels.page_size);
      if (pages === null || page === null) return [];
      return [{ kind: 'pool', tokens: pages * page, rank, estimate: true, line }];
    }
    default:
      return [];
  }
}
