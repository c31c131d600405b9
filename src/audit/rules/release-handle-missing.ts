import type { Fleet, NodeFacts } from '../facts.js';
import type { Rule, RuleOutcome } from '../rule.js';
import { seenInLog } from './shared.js';

export const handleMissing: Rule = {
  meta: {
    id: 'release.handle-missing',
    group: 'release',
    title: 'Decode was asked although prefill’s answer held no handle',
    severity: 'medium',
    engines: ['llmd-sidecar', 'vllm-router'],
    needs: ['log'],
    why: 'The router only logs it and goes on. A refusal that prefill put into a 200 is then answered by decode, and whatever transfer fields the client sent go with it.',
    how: "`missing 'kv_transfer_params' field in prefiller response` in the router’s log.",
    change:
      'Upgrade the llm-d sidecar past PR #1206, strip clients’ `kv_transfer_params` at the edge, and treat an answer without a handle as an error.',
    references: ['https://github.com/llm-d/llm-d-router/pull/1206'],
    cwe: ['CWE-754'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    return seenInLog(node, 'handle-missing', () => ({ wanted: 'a handle in every answer of prefill' }));
  },
};
