import { atLeast, flagValue } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';
import { sglangIssue, unknownFlag, unknownVersion, unlessPaired } from './shared.js';

/** The first release in which a backend confirms. */
const CONFIRMS_FROM: ReadonlyMap<string, string> = new Map([
  ['mooncake', '0.5.19'],
  ['mooncake_tcp', '0.5.19'],
  ['ascend', '0.5.19'],
  ['nixl', '0.5.19'],
  ['mori', '0.5.22'],
]);

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
    if (backend.value === 'fake') return notApplicable('no KV is moved');
    const defers = atLeast(node, '0.5.19.dev0');
    if (node.version === null || defers === null) return unknownVersion(node);
    if (!defers) return notApplicable('this version cannot defer the release at all');
    const from = CONFIRMS_FROM.get(backend.value);
    if (from === undefined) return notChecked(`whether ${backend.value} confirms drained transfers was not read`);
    if (atLeast(node, from) === true)
      return passed(`${backend.value} confirms drained transfers in ${node.version.text}`);
    if (backend.value !== 'mori') return notChecked('a pre-release of the first version that confirms was not read');
    return failed({
      at: backend.source,
      observed: `MORI on SGLang ${node.version?.text}`,
      wanted: 'a backend that confirms drained transfers',
    });
  },
};
