import type { Fleet, NodeFacts } from '../facts.js';
import type { Rule, RuleOutcome } from '../rule.js';
import { seenInLog, sglangIssue, unlessPaired } from './shared.js';

export const checksumSkipped: Rule = {
  meta: {
    id: 'detection.checksum-skipped',
    group: 'detection',
    title: 'Requests were admitted although their KV could not be verified',
    severity: 'medium',
    engines: ['sglang'],
    needs: ['role', 'log'],
    why: 'Prefill and decode lay out KV differently, so digests cannot be compared. It is said once for each layout, and every request of it passes.',
    how: '`KV checksum skipped` in decode’s log.',
    change: 'Give both roles the same `--tp-size`, `--pp-size`, `--page-size` and `--kv-cache-dtype`.',
    references: [sglangIssue(39500)],
    cwe: ['CWE-636'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    return unlessPaired(node) ?? seenInLog(node, 'checksum-skipped', () => ({ wanted: 'every request verified' }));
  },
};
