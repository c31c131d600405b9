/** Which nodes work together: the other half of a pair, and replicas. Looked up in an index, since a cluster has thousands. */
import type { EngineName } from '../upstream/reading.js';
import { best, poolOf } from './ask.js';
import type { Fleet, NodeFacts } from './facts.js';
import { nameKey } from './gather/names.js';

/** Peers that a rule compares one by one; of more, those that are set up alike are taken once. */
export const PEERS_MAX = 16;
/** Flags in which two nodes of one set-up may differ. */
const OWN_FLAGS: ReadonlySet<string> = new Set([
  'host',
  'port',
  'node-rank',
  'dist-init-addr',
  'disaggregation-bootstrap-port',
]);

interface PeerIndex {
  readonly byRole: ReadonlyMap<string, readonly NodeFacts[]>;
  readonly byEngine: ReadonlyMap<string, readonly NodeFacts[]>;
  readonly replicas: ReadonlyMap<string, readonly NodeFacts[]>;
  /** One half of pairs, by role and engine; made when it is asked for. */
  readonly halves: Map<string, Half>;
}

/** Every node of one role that may be paired with one engine, and parts of them by what tells deployments apart. */
interface Half {
  readonly all: readonly NodeFacts[];
  readonly byDeployment: ReadonlyMap<string, readonly NodeFacts[]>;
}

const INDEXES = new WeakMap<Fleet, PeerIndex>();

function indexOf(fleet: Fleet): PeerIndex {
  const known = INDEXES.get(fleet);
  if (known !== undefined) return known;
  const index: PeerIndex = {
    byRole: grouped(fleet.nodes, ({ role }) => [role]),
    byEngine: grouped(fleet.nodes, ({ engine }) => [engine ?? '']),
    replicas: grouped(fleet.nodes, (node) => [replicaKey(node)]),
    halves: new Map(),
  };
  INDEXES.set(fleet, index);
  return index;
}

function grouped(
  nodes: readonly NodeFacts[],
  keysOf: (node: NodeFacts) => readonly string[],
): Map<string, NodeFacts[]> {
  const groups = new Map<string, NodeFacts[]>();
  for (const node of nodes) {
    for (const key of keysOf(node)) {
      const group = groups.get(key);
      if (group === undefined) groups.set(key, [node]);
      else group.push(node);
    }
  }
  return groups;
}

/**
 * The nodes of the other role that this one may be paired with: same engine, other half. Where names or namespaces part
 * several deployments (`glm-prefill`, `qwen-decode`), only those of its own.
 */
export function counterparts(fleet: Fleet, node: NodeFacts): readonly NodeFacts[] {
  const other = node.role === 'prefill' ? 'decode' : node.role === 'decode' ? 'prefill' : null;
  if (other === null) return [];
  const half = halfOf(fleet, other, node.engine);
  for (const key of deploymentsOf(node)) {
    const own = half.byDeployment.get(key);
    if (own !== undefined) return thinned(own);
  }
  return thinned(half.all);
}

function halfOf(fleet: Fleet, role: string, engine: EngineName | null): Half {
  const index = indexOf(fleet);
  const key = `${role} ${engine}`;
  const known = index.halves.get(key);
  if (known !== undefined) return known;
  const all = (index.byRole.get(role) ?? []).filter((one) => one.engine === engine || one.engine === null);
  const half = { all, byDeployment: grouped(all, deploymentsOf) };
  index.halves.set(key, half);
  return half;
}

/** What may tell its deployment from others, narrowest first. */
function deploymentsOf(node: NodeFacts): string[] {
  const family = familyOf(node);
  const namespace = node.exposure?.namespace ?? null;
  return [
    ...(namespace === null || family === null ? [] : [JSON.stringify([namespace, family])]),
    ...(namespace === null ? [] : [JSON.stringify([namespace])]),
    ...(family === null ? [] : [JSON.stringify([null, family])]),
  ];
}

/** Other nodes of the same engine, role and model. */
export function replicasOf(fleet: Fleet, node: NodeFacts): readonly NodeFacts[] {
  const same = indexOf(fleet).replicas.get(replicaKey(node)) ?? [];
  return thinned(same).filter((one) => one !== node);
}

export function ofEngine(fleet: Fleet, engine: EngineName): readonly NodeFacts[] {
  return indexOf(fleet).byEngine.get(engine) ?? [];
}

/** Whether another node of the same engine and role was given, of whatever model. */
export function hasSibling(fleet: Fleet, node: NodeFacts): boolean {
  const same = indexOf(fleet).byRole.get(node.role) ?? [];
  return same.some((one) => one !== node && one.engine === node.engine);
}

function replicaKey(node: NodeFacts): string {
  return JSON.stringify([node.engine, node.role, best(node.models)?.value ?? null]);
}

/** `glm-5` of `glm-5-prefill-0`; null: the name does not begin with something of its own before the role. */
function familyOf({ name, role }: NodeFacts): string | null {
  const at = nameKey(name).split(/[-/:]/);
  const end = at.findIndex((part) => part === role || part === `${role}r` || part === `${role}er`);
  return end <= 0 ? null : at.slice(0, end).join('-');
}

/** Of very many, one of each set-up: every figure and flag that a rule compares. */
function thinned(nodes: readonly NodeFacts[]): readonly NodeFacts[] {
  if (nodes.length <= PEERS_MAX) return nodes;
  const known = THINNED.get(nodes);
  if (known !== undefined) return known;
  const few = [...new Map(nodes.map((node) => [setupOf(node), node])).values()];
  THINNED.set(nodes, few);
  return few;
}

const THINNED = new WeakMap<readonly NodeFacts[], readonly NodeFacts[]>();

function setupOf(node: NodeFacts): string {
  const flags = [...node.flags]
    .filter(([name]) => !OWN_FLAGS.has(name))
    .map(([name, said]) => [name, best(said)?.value] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const variables = [...node.variables].map(([name, said]) => [name, best(said)?.value]);
  const figures = [best(node.advertised), best(node.acceptLimit), poolOf(node), best(node.pageTokens)];
  return JSON.stringify([
    node.engine,
    node.version?.text ?? null,
    figures.map((one) => one?.value ?? null),
    node.flagsComplete.length > 0,
    flags,
    variables,
    node.signs.map(({ sign }) => sign),
  ]);
}
