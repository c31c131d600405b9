import { best } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';
import { sglangIssue, unlessPaired } from './shared.js';

export const slidingPool: Rule = {
  meta: {
    id: 'capacity.sliding-pool',
    group: 'capacity',
    title: 'Decode’s sliding-window pool is smaller than the context',
    severity: 'medium',
    engines: ['sglang'],
    needs: ['role', 'advertised', 'pool'],
    why: 'For hybrid models prefill’s limit comes from the full pool, while decode’s queue is capped by the smaller of the full and the sliding-window pool: decode refuses what prefill takes.',
    how: '`token_capacity_swa` of `/server_info` or `sglang:max_total_num_tokens_swa`, against the advertised context.',
    change: 'Raise `--swa-full-tokens-ratio` on decode, or lower `--context-length` on both roles.',
    references: [sglangIssue(30233), sglangIssue(25805)],
    cwe: ['CWE-770'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const stop = unlessPaired(node);
    if (stop !== null) return stop;
    if (node.role !== 'decode') return notApplicable('it is no decode node');
    const context = best(node.advertised);
    const [first, ...more] = node.poolSwa;
    if (first === undefined) return notApplicable('nothing that was read speaks of a sliding-window pool');
    if (context === null) return notChecked('its context is not known');
    const smallest = more.reduce((least, one) => (one.value.tokens < least.value.tokens ? one : least), first);
    if (smallest.value.tokens >= context.value) return passed(`sliding-window pool ${smallest.value.tokens}`);
    return failed({
      title: `Decode’s sliding-window pool holds ${smallest.value.tokens} tokens, the advertised context is ${context.value}`,
      at: smallest.source,
      observed: `context ${context.value}, sliding-window pool ${smallest.value.tokens}`,
      wanted: `${context.value} tokens, or tail preallocation that makes fewer enough`,
      certain: false,
    });
  },
};
