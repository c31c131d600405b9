import { counterparts, ofEngine } from '../peers.js';
import { compareVersions } from '../../upstream/version.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, notChecked, type Observed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { sglangIssue, unknownVersion, unlessPaired } from './shared.js';

export const pairDiffers: Rule = {
  meta: {
    id: 'version.pair-differs',
    group: 'version',
    title: 'Prefill and decode run different versions',
    severity: 'medium',
    engines: ['sglang', 'vllm'],
    needs: ['version', 'role'],
    why: 'The hand-off is a protocol between two versions: an older side ignores drain confirmations and generations, computes other limits, and keeps the weakness that the newer one closed.',
    how: 'The version of every prefill node against that of every decode node; build tags behind a `+` are no difference.',
    change: 'Run one version on both roles; upgrade them together.',
    references: [sglangIssue(38961)],
    cwe: ['CWE-1104'],
  },
  check(fleet: Fleet, node: NodeFacts): RuleOutcome {
    const stop = unlessPaired(node);
    if (stop !== null) return node.role === 'unknown' ? ofUnknownRole(fleet, node, stop) : stop;
    if (node.version === null) return unknownVersion(node);
    const peers = counterparts(fleet, node);
    if (peers.length === 0) return notChecked('no node of the other role was given');
    const own = node.version;
    const [first, ...more] = peers.flatMap((peer): Observed[] => {
      if (peer.version === null || compareVersions(own, peer.version) === 0) return [];
      return [
        {
          at: node.versions[0]?.source ?? null,
          observed: `${own.text} here, ${peer.version.text} on ${peer.name}`,
          wanted: 'one version on both roles',
        },
      ];
    });
    if (first !== undefined) return failed(first, ...more);
    if (peers.some(({ version }) => version === null))
      return notChecked('the version of a node of the other role is not known');
    return passed(`both roles run ${own.text}`);
  },
};

/** A running vLLM does not tell its role. Where every node of its engine runs one version, no pair of them can differ. */
function ofUnknownRole(fleet: Fleet, node: NodeFacts, unknown: RuleOutcome): RuleOutcome {
  const all = ofEngine(fleet, node.engine!);
  if (all.length === 1) return notApplicable('no second node was given that it could be paired with');
  const { version } = node;
  if (version === null) return unknownVersion(node);
  const alike = all.every((one) => one.version !== null && compareVersions(version, one.version) === 0);
  return alike ? passed(`every ${node.engine} node that was given runs ${version.text}`) : unknown;
}
