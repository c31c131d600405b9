/** Which artifacts are of one node: by name and folder, by address, by role, by order. A doubtful match is not made. */
import type { EngineName, Fact } from '../../upstream/reading.js';
import type { NodeRole } from '../../upstream/upstream.js';
import { isLoopbackHost } from '../exposure.js';
import type { SourceKind } from '../facts.js';
import { nameKey } from './names.js';
import type { Piece } from './piece.js';

export interface Group {
  readonly pieces: Piece[];
}

/** Every piece in exactly one group, in the order of their first pieces. */
export function matchPieces(pieces: readonly Piece[]): Group[] {
  let groups = byPlaceAndName(pieces);
  groups = joinWhere(groups, sameName);
  groups = joinWhere(groups, sameAddress);
  groups = joinByRole(groups);
  groups = joinByOrder(groups);
  return groups;
}

/** Within one folder, one manifest family or one address, equal names are one node. */
function byPlaceAndName(pieces: readonly Piece[]): Group[] {
  const groups = new Map<string, Group[]>();
  const all: Group[] = [];
  for (const piece of pieces) {
    const key = JSON.stringify([piece.place, piece.name === null ? null : nameKey(piece.name)]);
    const same = groups.get(key) ?? [];
    const fitting = same.find((group) => fits(group, piece));
    if (fitting !== undefined) {
      fitting.pieces.push(piece);
      continue;
    }
    const group: Group = { pieces: [piece] };
    groups.set(key, [...same, group]);
    all.push(group);
  }
  return all;
}

function fits(group: Group, piece: Piece): boolean {
  const one: Group = { pieces: [piece] };
  if (!compatible(group, one)) return false;
  if (piece.endpoint !== undefined) return true;
  const { kind } = piece.source;
  // Answers and metrics of one node come in several files, as long as they tell the same; two logs are two nodes.
  if (kind === 'answer' || kind === 'metrics') return group.pieces.every((other) => sameFigures(other, piece));
  return group.pieces.every((other) => other.source.kind !== kind);
}

function sameFigures(a: Piece, b: Piece): boolean {
  if (a.source.kind !== b.source.kind) return true;
  return (['advertised', 'pool', 'refused-from'] as const).every((kind) => {
    const [one, other] = [smallest(a, kind), smallest(b, kind)];
    return one === other || one === Infinity || other === Infinity;
  });
}

function smallest({ reading }: Piece, kind: 'advertised' | 'pool' | 'refused-from'): number {
  return Math.min(...reading.facts.flatMap((fact) => (fact.kind === kind ? [fact.tokens] : [])));
}

export function engineOf(group: Group): EngineName | null {
  return group.pieces.find(({ reading }) => reading.engine !== null)?.reading.engine ?? null;
}

export function roleOf(group: Group): NodeRole {
  for (const role of roles(group)) if (role !== 'unknown') return role;
  return 'unknown';
}

function roles(group: Group): NodeRole[] {
  return facts(group).flatMap((fact) => (fact.kind === 'role' ? [fact.role] : []));
}

function facts(group: Group): Fact[] {
  return group.pieces.flatMap(({ reading }) => reading.facts);
}

function kinds(group: Group): Set<SourceKind> {
  return new Set(group.pieces.map(({ source }) => (source.kind === 'metrics' ? 'answer' : source.kind)));
}

function compatible(a: Group, b: Group): boolean {
  const [aEngine, bEngine] = [engineOf(a), engineOf(b)];
  if (aEngine !== null && bEngine !== null && aEngine !== bEngine) return false;
  const [aRole, bRole] = [roleOf(a), roleOf(b)];
  return aRole === 'unknown' || bRole === 'unknown' || aRole === bRole;
}

/** Different artifacts of one node: no kind of source in both. */
function complement(a: Group, b: Group): boolean {
  const other = kinds(b);
  return compatible(a, b) && [...kinds(a)].every((kind) => !other.has(kind));
}

/** Joins two groups where `same` holds for exactly one partner of each. */
function joinWhere(groups: readonly Group[], same: (a: Group, b: Group) => boolean): Group[] {
  let joined = [...groups];
  for (const group of groups) {
    if (!joined.includes(group)) continue;
    const partners = joined.filter((other) => other !== group && complement(group, other) && same(group, other));
    const [partner] = partners;
    if (partner === undefined || partners.length > 1) continue;
    const back = joined.filter((other) => other !== partner && complement(partner, other) && same(partner, other));
    if (back.length > 1) continue;
    joined = replaced(joined, group, partner);
  }
  return joined;
}

function replaced(groups: readonly Group[], kept: Group, gone: Group): Group[] {
  kept.pieces.push(...gone.pieces);
  return groups.filter((group) => group !== gone);
}

function names(group: Group): Set<string> {
  return new Set(group.pieces.flatMap(({ name }) => (name === null ? [] : [nameKey(name)])));
}

function sameName(a: Group, b: Group): boolean {
  const other = names(b);
  return [...names(a)].some((name) => other.has(name));
}

/** A listener on loopback or on every address says only its port: two nodes may have that alike. */
function addresses(group: Group): Set<string> {
  const found = new Set<string>();
  for (const fact of facts(group)) {
    if (fact.kind === 'listens' && !/^(?:0\.0\.0\.0|::|\[::\])$/.test(fact.host) && !isLoopbackHost(fact.host)) {
      found.add(`${fact.host}:${fact.port}`);
    }
  }
  for (const { endpoint } of group.pieces)
    if (endpoint !== undefined) found.add(endpoint.origin.replace(/^https?:\/\//, ''));
  return found;
}

function sameAddress(a: Group, b: Group): boolean {
  const other = addresses(b);
  return [...addresses(a)].some((address) => other.has(address));
}

/** The only prefill of the manifests and the only prefill of the logs are one node. */
function joinByRole(groups: readonly Group[]): Group[] {
  let joined = [...groups];
  for (const role of ['prefill', 'decode', 'single'] as const) {
    const same = joined.filter((group) => roleOf(group) === role && holdsFacts(group));
    for (const group of same) {
      if (!joined.includes(group)) continue;
      const rivals = same.filter((other) => other !== group && joined.includes(other) && !complement(group, other));
      const partners = same.filter((other) => other !== group && joined.includes(other) && complement(group, other));
      const partnersRivals =
        partners.length === 1 &&
        same.some(
          (other) =>
            other !== partners[0] && other !== group && joined.includes(other) && !complement(partners[0]!, other),
        );
      if (rivals.length === 0 && partners.length === 1 && !partnersRivals && bothNamed(group, partners[0]!)) {
        joined = replaced(joined, group, partners[0]!);
      }
    }
  }
  return joined;
}

function holdsFacts(group: Group): boolean {
  return facts(group).length > 0;
}

/** A single node is matched by role only where one side has no name of its own, or a role says more than `single`. */
function bothNamed(a: Group, b: Group): boolean {
  return roleOf(a) !== 'single' || names(a).size === 0 || names(b).size === 0 || isPersonGiven(a) || isPersonGiven(b);
}

function isPersonGiven(group: Group): boolean {
  return group.pieces.some(({ order }) => order !== undefined);
}

/** As many command lines as other nodes, in the same order, and nothing speaks against it. */
function joinByOrder(groups: readonly Group[]): Group[] {
  const ordered = groups.filter(isPersonGiven);
  const others = groups.filter((group) => !isPersonGiven(group) && holdsFacts(group));
  if (ordered.length === 0 || ordered.length !== others.length) return [...groups];
  if (!ordered.every((group, index) => complement(group, others[index]!))) return [...groups];
  let joined = [...groups];
  for (const [index, group] of ordered.entries()) joined = replaced(joined, others[index]!, group);
  return joined;
}
