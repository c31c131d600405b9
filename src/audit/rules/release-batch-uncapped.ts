import { atLeast, before, flagValue, variableOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, passed, type Rule, type RuleOutcome } from '../rule.js';
import { isActive, sglangIssue, unknownFlag, unknownVariable, unknownVersion, unlessPaired } from './shared.js';

const VARIABLE = 'SGLANG_MOONCAKE_MAX_TRANSFER_BATCH_INDICES';

/** Asked of prefill, which sends. */
export const batchUncapped: Rule = {
  meta: {
    id: 'release.batch-uncapped',
    group: 'release',
    title: 'One Mooncake transfer may be of any size',
    severity: 'medium',
    engines: ['sglang'],
    needs: ['version', 'role', 'flags', 'variables'],
    why: 'A call without a bound runs on long after its request was aborted; when it times out its outcome is unknown, and the pages are given back by a timeout and without proof.',
    how: `\`${VARIABLE}\` of prefill with the Mooncake backend: 0 or unset is no cap; before 0.5.20 there is none.`,
    change: `Set \`${VARIABLE}\` (for example to 512) on prefill, on SGLang 0.5.21 or later.`,
    references: [sglangIssue(24527), sglangIssue(36610)],
    cwe: ['CWE-770'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const stop = unlessPaired(node);
    if (stop !== null) return stop;
    if (node.role !== 'prefill') return notApplicable('decode sends nothing');
    const backend = flagValue(node, 'disaggregation-transfer-backend', 'mooncake');
    if (backend === null) return unknownFlag(node, 'disaggregation-transfer-backend');
    if (!backend.value.startsWith('mooncake')) return notApplicable(`its transfer backend is ${backend.value}`);
    if (node.version === null) return unknownVersion(node);
    const wanted = `\`${VARIABLE}\` above 0`;
    if (before(node, '0.5.20.dev0') === true) {
      return failed({ at: backend.source, observed: `SGLang ${node.version.text} has no cap`, wanted });
    }
    const answer = variableOf(node, VARIABLE);
    if (answer.state === 'unknown' || (answer.state === 'set' && answer.value === null))
      return unknownVariable(VARIABLE);
    if (answer.state === 'set' && isActive(answer.value ?? '')) return passed(`\`${VARIABLE}=${answer.value}\``);
    return failed({
      at: answer.source,
      observed: answer.state === 'set' ? `\`${VARIABLE}=${answer.value}\`` : `\`${VARIABLE}\` is not set`,
      wanted,
      certain: atLeast(node, '0.5.21') === true,
    });
  },
};
