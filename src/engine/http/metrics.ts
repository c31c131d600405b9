/** `/metrics`: SGLang's names where there is a true value for them, and the engine's own as the gateway gives them. */
import { GUARDS } from '../../handoff/guards.js';
import type { EngineStats } from '../../handoff/engine-port.js';
import { ENGINE_MODEL } from '../coordinator.js';
import type { EngineCounters } from './counters.js';
import { kvCacheGb, type NodeView, poolPages, poolTokens, type Queues, usedTokens, weightGb } from './info.js';

type Labels = Readonly<Record<string, string>>;

/** Prometheus' text format. Names and label values are ours, and need no escapes. */
class Exposition {
  #text = '';

  add(kind: 'gauge' | 'counter', name: string, help: string, values: readonly (readonly [Labels, number])[]): void {
    this.#text += `# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n`;
    for (const [labels, value] of values) {
      const pairs = Object.entries(labels).map(([label, text]) => `${label}="${text}"`);
      this.#text += `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}\n`;
    }
  }

  text(): string {
    return this.#text;
  }
}

export function metricsText(
  view: NodeView,
  stats: EngineStats,
  queues: Queues,
  counters: EngineCounters,
  nowMs: number,
): string {
  const out = new Exposition();
  addSglang(out, view, stats, queues, counters, nowMs);
  addOwn(out, view, stats);
  return out.text();
}

function addSglang(
  out: Exposition,
  view: NodeView,
  stats: EngineStats,
  queues: Queues,
  counters: EngineCounters,
  nowMs: number,
): void {
  const { config, role } = view;
  const labels = {
    model_name: ENGINE_MODEL,
    engine_type: role === 'single' ? 'unified' : role,
    tp_rank: '0',
    pp_rank: '0',
    moe_ep_rank: '0',
  };
  const gauge = (name: string, help: string, value: number): void =>
    out.add('gauge', `sglang:${name}`, help, [[labels, value]]);
  const counter = (name: string, help: string, value: number): void =>
    out.add('counter', `sglang:${name}`, help, [[labels, value]]);
  const pages = poolPages(view, stats);
  const used = usedTokens(view, stats);
  const usage = used / poolTokens(view);
  gauge('max_total_num_tokens', 'Tokens of the KV pool', poolTokens(view));
  gauge('context_len', 'The configured context in tokens', config.context);
  gauge('page_size', 'Tokens of a page', config.pageTokens);
  gauge('num_pages', 'Pages of the KV pool', pages.total);
  gauge('kv_cache_memory_usage_gb', 'Size of the KV pool', kvCacheGb(view));
  gauge('weight_memory_usage_gb', 'Size of the weights', weightGb());
  gauge('num_used_tokens', 'Tokens of pages that requests hold; kept ones can be given up', used);
  gauge('kv_used_tokens', 'Tokens of pages that requests hold; kept ones can be given up', used);
  gauge('kv_available_tokens', 'Tokens of free pages', pages.free * config.pageTokens);
  gauge('kv_evictable_tokens', 'Tokens of pages that are kept but could be given up', pages.sealed * config.pageTokens);
  gauge('token_usage', 'Share of the pool that requests hold', usage);
  gauge('full_token_usage', 'Share of the pool that requests hold', usage);
  gauge('num_running_reqs', 'Requests in the engine', stats.running);
  gauge('num_queue_reqs', 'Requests that wait for a slot', queues.waiting);
  gauge('gen_throughput', 'Tokens of output a second, over the last seconds', counters.throughput(nowMs));
  if (role === 'prefill') {
    gauge('num_prefill_bootstrap_queue_reqs', 'Legs that wait for their partner', queues.bootstrap);
  }
  if (role === 'decode') {
    gauge('num_decode_prealloc_queue_reqs', 'Legs that wait for their partner', queues.bootstrap);
  }
  counter('num_requests_total', 'Requests that came', counters.requests);
  counter('num_aborted_requests_total', 'Requests that were refused, failed or left by their client', counters.aborted);
  counter('prompt_tokens_total', 'Tokens of prompts that were processed', counters.promptTokens);
  counter('generation_tokens_total', 'Tokens of output', counters.generatedTokens);
}

const PAGE_STATES = ['free', 'leased', 'draining', 'sealed'] as const;

function addOwn(out: Exposition, view: NodeView, stats: EngineStats): void {
  const roles = { prefill: stats.prefillPages, decode: stats.decodePages };
  const byState = Object.entries(roles).flatMap(([role, pages]) =>
    PAGE_STATES.map((state) => [{ role, state }, pages[state]] as const),
  );
  out.add('gauge', 'cofferdam_pages', 'Pages of a pool, by state', byState);
  const pools = { prefill: view.config.prefillPool, decode: view.config.decodePool };
  for (const [role, tokens] of Object.entries(pools)) {
    out.add('gauge', `cofferdam_${role}_pool_tokens`, `The pool of the ${role} role`, [[{}, tokens]]);
  }
  out.add(
    'counter',
    'cofferdam_guard_hits_total',
    'What each guard stopped',
    GUARDS.map((guard) => [{ guard }, stats.guardHits[guard]] as const),
  );
  const counted = (name: string, help: string, value: number): void => out.add('counter', name, help, [[{}, value]]);
  counted('cofferdam_pages_verified_total', 'Pages whose checksum was compared at commit', stats.pagesVerified);
  counted('cofferdam_tags_checked_total', 'Tags compared by the read guard', stats.tagsChecked);
  counted('cofferdam_landings_refused_total', 'Landings that met a revoked registration', stats.landingsRefused);
  const { sweep } = stats;
  if (sweep === undefined) return;
  const swept = (name: string, help: string, of: 'pages' | 'passes' | 'findings'): void =>
    out.add('counter', name, help, [
      [{ role: 'prefill' }, sweep.prefill[of]],
      [{ role: 'decode' }, sweep.decode[of]],
    ]);
  swept('cofferdam_pages_swept_total', 'Pages that the sweep held against the ledger', 'pages');
  swept('cofferdam_sweep_passes_total', 'Rounds of the sweep over a whole pool', 'passes');
  swept('cofferdam_sweep_findings_total', 'Writes that no lease explains', 'findings');
}
