/** Who can reach a node's ports, as far as manifests say. */
import type { Exposure, NodeFacts, ServiceFact, Source } from './facts.js';

export type { Exposure, PolicyFact, PortFact, ServiceFact } from './facts.js';

/**
 * `outside`: from beyond the cluster or machine · `cluster`: from any pod · `restricted`: from those that a policy names ·
 * `loopback`: from the machine or pod itself · `unknown`: no manifest, and no address that says it.
 */
export type Reach = 'outside' | 'cluster' | 'restricted' | 'loopback' | 'unknown';

export interface ReachFact {
  readonly reach: Reach;
  /** What makes it so; null with `unknown`. */
  readonly source: Source | null;
  /** In words: "Service `decode` of type LoadBalancer". */
  readonly why: string;
}

function policyVerdict(exposure: Exposure, port: number): 'open' | 'restricted' | 'none' {
  if (exposure.policies.length === 0) return 'none';
  const open = exposure.policies.some(({ rules }) =>
    rules.some(({ ports, fromAnyone }) => fromAnyone && (ports === null || ports.includes(port))),
  );
  return open ? 'open' : 'restricted';
}

function leadsTo(service: ServiceFact, port: number): boolean {
  return service.ports === null || service.ports.includes(port);
}

function outsideService(exposure: Exposure, port: number): ServiceFact | undefined {
  return exposure.services.find(
    (service) => leadsTo(service, port) && !service.loopback && (service.type !== 'cluster' || service.outside),
  );
}

/** Who can reach `port` of the node. A listener on loopback is for itself whatever the manifests say. */
export function reachOf(node: NodeFacts, port: number): ReachFact {
  const { exposure } = node;
  const bound = node.listens.find(({ value }) => value.port === port);
  if (bound !== undefined && isLoopbackHost(bound.value.host)) {
    return { reach: 'loopback', source: bound.source, why: `it listens on ${bound.value.host}` };
  }
  if (exposure === null) return { reach: 'unknown', source: null, why: 'no manifest speaks of it' };
  const service = outsideService(exposure, port);
  if (service !== undefined) {
    return { reach: 'outside', source: service.source, why: `${service.name} (${service.type}) leads to it` };
  }
  if (exposure.hostNetwork?.value === true) {
    return {
      reach: 'outside',
      source: exposure.hostNetwork.source,
      why: 'hostNetwork: the port is open on the machine',
    };
  }
  const hostPort = exposure.ports.find((one) => one.number === port && one.hostPort);
  if (hostPort !== undefined) return { reach: 'outside', source: hostPort.source, why: 'a hostPort leads to it' };
  if (exposure.services.some((one) => leadsTo(one, port) && one.loopback)) {
    const source = exposure.services.find((one) => leadsTo(one, port))?.source ?? exposure.source;
    return { reach: 'loopback', source, why: 'it is published on loopback only' };
  }
  switch (policyVerdict(exposure, port)) {
    case 'restricted':
      return {
        reach: 'restricted',
        source: exposure.policies[0]?.source ?? exposure.source,
        why: 'a NetworkPolicy names who may',
      };
    case 'open':
      return { reach: 'cluster', source: exposure.source, why: 'its NetworkPolicy lets every pod in on this port' };
    case 'none':
      return { reach: 'cluster', source: exposure.source, why: 'no NetworkPolicy selects it: every pod may connect' };
  }
}

export function isLoopbackHost(host: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)$/i.test(host);
}
