import { best, poolOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { notApplicable, type Rule, type RuleOutcome } from '../rule.js';
import { seenInLog, sglangIssue } from './shared.js';

export const poolWarned: Rule = {
  meta: {
    id: 'capacity.pool-warned',
    group: 'capacity',
    title: 'The engine itself warned that its pool is smaller than the context',
    severity: 'high',
    engines: ['sglang'],
    needs: ['log'],
    why: 'SGLang 0.5.23 compares the two numbers and goes on: it is a line in the log of every rank and never an error.',
    how: 'The line `KV pool holds N tokens, fewer than --context-length M` of the startup log.',
    change: 'Lower `--context-length` below the pool on every node.',
    references: [sglangIssue(30233)],
    cwe: ['CWE-1188'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    if (best(node.advertised) !== null && poolOf(node) !== null) {
      return notApplicable('both numbers are known: `capacity.pool-below-context` compares them');
    }
    return seenInLog(node, 'pool-below-context-warning', () => ({ wanted: 'a pool above the context' }));
  },
};
