import { best, holdsPool, poolOf } from '../ask.js';
import { hasSibling, replicasOf } from '../peers.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';
import { sglangIssue } from './shared.js';

/** Largest prompt that the node takes, as far as known. Pools above the context may differ without harm. */
function reachOfPrompts(node: NodeFacts): number | null {
  const limit = best(node.acceptLimit);
  if (limit !== null) return limit.value;
  const context = best(node.advertised);
  const pool = poolOf(node);
  return context === null || pool === null ? null : Math.min(context.value, pool.value.tokens);
}

export const replicasDiffer: Rule = {
  meta: {
    id: 'capacity.replicas-differ',
    group: 'capacity',
    title: 'Replicas of one model take prompts of different lengths',
    severity: 'medium',
    engines: ['sglang', 'vllm', 'llamacpp', 'cofferdam', 'tensorrt-llm'],
    needs: ['role', 'acceptLimit', 'advertised', 'pool'],
    why: 'Routers pick replicas by load and never by the size of a prompt, so whether a long prompt is served or rejected inside an engine is left to chance, and a test that met the larger replica proves nothing.',
    how: 'Nodes of the same engine, role and model: the largest prompt served, or the smaller of context and pool.',
    change:
      'Start every replica with the same context and a pool above it; lower the context to what the smallest replica holds.',
    references: [sglangIssue(30233)],
    cwe: ['CWE-1188'],
  },
  check(fleet: Fleet, node: NodeFacts): RuleOutcome {
    if (!holdsPool(node)) return notApplicable('it holds no KV pool');
    if (!hasSibling(fleet, node)) return notApplicable('no other node of its engine and role was given');
    const model = best(node.models);
    if (model === null) return notChecked('its model is not known, so neither are its replicas');
    const replicas = replicasOf(fleet, node);
    if (replicas.length === 0) return notApplicable('no other node is known to serve its model');
    const own = reachOfPrompts(node);
    if (own === null) return notChecked('its largest prompt is not known');
    const larger = replicas
      .map((one) => ({ name: one.name, tokens: reachOfPrompts(one) }))
      .find(({ tokens }) => tokens !== null && tokens > own);
    if (larger === undefined) {
      if (replicas.some((one) => reachOfPrompts(one) === null))
        return notChecked('a replica’s largest prompt is not known');
      return passed(`no replica takes more than ${own} tokens`);
    }
    return failed({
      title: `It takes prompts of up to ${own} tokens, its replica ${larger.name} of up to ${larger.tokens}`,
      at: best(node.acceptLimit)?.source ?? poolOf(node)?.source ?? null,
      observed: `${own} here, ${larger.tokens} on ${larger.name}`,
      wanted: 'one limit on all replicas',
    });
  },
};
