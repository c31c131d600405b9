import { isLoopbackHost, reachOf } from '../exposure.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { notApplicable, passed, type Rule, type RuleOutcome } from '../rule.js';
import { cve, hasConnector, noTransfer, transferOf, unwantedReach, VLLM_SECURITY } from './shared.js';

/** When nothing is said. */
const HOST_DEFAULT = '127.0.0.1';
const PORT_DEFAULT = 14579;

export const transferPort: Rule = {
  meta: {
    id: 'exposure.transfer-port',
    group: 'exposure',
    title: 'The port over which connectors exchange KV is reachable',
    severity: 'high',
    engines: ['vllm'],
    needs: ['transfer-config', 'manifest'],
    why: 'Traffic between nodes is neither authenticated nor encrypted, and older versions unpickle what comes in.',
    how: '`kv_ip` and `kv_port` (127.0.0.1 and 14579) of `--kv-transfer-config` against the manifests, with connectors that use them.',
    change: 'Let only peers reach `kv_port` (NetworkPolicy), and keep `kv_ip` on an inner address.',
    references: [VLLM_SECURITY, cve('CVE-2025-32444'), cve('CVE-2025-47277')],
    cwe: ['CWE-306', 'CWE-319'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const transfer = transferOf(node);
    if (transfer === null) return noTransfer(node);
    if (!hasConnector(transfer.value, /^(?:P2pNccl|PyNccl|Mooncake)/)) {
      return notApplicable(`${transfer.value.connector} does not use this port`);
    }
    const host = transfer.value.ip ?? HOST_DEFAULT;
    if (isLoopbackHost(host)) return passed(`it is on ${host}`);
    const port = transfer.value.port ?? PORT_DEFAULT;
    return unwantedReach('KV transfer', port, reachOf(node, port), { outside: 'high', cluster: 'medium' });
  },
};
