import { atLeast, flagValue } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { sglangIssue, unknownFlag, unknownVersion, unlessPaired } from './shared.js';

export const backendWithoutDrain: Rule = {
  meta: {
    id: 'release.backend-without-drain',
    group: 'release',
    title: 'The transfer backend never confirms that an aborted transfer has drained',
    severity: 'medium',
    engines: ['sglang'],
    needs: ['version', 'role', 'flags'],
    why: 'Without the confirmation every deferred release ends by its timeout, and pages are given back without proof.',
    how: '`--disaggregation-transfer-backend mori` before 0.5.22. Mooncake, ascend and NIXL confirm from 0.5.19 on.',
    change: 'Use `--disaggregation-transfer-backend mooncake`, or upgrade to SGLang 0.5.23.',
    references: [sglangIssue(37077), sglangIssue(38961)],
    cwe: ['CWE-416'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const stop = unlessPaired(node);
    if (stop !== null) return stop;
    const backend = flagValue(node, 'disaggregation-transfer-backend', 'mooncake');
    if (backend === null) return unknownFlag(node, 'disaggregation-transfer-backend');
    if (backend.value !== 'mori') return passed(`${backend.value} is not MORI`);
    const confirms = atLeast(node, '0.5.22');
    if (confirms === null) return unknownVersion(node);
    if (confirms) return passed('MORI confirms drained transfers in this version');
    return failed({
      at: backend.source,
      observed: `MORI on SGLang ${node.version?.text}`,
      wanted: 'a backend that confirms drained transfers',
    });
  },
};
