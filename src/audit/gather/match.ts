/** Which artifacts are of one node: by name and folder, by address, by role, by order. A doubtful match is not made. */
import type { EngineName } from '../../upstream/reading.js';
import type { NodeRole } from '../../upstream/upstream.js';
import { isLoopbackHost } from '../exposure.js';
import type { SourceKind } from '../facts.js';
import { nameKey } from './names.js';
import type { Piece } from './piece.js';

/** Groups of one name that are looked through: with more of them a name tells nothing. */
const SAME_NAME_MAX = 32;
/** Groups of one role, each of other kinds of sources, that may be one node: there are no more kinds. */
const SAME_ROLE_MAX = 8;

/** The artifacts of one node, and what they say together. */
export class Group {
  readonly pieces: Piece[] = [];
  readonly names: Set<string> = new Set();
  readonly addresses: Set<string> = new Set();
  readonly kinds: Set<SourceKind> = new Set();
  engine: EngineName | null = null;
  role: NodeRole = 'unknown';
  /** Given one by one, by a person. */
  ordered = false;
  telling = false;

  constructor(first?: Piece) {
    if (first !== undefined) this.add(first);
  }

  add(piece: Piece): void {
    this.pieces.push(piece);
    const { kind } = piece.source;
    this.kinds.add(kind === 'metrics' ? 'answer' : kind);
    this.engine ??= piece.reading.engine;
    if (piece.name !== null) this.names.add(nameKey(piece.name));
    if (piece.order !== undefined) this.ordered = true;
    if (piece.endpoint !== undefined) this.addresses.add(piece.endpoint.origin.replace(/^https?:\/\//, ''));
    for (const fact of piece.reading.facts) {
      this.telling = true;
      if (fact.kind === 'role' && this.role === 'unknown') this.role = fact.role;
      // A listener on loopback or on every address says only its port: two nodes may have that alike.
      if (fact.kind === 'listens' && !/^(?:0\.0\.0\.0|::|\[::\])$/.test(fact.host) && !isLoopbackHost(fact.host)) {
        this.addresses.add(`${fact.host}:${fact.port}`);
      }
    }
  }

  /** Nothing in the two says that they are different nodes. */
  suits(other: Group): boolean {
    if (this.engine !== null && other.engine !== null && this.engine !== other.engine) return false;
    return this.role === 'unknown' || other.role === 'unknown' || this.role === other.role;
  }

  /** Different artifacts of what may be one node: no kind of source in both. */
  completes(other: Group): boolean {
    return this !== other && this.suits(other) && [...this.kinds].every((kind) => !other.kinds.has(kind));
  }
}

/** Every piece in exactly one group, in the order of their first pieces. */
export function matchPieces(pieces: readonly Piece[]): Group[] {
  const groups = byPlaceAndName(pieces);
  const named = joinByKey(groups, ({ names }) => names);
  const addressed = joinByKey(named, ({ addresses }) => addresses);
  return joinByOrder(joinByRole(addressed));
}

/** Within one folder, one manifest family or one address, equal names are one node. */
function byPlaceAndName(pieces: readonly Piece[]): Group[] {
  const groups = new Map<string, Group[]>();
  const all: Group[] = [];
  for (const piece of pieces) {
    const key = JSON.stringify([piece.place, piece.name === null ? null : nameKey(piece.name)]);
    const same = groups.get(key) ?? [];
    const fitting = same.slice(-SAME_NAME_MAX).find((group) => fits(group, piece));
    if (fitting !== undefined) {
      fitting.add(piece);
      continue;
    }
    const group = new Group(piece);
    same.push(group);
    groups.set(key, same);
    all.push(group);
  }
  return all;
}

function fits(group: Group, piece: Piece): boolean {
  if (!group.suits(new Group(piece))) return false;
  if (piece.endpoint !== undefined) return true;
  const { kind } = piece.source;
  // Answers and metrics of one node come in several files, as long as they tell the same; two logs are two nodes.
  if (kind === 'answer' || kind === 'metrics') return group.pieces.every((other) => sameFigures(other, piece));
  return group.pieces.every((other) => other.source.kind !== kind);
}

type Figure = 'advertised' | 'pool' | 'refused-from';

function sameFigures(a: Piece, b: Piece): boolean {
  if (a.source.kind !== b.source.kind) return true;
  return (['advertised', 'pool', 'refused-from'] as const).every((kind) => {
    const [one, other] = [smallest(a, kind), smallest(b, kind)];
    return one === other || one === Infinity || other === Infinity;
  });
}

function smallest({ reading }: Piece, kind: Figure): number {
  let tokens = Infinity;
  for (const fact of reading.facts) if (fact.kind === kind) tokens = Math.min(tokens, fact.tokens);
  return tokens;
}

/** Joins two groups that share a key, where each is the other's only candidate. */
function joinByKey(groups: readonly Group[], keysOf: (group: Group) => ReadonlySet<string>): Group[] {
  const index = new Map<string, Group[]>();
  for (const group of groups) {
    for (const key of keysOf(group)) {
      const sharing = index.get(key);
      if (sharing === undefined) index.set(key, [group]);
      else sharing.push(group);
    }
  }
  const gone = new Set<Group>();
  const candidates = (group: Group): Group[] => {
    const found = new Set<Group>();
    for (const key of keysOf(group)) {
      const sharing = index.get(key) ?? [];
      if (sharing.length > SAME_NAME_MAX) continue;
      for (const other of sharing) if (!gone.has(other) && group.completes(other)) found.add(other);
    }
    return [...found];
  };
  for (const group of groups) {
    if (gone.has(group)) continue;
    const [partner, ...more] = candidates(group);
    if (partner === undefined || more.length > 0 || candidates(partner).length > 1) continue;
    absorb(group, partner);
    gone.add(partner);
  }
  return groups.filter((group) => !gone.has(group));
}

function absorb(group: Group, other: Group): void {
  for (const piece of other.pieces) group.add(piece);
}

/** The only prefill of the manifests and the only prefill of the logs are one node. */
function joinByRole(groups: readonly Group[]): Group[] {
  const gone = new Set<Group>();
  for (const role of ['prefill', 'decode', 'single'] as const) {
    const same = groups.filter((group) => group.role === role && group.telling);
    if (same.length < 2 || same.length > SAME_ROLE_MAX) continue;
    const [first, ...others] = same;
    // Each of other kinds of sources than every other one: then they can only be one node.
    const alone = same.every((a) => same.every((b) => a === b || (a.completes(b) && mayShareRole(a, b))));
    if (first === undefined || !alone) continue;
    for (const other of others) {
      absorb(first, other);
      gone.add(other);
    }
  }
  return groups.filter((group) => !gone.has(group));
}

/** Two single nodes with names of their own are two nodes; a command line that a person gave has none. */
function mayShareRole(a: Group, b: Group): boolean {
  return a.role !== 'single' || a.names.size === 0 || b.names.size === 0;
}

/** As many command lines as other nodes, in the same order, and nothing speaks against it. */
function joinByOrder(groups: readonly Group[]): Group[] {
  const ordered = groups.filter((group) => group.ordered);
  const others = groups.filter((group) => !group.ordered && group.telling);
  if (ordered.length === 0 || ordered.length !== others.length) return [...groups];
  if (!ordered.every((group, index) => group.completes(others[index]!))) return [...groups];
  for (const [index, group] of ordered.entries()) absorb(others[index]!, group);
  return groups.filter((group) => !group.ordered || others.includes(group));
}
