import { variableOf } from '../ask.js';
import { isLoopbackHost, reachOf } from '../exposure.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { notApplicable, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';
import { hasConnector, noTransfer, transferOf, unwantedReach, VLLM_NIXL, VLLM_SECURITY } from './shared.js';

const HOST = 'VLLM_NIXL_SIDE_CHANNEL_HOST';
const PORT = 'VLLM_NIXL_SIDE_CHANNEL_PORT';

export const sideChannel: Rule = {
  meta: {
    id: 'exposure.side-channel',
    group: 'exposure',
    title: 'The NIXL side channel is reachable, and knows no key',
    severity: 'high',
    engines: ['vllm'],
    needs: ['transfer-config', 'variables', 'manifest'],
    why: 'It hands out what is needed to read the node’s KV memory. vLLM says itself that traffic between nodes is neither authenticated nor encrypted.',
    how: `\`${HOST}\` and \`${PORT}\` (localhost and 5600 when unset) against the manifests.`,
    change: `Bind \`${HOST}\` to an inner address, and let only peers reach \`${PORT}\` (NetworkPolicy).`,
    references: [VLLM_SECURITY, VLLM_NIXL],
    cwe: ['CWE-306', 'CWE-319'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const transfer = transferOf(node);
    if (transfer === null) return noTransfer(node);
    if (!hasConnector(transfer.value, /^Nixl/i)) return notApplicable(`its connector is ${transfer.value.connector}`);
    const host = variableOf(node, HOST);
    if (host.state === 'unknown') return notChecked(`\`${HOST}\` is not known`);
    if (host.state === 'unset' || (host.value !== null && isLoopbackHost(host.value)))
      return passed('it is on loopback');
    const port = variableOf(node, PORT);
    if (port.state === 'set' && port.value === null) return notChecked(`\`${PORT}\` is not known`);
    const number = port.state === 'set' ? Number(port.value) : 5600;
    return unwantedReach('the NIXL side channel', number, reachOf(node, number), {
      outside: 'high',
      cluster: 'medium',
    });
  },
};
