import { best, holdsPool } from '../ask.js';
import { counterparts } from '../peers.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, notChecked, type Observed, passed, type Rule, type RuleOutcome } from '../rule.js';

/** Asked of prefill; the pairs are all of its decodes. */
export const acceptLimitsDiffer: Rule = {
  meta: {
    id: 'capacity.accept-limits-differ',
    group: 'capacity',
    title: 'Prefill and decode accept prompts of different lengths',
    severity: 'high',
    engines: ['sglang', 'vllm', 'cofferdam'],
    needs: ['role', 'acceptLimit'],
    why: 'A prompt that one side accepts and the other refuses is half alive: the side that accepted it holds its pages until a timeout, and other tenants starve. In SGLang up to 0.5.19 decode answers it from stale pages.',
    how: '`max_req_input_len` of `/server_info`, or what the version computes from context and pool; every prefill against every decode.',
    change: 'Give both sides the same context, and pools that both hold it.',
    references: [
      'https://github.com/sgl-project/sglang/issues/30233',
      'https://github.com/sgl-project/sglang/pull/38935',
    ],
    aisvs: ['C5.5.5'],
    cwe: ['CWE-770'],
  },
  check(fleet: Fleet, node: NodeFacts): RuleOutcome {
    if (!holdsPool(node) || node.role !== 'prefill') return notApplicable('it is no prefill node');
    const decodes = counterparts(fleet, node);
    if (decodes.length === 0) return notChecked('no decode node was given');
    const limit = best(node.acceptLimit);
    if (limit === null) return notChecked('the longest prompt that it accepts is not known');
    const findings: Observed[] = [];
    const unknown: string[] = [];
    for (const decode of decodes) {
      const other = best(decode.acceptLimit);
      if (other === null) unknown.push(decode.name);
      else if (other.value !== limit.value) {
        findings.push({
          severity: limit.value < other.value ? 'high' : 'medium',
          title: `Prefill accepts prompts of up to ${limit.value} tokens, decode (${decode.name}) of up to ${other.value}`,
          at: limit.source,
          observed: `prefill ${limit.value}, decode ${other.value}`,
          wanted: 'one limit on both sides',
          certain: true,
        });
      }
    }
    const [first, ...more] = findings;
    if (first !== undefined) return failed(first, ...more);
    if (unknown.length > 0) return notChecked(`the limit of ${unknown.join(', ')} is not known`);
    return passed(`both sides accept ${limit.value} tokens`);
  },
};
