/** Numbers that two sources of one node give differently. */
import { compareVersions, parseVersion } from '../../upstream/version.js';
import { poolOf, sameArtifact } from '../ask.js';
import type { Disagreement, NodeFacts, PoolFact, Said, Sourced } from '../facts.js';

/** vLLM's log counts a block that its metrics do not: the largest block that is usual, in tokens. */
const BLOCK_TOKENS_MAX = 256;

export function disagreementsOf(node: NodeFacts): Disagreement[] {
  return [
    ...differing(node, 'the version', node.versions, sameVersion),
    ...differing(node, 'the advertised context', node.advertised, (a, b) => a === b),
    ...differing(node, 'the KV pool', perSource(node), (a, b) => samePool(node, a, b)),
    ...differing(
      node,
      'the longest prompt accepted',
      node.acceptLimit.length > 1 ? saidLimits(node) : [],
      (a, b) => a === b,
    ),
    ...differing(
      node,
      'the role',
      node.roles.filter(({ value }) => value !== 'unknown'),
      (a, b) => a === b,
    ),
  ];
}

function differing<T extends string | number>(
  node: NodeFacts,
  what: string,
  said: Said<T>,
  same: (a: T, b: T) => boolean,
): Disagreement[] {
  const [one, ...others] = said;
  if (one === undefined) return [];
  const other = others.find(({ value }) => !same(one.value, value));
  if (other === undefined) return [];
  return [{ node: node.name, what, one: asText(one), other: asText(other) }];
}

function asText<T extends string | number>({ value, source }: Sourced<T>): Sourced<string> {
  return { value: String(value), source };
}

function sameVersion(a: string, b: string): boolean {
  const [one, other] = [parseVersion(a), parseVersion(b)];
  // A tag that is no version, such as `latest`, contradicts nothing.
  return one === null || other === null || compareVersions(one, other) === 0;
}

/** The pool as each artifact tells it: its smallest rank; estimates are left out. */
function perSource(node: NodeFacts): Said<number> {
  const exact: Sourced<PoolFact>[] = node.pool.filter(({ value }) => !value.estimate);
  const firsts = exact.filter(
    (one, index) => exact.findIndex((other) => sameArtifact(other.source, one.source)) === index,
  );
  return firsts.flatMap(({ source }) => {
    const ofThis = exact.filter((one) => sameArtifact(one.source, source));
    const smallest = poolOf({ ...node, pool: ofThis });
    return smallest === null ? [] : [{ value: smallest.value.tokens, source: smallest.source }];
  });
}

function samePool(node: NodeFacts, a: number, b: number): boolean {
  if (a === b) return true;
  const block = Math.max(node.pageTokens[0]?.value ?? 0, BLOCK_TOKENS_MAX);
  return node.engine === 'vllm' && Math.abs(a - b) <= block;
}

/** A limit that was computed for a smaller rank contradicts nothing. */
function saidLimits(node: NodeFacts): Said<number> {
  return node.pool.some(({ value }) => value.rank !== null) ? [] : node.acceptLimit;
}
