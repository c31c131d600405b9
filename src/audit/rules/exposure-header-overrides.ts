import type { Fleet, NodeFacts } from '../facts.js';
import type { Rule, RuleOutcome } from '../rule.js';
import { SGLANG_ARGUMENTS, unwantedVariables } from './shared.js';

export const headerOverrides: Rule = {
  meta: {
    id: 'exposure.header-overrides',
    group: 'exposure',
    title: 'Clients’ headers set what only a router should set',
    severity: 'high',
    engines: ['sglang'],
    needs: ['variables'],
    why: 'Pairing, ranks, priorities and request ids come from headers then, past a gateway that cleans bodies only.',
    how: '`SGLANG_ENABLE_REQUEST_HEADER_OVERRIDES` in the environment.',
    change: 'Unset `SGLANG_ENABLE_REQUEST_HEADER_OVERRIDES`, and drop `x-override-*` headers at the edge.',
    references: [SGLANG_ARGUMENTS],
    aisvs: ['C5.3.1'],
    cwe: ['CWE-639'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    return unwantedVariables(node, ['SGLANG_ENABLE_REQUEST_HEADER_OVERRIDES'], null);
  },
};
