import type { Fleet, NodeFacts } from '../facts.js';
import { notApplicable, notChecked, type Rule, type RuleOutcome } from '../rule.js';
import {
  apiPort,
  apiReach,
  sglangIssue,
  transferOf,
  unlessPaired,
  unlessServing,
  unwantedReach,
  vllmIssue,
} from './shared.js';

export const pairReachable: Rule = {
  meta: {
    id: 'exposure.pair-reachable',
    group: 'exposure',
    title: 'Clients can reach a prefill or decode node without its router',
    severity: 'critical',
    engines: ['sglang', 'vllm'],
    needs: ['role', 'manifest', 'flags'],
    why: 'The fields with which a router pairs two nodes are honoured from any client in every version read. Who sets them decides which pages an answer is made from, reads another request’s KV, or makes the node connect where it should not.',
    how: 'Services, Ingresses, host ports, hostNetwork and NetworkPolicies of the workload, and the address that it binds.',
    change:
      'Add a NetworkPolicy that lets only the router in on the API port, or bind `--host 127.0.0.1` behind a local router.',
    references: [sglangIssue(40125), sglangIssue(39400), vllmIssue(52234), vllmIssue(47843)],
    aisvs: ['C5.3.1', 'C5.5.5'],
    cwe: ['CWE-668', 'CWE-639'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const worker = unlessServing(node);
    if (worker !== null) return worker;
    if (node.engine === 'sglang' || transferOf(node) === null) {
      const stop = unlessPaired(node);
      if (stop !== null) return stop;
    } else if (node.role === 'router') return notApplicable('it is no half of a pair');
    else if (node.role === 'single') return notChecked('whether it is one half of a pair is not known');
    return unwantedReach('its API', apiPort(node), apiReach(node), { outside: 'critical', cluster: 'high' });
  },
};
