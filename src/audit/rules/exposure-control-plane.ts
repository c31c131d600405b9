import { keySet, isShut, unknownReach } from './shared.js';
import { flagOf, switchOf } from '../ask.js';
import { reachOf } from '../exposure.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';

/** Where their clients connect. */
const PORTS: Readonly<Record<string, number>> = { nats: 4222, etcd: 2379 };

export const controlPlane: Rule = {
  meta: {
    id: 'exposure.control-plane',
    group: 'exposure',
    title: 'What Dynamo keeps its workers and messages in is reachable',
    severity: 'critical',
    engines: ['nats', 'etcd'],
    needs: ['manifest', 'flags'],
    why: 'Workers are registered in etcd, and requests and KV events travel over NATS. Whoever may write there can put a worker of his own among them, or read what tenants send; neither asks for a password unless it is told to.',
    how: 'The ports 4222 (NATS) and 2379 (etcd) of workloads beside a Dynamo deployment, against Services, host ports, hostNetwork and NetworkPolicies; `--client-cert-auth` of etcd, `--user` or `--auth` of NATS.',
    change: 'Let only Dynamo’s own pods reach these ports (NetworkPolicy), and switch authentication on.',
    references: [
      'https://docs.nats.io/running-a-nats-service/configuration/securing_nats',
      'https://etcd.io/docs/latest/op-guide/security/',
    ],
    aisvs: ['C5.3.1'],
    cwe: ['CWE-306'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const port = PORTS[node.engine ?? ''] ?? 0;
    const { reach, why, source } = reachOf(node, port);
    if (isShut(reach)) return passed(why);
    const names = node.engine === 'etcd' ? ['client-cert-auth'] : ['user', 'auth', 'tlsverify'];
    if (names.some((name) => switchOf(node, name, false)?.value === true || keySet(node, name)?.value === true)) {
      return passed('it asks who connects');
    }
    if (reach === 'unknown') return unknownReach(port);
    // A file of settings may ask for a password.
    if (node.engine === 'nats' && (flagOf(node, 'config').state !== 'default' || flagOf(node, 'c').state === 'set')) {
      return notChecked(`whether its file of settings asks for a password is not known; ${why}`);
    }
    if (node.engine === 'etcd' && flagOf(node, 'client-cert-auth').state === 'unknown') {
      return notChecked(`\`--client-cert-auth\` is not known; ${why}`);
    }
    return failed({
      severity: reach === 'outside' ? 'critical' : 'high',
      at: source,
      observed: `port ${port}: ${why}; no authentication`,
      wanted: `port ${port} reachable by Dynamo’s own pods only`,
    });
  },
};
