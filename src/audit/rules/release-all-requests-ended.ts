import { signOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, type Rule, type RuleOutcome } from '../rule.js';
import { llamaIssue, seenInLog } from './shared.js';

export const allRequestsEnded: Rule = {
  meta: {
    id: 'release.all-requests-ended',
    group: 'release',
    title: 'The shared pool ran out, and every running request ended with it',
    severity: 'high',
    engines: ['llamacpp'],
    needs: ['log'],
    why: 'With a unified pool one tenant’s prompt within its limit ends all other tenants’ requests with a 500.',
    how: '`Context size has been exceeded`, `failed to find a memory slot` or `failed to find free space in the KV cache` in the log.',
    change: 'Start with `--kv-unified-per-slot N` (or `--no-kv-unified`), so that the slots together fit `-c`.',
    references: [llamaIssue(23652), llamaIssue(20049)],
    aisvs: ['C5.3.1'],
    cwe: ['CWE-770'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const exhausted = signOf(node, 'pool-exhausted');
    if (exhausted !== null && signOf(node, 'all-requests-ended') === null) {
      return failed({
        severity: 'medium',
        title: 'The shared pool ran out',
        at: exhausted.source,
        observed: `${exhausted.count} lines that say so`,
        wanted: 'a pool that holds every slot',
      });
    }
    return seenInLog(node, 'all-requests-ended', () => ({ wanted: 'a pool that holds every slot' }));
  },
};
