/** Against values that SciPy computed (`test/fixtures/scipy/make.py`), by other methods than those of the code where there are any. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Prng } from '../../base/prng.js';
import { MARKER_ALPHABET, MARKER_CHARACTERS, MARKER_PREFIX } from '../../markers/marker.js';
import { HIT_CHARACTERS_MIN } from '../../markers/marker-index.js';
import { lowerBound, requestsForBound, upperBound } from './binomial.js';
import { histogram, quantile } from './describe.js';
import { fisherExact } from './fisher.js';
import { COFFERDAM_MARKER, fragmentChanceBound } from './fragment.js';
import { cliffsDelta, ksStatistic, ksTest } from './ranks.js';
import { nominalAlphas, spentAlpha } from './sequential.js';
import { smallestVisibleShift } from './shift.js';
import { normalCdf, normalQuantile } from './special.js';

type Row = readonly number[];
interface Fixtures {
  readonly binomial: readonly Row[];
  readonly fisher: readonly Row[];
  readonly ranks: readonly { a: Row; b: Row; d: number; p: number; delta: number }[];
  readonly normalCdf: readonly Row[];
  readonly normalQuantile: readonly Row[];
  readonly looks: readonly { alpha: number; times: Row; z: Row; nominal: Row }[];
  readonly describe: { data: Row; quantiles: readonly Row[]; histogram: { counts: Row; edges: Row } };
  readonly shift: readonly { n: number; shift: number }[];
}
const SCIPY = JSON.parse(
  readFileSync(new URL('../../../../test/fixtures/scipy/stats.json', import.meta.url), 'utf8'),
) as Fixtures;

function near(got: number, want: number, relative: number, words: string): void {
  assert.ok(Math.abs(got - want) <= relative * Math.abs(want), `${words}: ${got}, SciPy says ${want}`);
}

test('exact bounds of a share are those of SciPy, from no hit to all hits and up to a million trials', () => {
  for (const [hits, trials, confidence, low, high] of SCIPY.binomial as [number, number, number, number, number][]) {
    near(upperBound(hits, trials, confidence), high, 1e-8, `upper ${hits} of ${trials} at ${confidence}`);
    near(lowerBound(hits, trials, confidence), low, 1e-8, `lower ${hits} of ${trials} at ${confidence}`);
  }
});

test('no hit gives the rule of three, and the requests for a bound are the fewest that reach it', () => {
  for (const n of [1, 59, 1200, 1e6]) near(upperBound(0, n, 0.95), -Math.expm1(Math.log(0.05) / n), 1e-9, `0 of ${n}`);
  assert.ok(Math.abs(upperBound(0, 1200, 0.95) - 3 / 1200) < 1e-5);
  assert.equal(requestsForBound(0.05, 0.95), 59);
  for (const bound of [0.5, 0.05, 0.01, 0.001]) {
    const n = requestsForBound(bound, 0.95);
    assert.ok(upperBound(0, n, 0.95) <= bound, `${n} are enough for ${bound}`);
    assert.ok(n === 1 || upperBound(0, n - 1, 0.95) > bound, `${n - 1} are not enough for ${bound}`);
  }
  assert.equal(upperBound(0, 0, 0.95), 1);
});

test("Fisher's exact test agrees with SciPy, with empty rows and with a hundred thousand counts", () => {
  for (const row of SCIPY.fisher) {
    const [hitsA, missesA, hitsB, missesB, greater, less, both] = row as [
      number,
      number,
      number,
      number,
      number,
      number,
      number,
    ];
    const table = { hitsA, missesA, hitsB, missesB };
    near(fisherExact(table, 'greater'), greater, 1e-8, `greater ${row.join()}`);
    near(fisherExact(table, 'less'), less, 1e-8, `less ${row.join()}`);
    near(fisherExact(table, 'two-sided'), both, 1e-8, `two-sided ${row.join()}`);
  }
});

test("the Kolmogorov-Smirnov statistic and Cliff's delta are SciPy's, ties included", () => {
  for (const { a, b, d, delta } of SCIPY.ranks) {
    assert.ok(Math.abs(ksStatistic(a, b) - d) < 1e-12, `D ${a.join()} / ${b.join()}`);
    assert.ok(Math.abs(cliffsDelta(a, b) - delta) < 1e-12, `delta ${a.join()} / ${b.join()}`);
  }
});

test('the permutation p-value lies where the exact one does', () => {
  const permutations = 4000;
  for (const { a, b, p } of SCIPY.ranks) {
    const { pValue } = ksTest(a, b, permutations, new Prng(3));
    const spread = 4.5 * Math.sqrt((p * (1 - p)) / permutations) + 1 / permutations;
    assert.ok(Math.abs(pValue - p) <= spread, `seed 3: ${pValue}, exact ${p}`);
  }
});

test("the normal's distribution and quantiles are SciPy's, far tails included", () => {
  for (const [x, p] of SCIPY.normalCdf as [number, number][]) near(normalCdf(x), p, 1e-11, `cdf ${x}`);
  for (const [p, x] of SCIPY.normalQuantile as [number, number][])
    assert.ok(
      Math.abs(normalQuantile(p) - x) <= 1e-9 * Math.max(1, Math.abs(x)),
      `quantile ${p}: ${normalQuantile(p)}, ${x}`,
    );
});

test('the levels at each look are those of the joint normal of all looks', () => {
  for (const { alpha, times, z, nominal } of SCIPY.looks) {
    const levels = nominalAlphas(alpha, times);
    levels.forEach((level, i) => {
      assert.ok(Math.abs(level - nominal[i]!) < 2e-5, `look ${i + 1} of ${times.join()}: ${level}, ${nominal[i]}`);
      assert.ok(Math.abs(-normalQuantile(level) - z[i]!) < 2e-3, `bound ${i + 1} of ${times.join()}: ${z[i]}`);
    });
  }
});

test('five even looks at 0.025 have the bounds that are printed for this spending function', () => {
  const bounds = nominalAlphas(0.025, [0.2, 0.4, 0.6, 0.8, 1]).map((level) => -normalQuantile(level));
  // The one-sided function is applied to 0.025, as in Lan and DeMets for each side of a two-sided 0.05.
  [4.8769, 3.3569, 2.6803, 2.2898, 2.031].forEach((want, i) => {
    assert.ok(Math.abs(bounds[i]! - want) < 1e-3, `look ${i + 1}: ${bounds[i]}, printed ${want}`);
  });
});

test('walks of chance alone are stopped at one look or another as often as alpha says', () => {
  const times = Array.from({ length: 10 }, (_, i) => (i + 1) / 10);
  const bounds = nominalAlphas(0.05, times).map((level) => -normalQuantile(level));
  const prng = new Prng(11);
  const runs = 20_000;
  let stopped = 0;
  for (let run = 0; run < runs; run++) {
    let sum = 0;
    const crossed = times.some((time, i) => {
      sum += prng.normal() * Math.sqrt(0.1);
      return sum / Math.sqrt(time) >= bounds[i]!;
    });
    if (crossed) stopped++;
  }
  assert.ok(Math.abs(stopped / runs - 0.05) < 4 * Math.sqrt((0.05 * 0.95) / runs), `seed 11: ${stopped / runs}`);
  assert.ok(Math.abs(spentAlpha(0.05, 1) - 0.05) < 1e-12);
});

test("quantiles and histograms are NumPy's", () => {
  const { data, quantiles, histogram: want } = SCIPY.describe;
  for (const [share, value] of quantiles as [number, number][])
    near(quantile(data, share), value, 1e-12, `quantile ${share}`);
  const got = histogram(data, want.counts.length);
  assert.deepEqual(got.counts, want.counts);
  for (const [i, edge] of got.edges.entries()) near(edge, want.edges[i]!, 1e-12, `edge ${i}`);
  assert.deepEqual(histogram([5, 5], 2).counts, [0, 2]);
  assert.deepEqual(histogram([0, 1, 2, 9], 2, [0, 2]).counts, [1, 2]);
});

test('the smallest visible shift is near the one that a simulation finds in known distributions', () => {
  const options = { alpha: 0.05, power: 0.8, permutations: 999, resamples: 150 };
  for (const { n, shift } of SCIPY.shift) {
    const got = [1, 2, 3].map((seed) => {
      const prng = new Prng(seed);
      const a = Array.from({ length: n }, () => prng.normal());
      // A shift that is there already must not count as visible by itself.
      const b = Array.from({ length: n }, () => prng.normal() + 5);
      return smallestVisibleShift(a, b, { ...options, seed }) ?? Infinity;
    });
    const middle = quantile(got, 0.5);
    assert.ok(middle > 0.75 * shift && middle < 1.3 * shift, `seeds 1 to 3: ${got.join()}, simulated ${shift}`);
  }
});

test('too few values or permutations see no shift at all', () => {
  const options = { alpha: 0.01, power: 0.8, permutations: 999, resamples: 50, seed: 1 };
  assert.equal(smallestVisibleShift([1, 2, 3], [1, 2, 3], options), null);
  const many = Array.from({ length: 50 }, (_, i) => i);
  assert.equal(smallestVisibleShift(many, many, { ...options, permutations: 50 }), null);
  assert.notEqual(smallestVisibleShift(many, many, options), null);
});

test('the marker whose fragments are counted is the one that is planted', () => {
  assert.equal(MARKER_PREFIX.length, COFFERDAM_MARKER.prefixCharacters);
  assert.equal(MARKER_CHARACTERS, COFFERDAM_MARKER.prefixCharacters + COFFERDAM_MARKER.codeCharacters);
  assert.equal(MARKER_ALPHABET.length, 2 ** COFFERDAM_MARKER.bitsPerCharacter);
  assert.equal(fragmentChanceBound(1e6), fragmentChanceBound(1e6, 1, HIT_CHARACTERS_MIN));
});

test('the chance of a fragment is bounded by what the random characters in it weigh', () => {
  const sum = [8, 9, 10, 11].reduce((all, count) => all + 32 ** -count, 0) + 14 * 32 ** -12 + 2 ** -58;
  near(fragmentChanceBound(12), sum, 1e-12, 'one place');
  near(fragmentChanceBound(1_000_011, 7), 7e6 * sum, 1e-12, 'a million places, seven markers');
  assert.ok(fragmentChanceBound(1e6) < 1e-6);
  assert.equal(fragmentChanceBound(11), 0);
  assert.equal(fragmentChanceBound(1e20), 1);
});

test('short fragments turn up in random text no more often than the bound says, and not much less', () => {
  // A small marker (no prefix, 4 random characters of 5 bits), so that chance shows: fragments of 2 characters.
  const shape = { prefixCharacters: 0, codeCharacters: 4, bitsPerCharacter: 5, codeBits: 20 };
  const prng = new Prng(5);
  const runs = 20_000;
  let hits = 0;
  const word = (length: number) => Array.from({ length }, () => prng.pick(MARKER_ALPHABET.split(''))).join('');
  for (let run = 0; run < runs; run++) {
    const marker = word(4);
    const text = word(12);
    hits += [0, 1, 2].some((o) => text.includes(marker.slice(o, o + 2))) ? 1 : 0;
  }
  const bound = fragmentChanceBound(12, 1, 2, shape);
  const spread = 4 * Math.sqrt(bound / runs);
  assert.ok(
    hits / runs <= bound + spread && hits / runs >= 0.85 * bound - spread,
    `seed 5: ${hits / runs}, bound ${bound}`,
  );
});
