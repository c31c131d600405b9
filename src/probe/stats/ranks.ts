/** Tests and sizes of effect that use only the order of two samples. Samples are numbers in any one unit, ties allowed. */
import { assert } from '../../base/assert.js';
import type { Prng } from '../../base/prng.js';

/** Both samples in one order: whose each value is, and after which places a value ends (ties are stepped over together). */
interface Pool {
  readonly fromA: Uint8Array;
  readonly ends: Uint32Array;
  readonly sizeA: number;
  readonly sizeB: number;
}

function pool(a: readonly number[], b: readonly number[]): Pool {
  assert(a.length > 0 && b.length > 0, 'both samples need at least one value');
  const all = [...a.map((value) => ({ value, a: 1 })), ...b.map((value) => ({ value, a: 0 }))];
  for (const { value } of all) assert(Number.isFinite(value), 'a sample may hold finite numbers only');
  all.sort((x, y) => x.value - y.value);
  const ends = all.flatMap(({ value }, i) => (i + 1 === all.length || all[i + 1]!.value !== value ? [i] : []));
  return {
    fromA: Uint8Array.from(all, (x) => x.a),
    ends: Uint32Array.from(ends),
    sizeA: a.length,
    sizeB: b.length,
  };
}

/** The statistic times both sizes: a whole number, so that equal ones are equal. */
function scaledDistance({ ends, sizeA, sizeB }: Pool, fromA: Uint8Array): number {
  let most = 0;
  let countA = 0;
  let at = 0;
  for (let e = 0; e < ends.length; e++) {
    const end = ends[e]!;
    for (; at <= end; at++) countA += fromA[at]!;
    most = Math.max(most, countA * sizeB - (at - countA) * sizeA);
  }
  return most;
}

/**
 * The one-sided two-sample Kolmogorov-Smirnov statistic D+ = max over t of F_a(t) - F_b(t), 0 to 1: large where a's values are
 * smaller than b's (Conover, Practical Nonparametric Statistics, 6.3). O(n log n).
 */
export function ksStatistic(a: readonly number[], b: readonly number[]): number {
  const pooled = pool(a, b);
  return scaledDistance(pooled, pooled.fromA) / (a.length * b.length);
}

function* permutedDistances(pooled: Pool, permutations: number, prng: Prng): Generator<number> {
  const labels = pooled.fromA.slice();
  for (let i = 0; i < permutations; i++) {
    for (let last = labels.length - 1; last > 0; last--) {
      const other = prng.below(last + 1);
      const held = labels[last]!;
      labels[last] = labels[other]!;
      labels[other] = held;
    }
    yield scaledDistance(pooled, labels);
  }
}

export interface KsResult {
  /** D+, 0 to 1. */
  readonly statistic: number;
  /** The chance of such a D+ or a larger one were the labels drawn by lot. Never 0: at least 1 / (permutations + 1). */
  readonly pValue: number;
}

/**
 * D+ and its p-value over `permutations` random labellings, counted as (b + 1) / (m + 1), which keeps the level exactly
 * (Phipson and Smyth 2010). Ties are kept as they are. O(m n).
 */
export function ksTest(a: readonly number[], b: readonly number[], permutations: number, prng: Prng): KsResult {
  const pooled = pool(a, b);
  const seen = scaledDistance(pooled, pooled.fromA);
  let asFar = 0;
  for (const distance of permutedDistances(pooled, permutations, prng)) if (distance >= seen) asFar++;
  return { statistic: seen / (a.length * b.length), pValue: (asFar + 1) / (permutations + 1) };
}

/**
 * `ksTest` says p <= alpha for a statistic above this one (strictly), over these permutations; null where
 * 1 / (permutations + 1) is above alpha already, so that nothing could.
 */
export function ksCritical(
  a: readonly number[],
  b: readonly number[],
  alpha: number,
  permutations: number,
  prng: Prng,
): number | null {
  const allowed = Math.floor(alpha * (permutations + 1) + 1e-9) - 1;
  if (allowed < 0) return null;
  const distances = Float64Array.from(permutedDistances(pool(a, b), permutations, prng)).sort();
  const critical = distances[distances.length - 1 - allowed];
  return critical === undefined ? 0 : critical / (a.length * b.length);
}

/**
 * Cliff's delta (Cliff 1993): the share of pairs with a above b less the share with a below b. -1: every a is below every b;
 * 0: neither way; 1: above. O(n log n).
 */
export function cliffsDelta(a: readonly number[], b: readonly number[]): number {
  const { fromA, ends } = pool(a, b);
  let balance = 0;
  let belowA = 0;
  let belowB = 0;
  let at = 0;
  for (const end of ends) {
    let hereA = 0;
    let here = 0;
    for (; at <= end; at++, here++) hereA += fromA[at]!;
    balance += hereA * belowB - (here - hereA) * belowA;
    belowA += hereA;
    belowB += here - hereA;
  }
  return balance / (a.length * b.length);
}
