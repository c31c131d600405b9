import { flagValue } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { notApplicable, type Rule, type RuleOutcome } from '../rule.js';
import { reachLikeApi, sglangIssue, unknownFlag, unlessPaired, unwantedReach } from './shared.js';

export const bootstrapPort: Rule = {
  meta: {
    id: 'exposure.bootstrap-port',
    group: 'exposure',
    title: 'The bootstrap port of prefill is reachable, and knows no key',
    severity: 'critical',
    engines: ['sglang'],
    needs: ['role', 'flags', 'manifest'],
    why: 'Whoever reaches it can register ranks and rooms, and so decide from where decode takes KV. Authentication was proposed and is in no version read.',
    how: '`--disaggregation-bootstrap-port` (8998) against Services, host ports, hostNetwork and NetworkPolicies.',
    change: 'Let only decode nodes reach port 8998 (NetworkPolicy); never publish it.',
    references: [sglangIssue(39416), sglangIssue(39400)],
    aisvs: ['C5.3.1'],
    cwe: ['CWE-306'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const stop = unlessPaired(node);
    if (stop !== null) return stop;
    if (node.role !== 'prefill') return notApplicable('prefill runs the bootstrap service');
    const said = flagValue(node, 'disaggregation-bootstrap-port', '8998');
    if (said === null) return unknownFlag(node, 'disaggregation-bootstrap-port');
    const port = Number(said.value);
    return unwantedReach('the bootstrap service', port, reachLikeApi(node, port), {
      outside: 'critical',
      cluster: 'medium',
    });
  },
};
