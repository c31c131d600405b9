import { switchOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, passed, type Rule, type RuleOutcome } from '../rule.js';
import { sglangIssue, unknownFlag } from './shared.js';

export const miniLb: Rule = {
  meta: {
    id: 'exposure.mini-lb',
    group: 'exposure',
    title: 'The mini load balancer stands in front of the engines',
    severity: 'high',
    engines: ['sglang-mini-lb', 'sglang-router'],
    needs: ['flags'],
    why: 'It ignores the status of prefill: a refusal there becomes a 200 with whatever decode says, the public incident in its plainest form. It knows no keys and passes every field of a client on.',
    how: '`--mini-lb`, or the `mini_lb` module.',
    change: 'Start the router without `--mini-lb`, with `--api-key`, behind a gateway that reads prefill’s answer.',
    references: [sglangIssue(30233)],
    cwe: ['CWE-754', 'CWE-306'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const said = switchOf(node, 'mini-lb', false);
    if (node.engine === 'sglang-mini-lb') {
      const at = said?.source ?? node.sources[0] ?? null;
      return failed({ at, observed: 'the mini load balancer', wanted: 'a router that reads prefill’s status' });
    }
    if (node.role !== 'router') return notApplicable('it is no router');
    if (said === null) return unknownFlag(node, 'mini-lb');
    if (!said.value) return passed('`--mini-lb` is off');
    return failed({ at: said.source, observed: '`--mini-lb`', wanted: 'a router that reads prefill’s status' });
  },
};
