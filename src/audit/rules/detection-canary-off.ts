import { atLeast, flagValue } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';
import { poolKindOf } from './models.js';
import { sglangIssue, unknownFlag, unlessPaired } from './shared.js';

/** The first version whose canary was read. */
export const CANARY_FROM = '0.5.18';

export const canaryOff: Rule = {
  meta: {
    id: 'detection.canary-off',
    group: 'detection',
    title: 'Nothing looks whether pages still hold their owner’s KV',
    severity: 'medium',
    engines: ['sglang'],
    needs: ['version', 'role', 'flags'],
    why: 'The checksum looks once, at the hand-off. The canary looks at pages while they are read, and sees what lands later.',
    how: '`--kv-canary none` (the default) on a pair whose model’s pool the canary covers.',
    change: 'Start both roles with `--kv-canary log --kv-canary-real-data partial`.',
    references: [sglangIssue(26817), sglangIssue(26819)],
    cwe: ['CWE-354'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const stop = unlessPaired(node);
    if (stop !== null) return stop;
    const said = flagValue(node, 'kv-canary', 'none');
    if (said === null) return unknownFlag(node, 'kv-canary');
    if (said.value !== 'none') return passed(`\`--kv-canary ${said.value}\``);
    if (atLeast(node, CANARY_FROM) !== true) return notChecked('whether its version has a canary is not established');
    const kind = poolKindOf(node);
    if (kind === null) return notChecked('whether the canary covers its model’s pool is not known from its name');
    if (kind.value !== 'plain' && kind.value !== 'deepseek-v4') {
      return notApplicable('the canary does not cover its model’s pool');
    }
    return failed({
      at: said.source,
      observed: '`--kv-canary none`',
      wanted: '`log` or `raise`',
      certain: kind.value === 'plain',
    });
  },
};
