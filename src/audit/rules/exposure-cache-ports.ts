import { flagValue } from '../ask.js';
import { isLoopbackHost, reachOf } from '../exposure.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';
import { cve, isShut } from './shared.js';

/** Ports that are opened when nothing is said. */
const PORTS: Readonly<Record<string, readonly number[]>> = { lmcache: [5555, 8080], mooncake: [50051, 8080] };

export const cachePorts: Rule = {
  meta: {
    id: 'exposure.cache-ports',
    group: 'exposure',
    title: 'Ports of an outer KV cache are reachable',
    severity: 'critical',
    engines: ['lmcache', 'mooncake'],
    needs: ['manifest', 'flags'],
    why: 'LMCache up to 0.5.5 runs code for whoever reaches its internal API or its message port, and its HTTP ports delete objects and change quotas without a key; Mooncake before 0.3.13 reads and writes process memory for whoever reaches its data port, and its metadata service lets anyone redirect transfers.',
    how: 'Every port of the workload and the defaults (LMCache 5555, Mooncake 50051), against Services, host ports, hostNetwork and NetworkPolicies.',
    change:
      'Let only the engines reach these ports (NetworkPolicy); bind LMCache’s with `--host 127.0.0.1` where it serves one machine.',
    references: [cve('CVE-2026-107204'), cve('CVE-2026-105192'), cve('CVE-2026-103764'), cve('CVE-2026-103765')],
    cwe: ['CWE-306'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const host = flagValue(node, 'host', '');
    if (host !== null && isLoopbackHost(host.value)) return passed(`it listens on ${host.value}`);
    if (node.exposure === null) return notChecked('who can reach its ports is not known; its manifests would tell it');
    const numbers = [
      ...new Set([...node.exposure.ports.map(({ number }) => number), ...(PORTS[node.engine ?? ''] ?? [])]),
    ];
    const reached = numbers
      .map((number) => ({ number, ...reachOf(node, number) }))
      .filter(({ reach }) => !isShut(reach));
    const [first] = [...reached.filter(({ reach }) => reach === 'outside'), ...reached];
    if (first === undefined) return passed('only peers reach its ports');
    return failed({
      severity: first.reach === 'outside' ? 'critical' : 'high',
      at: first.source,
      observed: `port ${first.number}: ${first.why}`,
      wanted: 'ports that only the engines reach',
    });
  },
};
