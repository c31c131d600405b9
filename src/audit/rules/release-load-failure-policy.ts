import { atLeast } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';
import { noTransfer, transferOf, vllmIssue } from './shared.js';

export const loadFailurePolicy: Rule = {
  meta: {
    id: 'release.load-failure-policy',
    group: 'release',
    title: 'A failed transfer of KV does not end its request',
    severity: 'medium',
    engines: ['vllm'],
    needs: ['transfer-config', 'version'],
    why: 'With `recompute` a request goes on after its KV did not arrive. Where a failure is not reported for every block it goes on over what the blocks held; `fail` ends it with an error.',
    how: '`kv_load_failure_policy` of `--kv-transfer-config`; 0.32 defaults to `fail`.',
    change: 'Set `"kv_load_failure_policy": "fail"` in `--kv-transfer-config`, on the outermost connector.',
    references: [vllmIssue(50388), vllmIssue(52234)],
    cwe: ['CWE-636'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const transfer = transferOf(node);
    if (transfer === null) return noTransfer(node);
    const policy = transfer.value.loadFailurePolicy;
    if (policy === 'fail') return passed('`kv_load_failure_policy` is `fail`');
    if (policy === null) {
      return atLeast(node, '0.32.0') === true
        ? passed('`kv_load_failure_policy` is not set; this version fails')
        : notChecked('`kv_load_failure_policy` is not set, and the default of this version is not known');
    }
    return failed({
      at: transfer.source,
      observed: `\`kv_load_failure_policy\` is \`${policy}\``,
      wanted: '`fail`',
    });
  },
};
