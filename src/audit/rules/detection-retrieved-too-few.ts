import type { Fleet, NodeFacts } from '../facts.js';
import type { Rule, RuleOutcome } from '../rule.js';
import { lmcacheIssue, seenInLog } from './shared.js';

export const retrievedTooFew: Rule = {
  meta: {
    id: 'detection.retrieved-too-few',
    group: 'detection',
    title: 'The outer cache gave back fewer tokens than it had promised',
    severity: 'medium',
    engines: ['vllm', 'sglang', 'lmcache'],
    needs: ['log'],
    why: 'Blocks were lent for the tokens that were promised. What did not arrive is whatever the blocks held before, unless the engine computes it anew.',
    how: '`The number of retrieved tokens is less than the expected number of tokens` in the log.',
    change:
      'Upgrade LMCache, and use its multiprocess connector (`LMCacheMPConnector`) in place of the in-process one.',
    references: [lmcacheIssue(910), lmcacheIssue(953)],
    cwe: ['CWE-226'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    return seenInLog(node, 'retrieved-too-few', () => ({ wanted: 'as many tokens as were promised', certain: false }));
  },
};
