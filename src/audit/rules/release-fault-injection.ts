import type { Fleet, NodeFacts } from '../facts.js';
import type { Rule, RuleOutcome } from '../rule.js';
import { sglangIssue, unwantedVariables } from './shared.js';

const KNOWN = ['SGLANG_TEST_DISAGG_FAILURE_PROB', 'SGLANG_TEST_DISAGG_KV_CHECKSUM_MISMATCH_PROB'];

export const faultInjection: Rule = {
  meta: {
    id: 'release.fault-injection',
    group: 'release',
    title: 'Faults are being injected on purpose',
    severity: 'high',
    engines: ['sglang'],
    needs: ['variables'],
    why: 'Transfers fail at random, on the paths where pages have been reused too early; left over from a test bench, it runs on tenants’ requests.',
    how: 'A variable of the kind `SGLANG_TEST_…` above zero in the environment.',
    change: 'Remove the `SGLANG_TEST_…` variables from the environment of serving nodes.',
    references: [sglangIssue(39500), sglangIssue(36610)],
    cwe: ['CWE-489'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    return unwantedVariables(node, KNOWN, /^SGLANG_TEST_\w+$/);
  },
};
