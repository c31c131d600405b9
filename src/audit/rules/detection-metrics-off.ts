import { switchOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { sglangIssue, unknownFlag } from './shared.js';

export const metricsOff: Rule = {
  meta: {
    id: 'detection.metrics-off',
    group: 'detection',
    title: 'No metrics: pages freed without proof and failed transfers are counted by nobody',
    severity: 'low',
    engines: ['sglang'],
    needs: ['flags', 'metrics'],
    why: 'A deferred release that timed out, a checksum that did not match and a transfer that failed show in counters before anyone complains.',
    how: '`--enable-metrics` is off.',
    change:
      'Start with `--enable-metrics`, keep `/metrics` away from tenants, and alert on `sglang:decode_deferred_kv_release_total{outcome="timeout"}`.',
    references: [sglangIssue(38961)],
    cwe: ['CWE-778'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    if (node.samples.length > 0) return passed('its metrics were read');
    const said = switchOf(node, 'enable-metrics', false);
    if (said === null) return unknownFlag(node, 'enable-metrics');
    if (said.value) return passed('`--enable-metrics` is on');
    return failed({ at: said.source, observed: '`--enable-metrics` is off', wanted: 'on' });
  },
};
