import { ofEngine } from '../peers.js';
import type { EngineName } from '../../upstream/reading.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';
import { apiReach, noTransfer, transferOf, vllmIssue } from './shared.js';

/** Routers that pass a client's transfer fields on: always, or when prefill's answer holds no handle. */
const LETTING: readonly (readonly [EngineName, string])[] = [
  ['sglang-mini-lb', 'passes every field of a client on'],
  ['vllm-router', 'passes the client’s own when prefill’s answer holds none'],
  ['llmd-sidecar', 'passes requests without a prefill target on as they are'],
];

export const transferParamsPass: Rule = {
  meta: {
    id: 'exposure.transfer-params-pass',
    group: 'exposure',
    title: 'Clients’ own `kv_transfer_params` reach a node that transfers KV',
    severity: 'critical',
    engines: ['vllm'],
    needs: ['transfer-config', 'manifest'],
    why: 'They name blocks by number. On a stock pair whoever sends them is answered from another request’s KV, fills decode’s prefix cache with it for everybody, makes decode connect to a host of its choice, or ends decode with one request.',
    how: 'A transfer configuration, and a router among the nodes that is known to pass these fields on, or a port that clients reach.',
    change:
      'Strip `kv_transfer_params` (also inside `vllm_xargs`) and `ec_transfer_params` at the edge, and let only the router reach the engines.',
    references: [vllmIssue(52234), vllmIssue(47843), vllmIssue(49796)],
    aisvs: ['C5.5.5', 'C5.3.1'],
    cwe: ['CWE-639', 'CWE-918'],
  },
  check(fleet: Fleet, node: NodeFacts): RuleOutcome {
    const transfer = transferOf(node);
    if (transfer === null) return noTransfer(node);
    if (node.role === 'router') return notApplicable('it is a router');
    const wanted = 'an edge that strips them';
    const { reach, why, source } = apiReach(node);
    if (reach === 'outside') return failed({ at: source, observed: `no edge is in between: ${why}`, wanted });
    if (ofEngine(fleet, 'cofferdam').some(({ role }) => role === 'router')) {
      return passed('a Cofferdam gateway refuses them');
    }
    const found = LETTING.map(([engine, what]) => ({ what, router: ofEngine(fleet, engine)[0] })).find(
      ({ router }) => router !== undefined,
    );
    if (found?.router === undefined) return notChecked('what stands between clients and it is not known');
    return failed({
      severity: 'high',
      at: transfer.source,
      observed: `${found.router.name} (${found.router.engine}) ${found.what}`,
      wanted,
      certain: found.router.engine !== 'llmd-sidecar',
    });
  },
};
