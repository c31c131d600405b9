import { flagValue, signOf, switchOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, notChecked, type Rule, type RuleOutcome } from '../rule.js';
import { CHECKSUM } from './detection-checksum-off.js';
import { sglangIssue, unlessPaired } from './shared.js';

export const unproven: Rule = {
  meta: {
    id: 'detection.unproven',
    group: 'detection',
    title: 'Nothing printed shows that verification ran',
    severity: 'info',
    engines: ['sglang'],
    needs: ['role', 'flags', 'log'],
    why: 'The checksum writes no line and counts nothing when it verifies; it skips requests without a word. The canary prints a line every hundred steps; without it, it may not run.',
    how: 'Checksum or canary is on; no `[canary] step=` line was read, and for the checksum there is nothing to read.',
    change:
      'Look for `[canary] step=…` in the running log. For the checksum: on a test bench let it fail on purpose (`SGLANG_TEST_DISAGG_KV_CHECKSUM_MISMATCH_PROB`, 0.5.23) and see the errors.',
    references: [sglangIssue(39500)],
    cwe: ['CWE-778'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const stop = unlessPaired(node);
    if (stop !== null) return stop;
    const checksum = switchOf(node, CHECKSUM, false);
    const canary = flagValue(node, 'kv-canary', 'none');
    if (checksum === null || canary === null) return notChecked('whether checksum and canary are on is not known');
    const silent = [
      ...(checksum.value ? ['the checksum'] : []),
      ...(canary.value !== 'none' && signOf(node, 'canary-alive') === null ? ['the canary'] : []),
    ];
    if (silent.length === 0) return notApplicable('what is on has shown that it runs, or nothing is on');
    return failed({
      title: `Nothing printed shows that ${silent.join(' and ')} ran`,
      at: checksum.value ? checksum.source : canary.source,
      observed: `${silent.join(' and ')} on, no trace of it`,
      wanted: 'a trace, or a test that makes it fail',
    });
  },
};
