import type { Fleet, NodeFacts } from '../facts.js';
import type { Rule, RuleOutcome } from '../rule.js';
import { seenInLog, sglangIssue, unlessPaired } from './shared.js';

export const waitedOut: Rule = {
  meta: {
    id: 'release.waited-out',
    group: 'release',
    title: 'Decode waited out its timeout for prefills that never spoke',
    severity: 'medium',
    engines: ['sglang'],
    needs: ['role', 'log'],
    why: 'Each such wait held pages for a whole prompt. Prompts that prefill refused and decode accepted look exactly so.',
    how: '`timed out after … in KVPoll.WaitingForInput` in decode’s log.',
    change: 'Compare the limits of both roles, and refuse over-long prompts before dispatch.',
    references: [sglangIssue(30233)],
    cwe: ['CWE-400'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    return (
      unlessPaired(node) ??
      seenInLog(node, 'decode-wait-timeout', () => ({
        wanted: 'prefill answering every request that decode holds pages for',
      }))
    );
  },
};
