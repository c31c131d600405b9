import { before, flagValue } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, passed, type Rule, type RuleOutcome } from '../rule.js';
import { sglangIssue, unknownFlag, unknownVersion, unlessPaired } from './shared.js';

export const nixlMori: Rule = {
  meta: {
    id: 'release.nixl-mori',
    group: 'release',
    title: 'Failed sends of NIXL or MORI are not reported before 0.5.23',
    severity: 'high',
    engines: ['sglang'],
    needs: ['version', 'role', 'flags'],
    why: 'A post that fails without a word lets decode take back pages while writes may still land in them, or commit what was never written.',
    how: '`--disaggregation-transfer-backend nixl` or `mori` on a version before 0.5.23.',
    change: 'Upgrade both roles to SGLang 0.5.23, or use `--disaggregation-transfer-backend mooncake`.',
    references: [sglangIssue(37077), sglangIssue(38961)],
    cwe: ['CWE-252', 'CWE-416'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const stop = unlessPaired(node);
    if (stop !== null) return stop;
    const backend = flagValue(node, 'disaggregation-transfer-backend', 'mooncake');
    if (backend === null) return unknownFlag(node, 'disaggregation-transfer-backend');
    if (!/^(?:nixl|mori)$/i.test(backend.value)) return notApplicable(`its transfer backend is ${backend.value}`);
    const old = before(node, '0.5.23');
    if (old === null) return unknownVersion(node);
    if (!old) return passed(`${node.version?.text} reports failed sends of ${backend.value}`);
    return failed({
      at: backend.source,
      observed: `${backend.value} on SGLang ${node.version?.text}`,
      wanted: 'SGLang 0.5.23 or later with this backend',
    });
  },
};
