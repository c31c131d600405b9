import { switchOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';
import { groupedKvOf } from './models.js';
import { hasConnector, noTransfer, transferOf, vllmIssue } from './shared.js';

export const hybridNixl: Rule = {
  meta: {
    id: 'release.hybrid-nixl',
    group: 'release',
    title: 'A hybrid model over NIXL does not notice that its KV did not arrive',
    severity: 'high',
    engines: ['vllm'],
    needs: ['transfer-config', 'flags'],
    why: 'For models with several KV groups NIXL’s receive failures are not signalled, and stale handles are accepted: a public reproduction on 0.29.0 got a 200 with the previous prompt’s answer while the failure counter stayed at 0. The fix was open when last seen.',
    how: 'A NIXL connector, and a model whose name says that its layers keep KV in different ways.',
    change:
      'Start both roles with `--disable-hybrid-kv-cache-manager`, or serve this model without disaggregation until vLLM #52232 is released.',
    references: [vllmIssue(52234), vllmIssue(52276), vllmIssue(52232)],
    aisvs: ['C5.5.5'],
    cwe: ['CWE-226', 'CWE-252'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const transfer = transferOf(node);
    if (transfer === null) return noTransfer(node);
    if (!hasConnector(transfer.value, /^Nixl/i)) return notApplicable(`its connector is ${transfer.value.connector}`);
    const grouped = groupedKvOf(node);
    if (grouped === null) return notChecked('whether its model keeps KV in several groups is not known from its name');
    const off = switchOf(node, 'disable-hybrid-kv-cache-manager', false);
    if (off?.value === true) return passed('`--disable-hybrid-kv-cache-manager` is on');
    return failed({
      at: transfer.source,
      observed: `${grouped.value} over ${transfer.value.connector}`,
      wanted: 'one kind of KV, or a connector that reports every failure',
      certain: false,
    });
  },
};
