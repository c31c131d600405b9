import { flagValue } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, passed, type Rule, type RuleOutcome } from '../rule.js';
import { sglangIssue, unknownFlag } from './shared.js';

export const canaryRealData: Rule = {
  meta: {
    id: 'detection.canary-real-data',
    group: 'detection',
    title: 'The canary does not look at the KV itself',
    severity: 'info',
    engines: ['sglang'],
    needs: ['flags'],
    why: 'Without real data it checks its own marks beside each slot, and misses bytes that were overwritten while the marks stayed.',
    how: '`--kv-canary-real-data none` (the default) with the canary on.',
    change: 'Add `--kv-canary-real-data partial` (16 bytes of each slot) or `all`.',
    references: [sglangIssue(26819)],
    cwe: ['CWE-354'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const canary = flagValue(node, 'kv-canary', 'none');
    if (canary === null) return unknownFlag(node, 'kv-canary');
    if (canary.value === 'none') return notApplicable('the canary is off');
    const real = flagValue(node, 'kv-canary-real-data', 'none');
    if (real === null) return unknownFlag(node, 'kv-canary-real-data');
    if (real.value !== 'none') return passed(`\`--kv-canary-real-data ${real.value}\``);
    return failed({ at: real.source, observed: 'the canary checks no real data', wanted: '`partial` or `all`' });
  },
};
