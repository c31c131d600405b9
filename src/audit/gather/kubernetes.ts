/** Kubernetes' objects: workloads of any kind that hold containers, and what leads to them. */
import type { Exposure, PolicyFact, PortFact, ServiceFact, Source } from '../facts.js';
import { type Container, readContainer, type Variable, wordsOf } from './container.js';
import { failureModeOf, withFailureMode } from './picker.js';
import type { Piece } from './piece.js';
import { dig, entriesAt, itemsAt, textAt, textsAt } from './tree.js';
import type { Tree } from './yaml-tree.js';

/** Levels below a document in which containers are looked for; Dynamo's graphs have them seven down. */
const SEARCH_DEPTH_MAX = 14;
/** Places of one document that are looked at: aliases can make a small text endless. */
const SEARCH_PLACES_MAX = 20_000;
/** Services, and policies, of one workload that are kept; those that open most come first. */
const SELECTORS_MAX = 64;
/** Ports of one range of a policy that are listed; a wider range counts as all. */
const PORT_RANGE_MAX = 2000;

export interface KubeObject {
  readonly tree: Tree;
  /** The file, below the folder that was given. */
  readonly file: string;
}

/** Whether a document is one of Kubernetes'. */
export function isKubernetes(tree: Tree): boolean {
  return textAt(tree, 'kind') !== null && textAt(tree, 'apiVersion') !== null;
}

/** `kubectl get -o yaml` wraps objects in a list. */
export function unwrapped(tree: Tree): readonly Tree[] {
  return textAt(tree, 'kind')?.endsWith('List') === true ? itemsAt(tree, 'items') : [tree];
}

interface Workload {
  readonly name: string;
  readonly kind: string;
  readonly namespace: string | null;
  readonly replicas: number | null;
  readonly labels: ReadonlyMap<string, string>;
  readonly spec: Tree;
  readonly file: string;
  readonly line: number;
}

/** The nodes that the objects start, each with who can reach it. */
export function kubernetesPieces(objects: readonly KubeObject[]): Piece[] {
  const workloads = objects.flatMap(workloadsOf);
  const net = networkOf(objects);
  return workloads.flatMap((workload) => workloadPieces(workload, net));
}

/** Pod specs anywhere in the object: below `template`, `leaderWorkerTemplate`, Dynamo's `extraPodSpec`, … */
function workloadsOf({ tree, file }: KubeObject): Workload[] {
  const kind = textAt(tree, 'kind') ?? '';
  const name = textAt(tree, 'metadata', 'name') ?? kind;
  const found: Workload[] = [];
  let places = 0;
  const search = (at: Tree, path: readonly string[], parent: Tree): void => {
    if (path.length > SEARCH_DEPTH_MAX || ++places > SEARCH_PLACES_MAX) return;
    if (at.kind === 'list') {
      for (const item of at.items) search(item, [...path, textAt(item, 'name') ?? ''], at);
      return;
    }
    if (at.kind !== 'map') return;
    if (at.entries.has('containers') || at.entries.has('mainContainer')) {
      const own = pathName(path);
      found.push({
        name: own === '' ? name : `${name}-${own}`,
        kind,
        namespace: textAt(tree, 'metadata', 'namespace'),
        replicas: numberAt(tree, 'spec', 'replicas'),
        labels: textsAt(parent, 'metadata', 'labels'),
        spec: at,
        file,
        line: at.line,
      });
      return;
    }
    for (const [step, child] of at.entries) search(child, [...path, step], at);
  };
  search(tree, [], tree);
  return withoutWorkers(found);
}

/** What parts several pods of one object: the service of a Dynamo graph, the leader and the workers of a set. */
function pathName(path: readonly string[]): string {
  const services = path.indexOf('services');
  if (services >= 0) return path[services + 1] ?? '';
  if (path.includes('workerTemplate')) return 'worker';
  const named = path.find((step) => step === 'prefill' || step === 'decode');
  return named ?? '';
}

/** A leader's workers are ranks of the same node. */
function withoutWorkers(found: readonly Workload[]): Workload[] {
  const leaders = found.some(({ name }) => !name.endsWith('-worker'));
  return leaders
    ? found.filter(({ name, kind }) => !(kind.includes('LeaderWorkerSet') && name.endsWith('-worker')))
    : [...found];
}

function workloadPieces(workload: Workload, net: Network): Piece[] {
  const pieces: { piece: Piece; container: string }[] = [];
  for (const tree of containersOf(workload.spec)) {
    const container = containerOf(tree, workload.spec);
    for (const reading of readContainer(container)) {
      const source: Source = { kind: 'manifest', name: workload.file, line: tree.line };
      pieces.push({
        container: textAt(tree, 'name') ?? 'container',
        piece: {
          source,
          place: workload.namespace ?? '',
          name: workload.name,
          ...withFailureMode(exposureOf(workload, tree, container, net), reading, net.failureModes),
        },
      });
    }
  }
  // Two engines in one pod are two nodes.
  return pieces.map(({ piece, container }) =>
    pieces.length === 1 ? piece : { ...piece, name: `${workload.name}/${container}` },
  );
}

function containersOf(spec: Tree): Tree[] {
  const main = dig(spec, 'mainContainer');
  return [
    ...(main === undefined ? [] : [main]),
    ...itemsAt(spec, 'containers'),
    // A sidecar is an init container that is always restarted.
    ...itemsAt(spec, 'initContainers').filter((tree) => textAt(tree, 'restartPolicy') === 'Always'),
  ];
}

function containerOf(tree: Tree, spec: Tree): Container {
  const variables: Variable[] = [];
  for (const item of [...itemsAt(spec, 'envs'), ...itemsAt(tree, 'env')]) {
    const name = textAt(item, 'name');
    if (name === null) continue;
    const value = dig(item, 'valueFrom') === undefined ? (textAt(item, 'value') ?? '') : null;
    variables.push({ name, value, line: item.line });
  }
  return {
    image: textAt(tree, 'image'),
    entry: wordsOf(dig(tree, 'command')),
    args: wordsOf(dig(tree, 'args')),
    variables,
    variablesComplete: dig(tree, 'envFrom') === undefined,
  };
}

interface Named<T> {
  readonly fact: T;
  readonly namespace: string | null;
  readonly selector: Selector;
  /** A Service's ports by their target; resolved against a container's names. */
  readonly targets?: readonly (string | null)[];
}

interface Selector {
  readonly labels: ReadonlyMap<string, string>;
  /** Expressions that cannot be judged make it uncertain: it then selects, so that nothing looks closed that is open. */
  readonly expressions: boolean;
}

type NamedPolicy = Named<PolicyFact> & { readonly rules: readonly Tree[] };

interface Network {
  readonly failureModes: ReadonlyMap<string, string>;
  readonly services: Selectors<Named<ServiceFact>>;
  readonly policies: Selectors<NamedPolicy>;
}

/** By one label of each selector, so that thousands of workloads do not each look at thousands of Services. */
class Selectors<T extends Named<unknown>> {
  readonly #byLabel: Map<string, T[]> = new Map();
  readonly #bare: T[] = [];
  readonly #answers: Map<string, readonly T[]> = new Map();
  readonly #worstFirst: (a: T, b: T) => number;

  constructor(all: readonly T[], worstFirst: (a: T, b: T) => number) {
    this.#worstFirst = worstFirst;
    for (const named of all) {
      const [label] = named.selector.labels;
      if (label === undefined) this.#bare.push(named);
      else {
        const key = JSON.stringify(label);
        const same = this.#byLabel.get(key);
        if (same === undefined) this.#byLabel.set(key, [named]);
        else same.push(named);
      }
    }
  }

  /** Those that select the pod. Workloads of one namespace with the same labels get the same answer. */
  of(workload: Workload, everyByDefault: boolean): readonly T[] {
    const { labels, namespace } = workload;
    const key = JSON.stringify([namespace, [...labels]]);
    const known = this.#answers.get(key);
    if (known !== undefined) return known;
    const candidates = [
      ...[...labels].flatMap((label) => this.#byLabel.get(JSON.stringify(label)) ?? []),
      ...this.#bare,
    ];
    const found = candidates.filter((named) => selects(named, workload, everyByDefault));
    const kept = [...found].sort(this.#worstFirst).slice(0, SELECTORS_MAX);
    this.#answers.set(key, kept);
    return kept;
  }
}

function networkOf(objects: readonly KubeObject[]): Network {
  const outside = new Set(objects.flatMap(({ tree }) => backendsOf(tree)));
  return {
    failureModes: new Map(objects.flatMap(({ tree }) => failureModeOf(tree))),
    services: new Selectors(
      objects.filter(({ tree }) => textAt(tree, 'kind') === 'Service').map((one) => serviceOf(one, outside)),
      (a, b) => Number(leadsOutside(b.fact)) - Number(leadsOutside(a.fact)),
    ),
    policies: new Selectors(
      objects.filter(({ tree }) => textAt(tree, 'kind') === 'NetworkPolicy').flatMap(policyOf),
      // One that lets everybody in outweighs those that do not.
      (a, b) => Number(b.rules.some(letsAnyoneIn)) - Number(a.rules.some(letsAnyoneIn)),
    ),
  };
}

/** Services that an Ingress, a Route or an HTTPRoute leads to. */
function backendsOf(tree: Tree): string[] {
  const kind = textAt(tree, 'kind') ?? '';
  if (!/^(?:Ingress|HTTPRoute|GRPCRoute|TCPRoute|Route|VirtualService|IngressRoute)$/.test(kind)) return [];
  const names: string[] = [];
  let places = 0;
  const search = (at: Tree, depth: number): void => {
    if (depth > SEARCH_DEPTH_MAX || ++places > SEARCH_PLACES_MAX) return;
    if (at.kind === 'list') for (const item of at.items) search(item, depth + 1);
    if (at.kind !== 'map') return;
    const name = textAt(at, 'name');
    const other = textAt(at, 'kind');
    if (name !== null && (other === null || other === 'Service')) names.push(name);
    const host = textAt(at, 'host');
    if (host !== null && kind === 'VirtualService') names.push(host.split('.')[0]!);
    for (const child of at.entries.values()) search(child, depth + 1);
  };
  const spec = dig(tree, 'spec');
  if (spec !== undefined) search(spec, 0);
  return names;
}

const TYPES: Readonly<Record<string, ServiceFact['type']>> = { NodePort: 'node-port', LoadBalancer: 'load-balancer' };

function serviceOf({ tree, file }: KubeObject, outside: ReadonlySet<string>): Named<ServiceFact> {
  const name = textAt(tree, 'metadata', 'name') ?? 'Service';
  const ports = itemsAt(tree, 'spec', 'ports');
  const type = TYPES[textAt(tree, 'spec', 'type') ?? ''] ?? 'cluster';
  return {
    namespace: textAt(tree, 'metadata', 'namespace'),
    selector: { labels: textsAt(tree, 'spec', 'selector'), expressions: false },
    targets: ports.map((port) => textAt(port, 'targetPort') ?? textAt(port, 'port')),
    fact: {
      name,
      type: type === 'cluster' && itemsAt(tree, 'spec', 'externalIPs').length > 0 ? 'load-balancer' : type,
      ports: null,
      loopback: false,
      outside: outside.has(name),
      source: { kind: 'manifest', name: file, line: tree.line },
    },
  };
}

function policyOf({ tree, file }: KubeObject): NamedPolicy[] {
  const types = itemsAt(tree, 'spec', 'policyTypes').map((type) => textAt(type));
  if (types.length > 0 && !types.includes('Ingress')) return [];
  const name = textAt(tree, 'metadata', 'name') ?? 'NetworkPolicy';
  return [
    {
      namespace: textAt(tree, 'metadata', 'namespace'),
      selector: {
        labels: textsAt(tree, 'spec', 'podSelector', 'matchLabels'),
        expressions: itemsAt(tree, 'spec', 'podSelector', 'matchExpressions').length > 0,
      },
      rules: itemsAt(tree, 'spec', 'ingress'),
      fact: { name, rules: [], source: { kind: 'manifest', name: file, line: tree.line } },
    },
  ];
}

function selects(named: Named<unknown>, workload: Workload, everyByDefault: boolean): boolean {
  const { labels, expressions } = named.selector;
  if (named.namespace !== null && workload.namespace !== null && named.namespace !== workload.namespace) return false;
  // A policy whose expressions cannot be judged protects nothing here; a Service without a selector leads nowhere known.
  if (labels.size === 0) return everyByDefault && !expressions;
  if (expressions) return false;
  return [...labels].every(([name, value]) => workload.labels.get(name) === value);
}

function exposureOf(workload: Workload, tree: Tree, container: Container, net: Network): Exposure {
  const at = (line: number): Source => ({ kind: 'manifest', name: workload.file, line });
  const host = dig(workload.spec, 'hostNetwork');
  const image = dig(tree, 'image');
  const ports = portsOf(tree, at);
  const byName = new Map(ports.flatMap((port) => (port.name === null ? [] : [[port.name, port.number] as const])));
  return {
    workload: `${workload.kind}/${workload.name}`,
    namespace: workload.namespace,
    replicas: workload.replicas,
    image: container.image === null ? null : { value: container.image, source: at(image?.line ?? tree.line) },
    ports,
    hostNetwork: host === undefined ? null : { value: textAt(host) === 'true', source: at(host.line) },
    services: net.services
      .of(workload, false)
      .map(({ fact, targets }) => ({ ...fact, ports: resolved(targets ?? [], byName) })),
    policies: net.policies
      .of(workload, true)
      .map(({ fact, rules }) => ({ ...fact, rules: rules.map((rule) => ruleOf(rule, byName)) })),
    source: at(workload.line),
  };
}

function portsOf(tree: Tree, at: (line: number) => Source): PortFact[] {
  return itemsAt(tree, 'ports').flatMap((port) => {
    const number = numberAt(port, 'containerPort');
    if (number === null) return [];
    return [
      { number, name: textAt(port, 'name'), hostPort: dig(port, 'hostPort') !== undefined, source: at(port.line) },
    ];
  });
}

/** Null: all ports. */
function resolved(targets: readonly (string | null)[], byName: ReadonlyMap<string, number>): number[] | null {
  if (targets.length === 0) return null;
  return targets.flatMap((target) => {
    if (target === null) return [];
    const number = /^\d{1,5}$/.test(target) ? Number(target) : byName.get(target);
    return number === undefined ? [] : [number];
  });
}

const leadsOutside = ({ type, outside }: ServiceFact): boolean => type !== 'cluster' || outside;

function letsAnyoneIn(rule: Tree): boolean {
  const from = itemsAt(rule, 'from');
  return from.length === 0 || from.some(isAnyone);
}

function ruleOf(rule: Tree, byName: ReadonlyMap<string, number>): PolicyFact['rules'][number] {
  const fromAnyone = letsAnyoneIn(rule);
  const ports = itemsAt(rule, 'ports');
  if (ports.length === 0) return { ports: null, fromAnyone };
  const numbers: number[] = [];
  for (const port of ports) {
    const start = textAt(port, 'port');
    if (start === null) return { ports: null, fromAnyone };
    const first = /^\d{1,5}$/.test(start) ? Number(start) : byName.get(start);
    const last = numberAt(port, 'endPort') ?? first;
    if (first === undefined || last === undefined) continue;
    if (last - first > PORT_RANGE_MAX) return { ports: null, fromAnyone };
    for (let number = first; number <= last; number++) numbers.push(number);
  }
  return { ports: numbers, fromAnyone };
}

function isAnyone(peer: Tree): boolean {
  const cidr = textAt(peer, 'ipBlock', 'cidr');
  if (cidr !== null) return cidr.endsWith('/0');
  const everyNamespace = isEmpty(dig(peer, 'namespaceSelector'));
  const pods = dig(peer, 'podSelector');
  return everyNamespace && (pods === undefined || isEmpty(pods));
}

/** `{}` selects everything. */
function isEmpty(tree: Tree | undefined): boolean {
  if (tree?.kind !== 'map') return false;
  return entriesAt(tree, 'matchLabels').size === 0 && itemsAt(tree, 'matchExpressions').length === 0;
}

function numberAt(tree: Tree | undefined, ...path: readonly (string | number)[]): number | null {
  const text = textAt(tree, ...path);
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : null;
}
