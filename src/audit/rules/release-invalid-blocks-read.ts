import { signOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, type Rule, type RuleOutcome } from '../rule.js';
import { unwantedCount, vllmIssue } from './shared.js';

export const invalidBlocksRead: Rule = {
  meta: {
    id: 'release.invalid-blocks-read',
    group: 'release',
    title: 'Blocks were read under a handle that was unknown, used up or expired',
    severity: 'high',
    engines: ['vllm'],
    needs: ['metrics', 'log'],
    why: 'Such a read gives decode whatever the blocks hold by then, over HTTP 200, while the counter of failed transfers stays at 0. It is also the one trace of a handle that somebody made up.',
    how: '`vllm:nixl_num_notifications_after_expiry_total` of prefill above zero, or `Potentially invalid KV blocks for unrecognized request` in its log.',
    change:
      'Let only the router set `kv_transfer_params`, close the engines’ ports to everybody else, and look at each such request.',
    references: [vllmIssue(52234), vllmIssue(47843), 'https://github.com/vllm-project/aibrix/issues/1772'],
    aisvs: ['C5.5.5'],
    cwe: ['CWE-639', 'CWE-672'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const sign = signOf(node, 'invalid-blocks-read');
    if (sign !== null) return failed({ at: sign.source, observed: `${sign.count} in the log`, wanted: 'none' });
    return unwantedCount(
      node,
      ['vllm:nixl_num_notifications_after_expiry_total', 'vllm:nixl_num_notifications_after_expiry'],
      {},
      () => ({ wanted: '0' }),
    );
  },
};
