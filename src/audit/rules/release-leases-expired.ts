import { signOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, type Rule, type RuleOutcome } from '../rule.js';
import { unwantedCount, vllmIssue } from './shared.js';

export const leasesExpired: Rule = {
  meta: {
    id: 'release.leases-expired',
    group: 'release',
    title: 'Decode never came for blocks that prefill had ready',
    severity: 'low',
    engines: ['vllm'],
    needs: ['metrics', 'log'],
    why: 'Each held its part of prefill’s pool until the lease ran out: decode refused after prefill had worked, a client left, or somebody pins blocks on purpose.',
    how: '`vllm:nixl_num_kv_expired_reqs_total` above zero, or `Releasing expired KV blocks` in prefill’s log.',
    change:
      'Refuse in front of the pair what decode would refuse, and let a request run on to its first token when its client leaves.',
    references: [vllmIssue(41269), vllmIssue(41383)],
    cwe: ['CWE-400'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const sign = signOf(node, 'lease-expired');
    if (sign !== null) return failed({ at: sign.source, observed: `${sign.count} in the log`, wanted: 'none' });
    return unwantedCount(node, ['vllm:nixl_num_kv_expired_reqs_total', 'vllm:nixl_num_kv_expired_reqs'], {}, () => ({
      wanted: '0',
    }));
  },
};
