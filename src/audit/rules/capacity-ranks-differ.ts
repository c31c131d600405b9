import { best, flagValue, holdsPool, poolOf, sameArtifact } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';
import { sglangIssue, vllmIssue } from './shared.js';

export const ranksDiffer: Rule = {
  meta: {
    id: 'capacity.ranks-differ',
    group: 'capacity',
    title: 'Some data-parallel ranks hold the advertised context and others do not',
    severity: 'medium',
    engines: ['sglang', 'vllm'],
    needs: ['advertised', 'pool'],
    why: 'A request lives on one rank and the top of `/server_info` speaks for the first one only. The same prompt is served or rejected by chance.',
    how: 'The pool of every rank (`internal_states`, one metric series per engine) against the context.',
    change: 'Give every rank the same memory, or lower the context to the smallest rank’s pool.',
    references: [sglangIssue(30233), vllmIssue(42206)],
    cwe: ['CWE-1188'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    if (!holdsPool(node)) return notApplicable('it holds no KV pool');
    const context = best(node.advertised);
    const smallest = poolOf(node);
    if (context === null || smallest === null) return notChecked('context or pool is not known');
    const ranks = node.pool.filter((one) => one.value.rank !== null && sameArtifact(one.source, smallest.source));
    if (ranks.length < 2) {
      const declared = flagValue(node, node.engine === 'vllm' ? 'data-parallel-size' : 'dp-size', '1');
      return Number(declared?.value ?? 1) > 1
        ? notChecked('it has several ranks, and their pools are not known one by one')
        : notApplicable('it has one rank, as far as is known');
    }
    const enough = ranks.filter(({ value }) => value.tokens >= context.value).length;
    if (enough === ranks.length) return passed(`all ${ranks.length} ranks hold the context`);
    if (enough === 0) return notApplicable('no rank holds the context: `capacity.pool-below-context` speaks of it');
    return failed({
      title: `${ranks.length - enough} of ${ranks.length} ranks hold less than the advertised context of ${context.value}`,
      at: smallest.source,
      observed: `smallest rank ${smallest.value.tokens}, context ${context.value}`,
      wanted: 'every rank above the context',
    });
  },
};
