import type { Fleet, NodeFacts } from '../facts.js';
import type { Rule, RuleOutcome } from '../rule.js';
import { SGLANG_ARGUMENTS, unwantedSwitch } from './shared.js';

export const roleSwitch: Rule = {
  meta: {
    id: 'exposure.role-switch',
    group: 'exposure',
    title: 'The role of a running node can be changed over HTTP',
    severity: 'low',
    engines: ['sglang'],
    needs: ['flags'],
    why: 'After a switch pool, limits and pairs are others than those that were audited, and the configuration still tells the old role.',
    how: '`--enable-pd-role-switch`.',
    change:
      'Start without `--enable-pd-role-switch`, or audit again after every switch (`internal_states` tells the live role).',
    references: [SGLANG_ARGUMENTS],
    cwe: ['CWE-749'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    return unwantedSwitch(node, 'enable-pd-role-switch');
  },
};
