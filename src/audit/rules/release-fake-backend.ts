import type { Fleet, NodeFacts } from '../facts.js';
import type { Rule, RuleOutcome } from '../rule.js';
import { SGLANG_ARGUMENTS, unlessPaired, unwantedValue } from './shared.js';

export const fakeBackend: Rule = {
  meta: {
    id: 'release.fake-backend',
    group: 'release',
    title: 'The transfer backend is the one for tests: no KV is ever moved',
    severity: 'critical',
    engines: ['sglang'],
    needs: ['role', 'flags'],
    why: 'Decode takes pages for the prompt, is told at once that they arrived, and answers from whatever they held.',
    how: '`--disaggregation-transfer-backend fake`.',
    change: 'Use `--disaggregation-transfer-backend mooncake` (or nixl with 0.5.23) on both roles.',
    references: [SGLANG_ARGUMENTS],
    aisvs: ['C5.5.5'],
    cwe: ['CWE-226', 'CWE-489'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    return (
      unlessPaired(node) ??
      unwantedValue(
        node,
        'disaggregation-transfer-backend',
        (value) => value === 'fake',
        () => ({ wanted: 'a backend that moves KV' }),
        'mooncake',
      )
    );
  },
};
