import { signOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, type Rule, type RuleOutcome } from '../rule.js';
import { sglangIssue, unlessPaired, unwantedCount } from './shared.js';

export const deferredTimeouts: Rule = {
  meta: {
    id: 'release.deferred-timeouts',
    group: 'release',
    title: 'Pages were given back without proof that the network was done with them',
    severity: 'high',
    engines: ['sglang'],
    needs: ['role', 'metrics', 'log'],
    why: 'A deferred release that times out frees the pages anyway. Prefill withholds its confirmation exactly when a write of unknown outcome may still land, so each of these is a window for another request’s text to change.',
    how: '`sglang:decode_deferred_kv_release_total{outcome="timeout"}` above zero, or `releasing anyway` in decode’s log.',
    change:
      'Find the transfers that fail (`sglang:num_transfer_failed_reqs_total`, the link, the prefill that died), and restart decode after such failures.',
    references: [sglangIssue(24527), sglangIssue(38961)],
    cwe: ['CWE-416'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const stop = unlessPaired(node);
    if (stop !== null) return stop;
    if (node.role !== 'decode') return notApplicable('it is no decode node');
    const sign = signOf(node, 'deferred-release-timeout');
    const wanted = 'none';
    if (sign !== null) return failed({ at: sign.source, observed: `${sign.count} in the log`, wanted });
    return unwantedCount(
      node,
      ['sglang:decode_deferred_kv_release_total', 'sglang:decode_deferred_kv_release'],
      { outcome: 'timeout' },
      () => ({ wanted }),
    );
  },
};
