import { atLeast, before } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';
import { noTransfer, transferOf, unknownVersion, vllmIssue } from './shared.js';

export const abortRace: Rule = {
  meta: {
    id: 'release.abort-race',
    group: 'release',
    title: 'Blocks of aborted requests may be written after another request has them',
    severity: 'high',
    engines: ['vllm'],
    needs: ['version', 'transfer-config'],
    why: 'Two races let a remote write or an asynchronous step land in blocks that had been freed: another request’s text changes without an error. The fixes were merged in January and June 2026; 0.23 lacks the second.',
    how: 'A transfer configuration on a version before 0.24; 0.29 and later have both fixes; for the versions between this is not established.',
    change: 'Upgrade to vLLM 0.29 or later on both roles.',
    references: [vllmIssue(32255), vllmIssue(45357), 'https://github.com/vllm-project/vllm-ascend/issues/14055'],
    aisvs: ['C5.5.5'],
    cwe: ['CWE-416', 'CWE-362'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const transfer = transferOf(node);
    if (transfer === null) return noTransfer(node);
    const old = before(node, '0.24.dev0');
    if (old === null) return unknownVersion(node);
    if (atLeast(node, '0.29.0') === true) return passed(`vLLM ${node.version?.text} has both fixes`);
    if (!old) return notChecked(`whether ${node.version?.text} has both fixes is not established; 0.29 has them`);
    return failed({
      at: node.versions[0]?.source ?? transfer.source,
      observed: `vLLM ${node.version?.text} with ${transfer.value.connector}`,
      wanted: 'vLLM 0.29 or later',
      certain: false,
    });
  },
};
