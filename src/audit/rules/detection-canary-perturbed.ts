import type { Fleet, NodeFacts } from '../facts.js';
import type { Rule, RuleOutcome } from '../rule.js';
import { sglangIssue, unwantedVariables } from './shared.js';

export const canaryPerturbed: Rule = {
  meta: {
    id: 'detection.canary-perturbed',
    group: 'detection',
    title: 'The canary’s self-test damages KV on purpose',
    severity: 'high',
    engines: ['sglang'],
    needs: ['variables'],
    why: 'It changes KV with a probability, so that a test sees the canary fire. On a serving node it changes tenants’ answers, and its alarms hide real ones.',
    how: '`SGLANG_KV_CANARY_PERTURB_…_PROB` above zero in the environment.',
    change: 'Remove the `SGLANG_KV_CANARY_PERTURB_…` variables from the environment of serving nodes.',
    references: [sglangIssue(26819)],
    cwe: ['CWE-489'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    return unwantedVariables(node, ['SGLANG_KV_CANARY_PERTURB_*_PROB'], /^SGLANG_KV_CANARY_PERTURB_\w+$/);
  },
};
