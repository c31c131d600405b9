import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Prng } from '../../base/prng.js';
import { lowerBound, upperBound } from './binomial.js';
import { histogram, quantile } from './describe.js';
import { fisherExact } from './fisher.js';
import { cliffsDelta, ksCritical, ksStatistic, ksTest } from './ranks.js';
import { nominalAlphas } from './sequential.js';

const SEED = 20261;
const RUNS = { seed: SEED, numRuns: 200 };
const sample = fc.array(fc.integer({ min: -6, max: 6 }), { minLength: 1, maxLength: 25 });
const count = fc.nat(60);

test('a bound rises with hits, falls with trials, rises with confidence, and mirrors the other one', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 3000 }), fc.nat(2999), (trials, wanted) => {
      const hits = wanted % trials;
      const bound = upperBound(hits, trials, 0.95);
      assert.ok(bound > hits / trials && lowerBound(hits, trials, 0.95) <= hits / trials);
      assert.ok(upperBound(hits + 1, trials, 0.95) > bound);
      assert.ok(upperBound(hits, trials + 1, 0.95) < bound);
      assert.ok(upperBound(hits, trials, 0.99) > bound);
      assert.ok(Math.abs(1 - lowerBound(trials - hits, trials, 0.95) - bound) < 1e-9);
    }),
    RUNS,
  );
});

test("Fisher's test does not care about the order of arms or of outcomes, and its tails cover everything", () => {
  fc.assert(
    fc.property(count, count, count, count, (hitsA, missesA, hitsB, missesB) => {
      const table = { hitsA, missesA, hitsB, missesB };
      const swapped = { hitsA: hitsB, missesA: missesB, hitsB: hitsA, missesB: missesA };
      const turned = { hitsA, missesA: hitsB, hitsB: missesA, missesB };
      const close = (x: number, y: number) => assert.ok(Math.abs(x - y) <= 1e-9 * Math.max(x, y), `${x} ${y}`);
      close(fisherExact(table, 'greater'), fisherExact(swapped, 'less'));
      close(fisherExact(table, 'two-sided'), fisherExact(swapped, 'two-sided'));
      close(fisherExact(table, 'greater'), fisherExact(turned, 'greater'));
      assert.ok(fisherExact(table, 'greater') + fisherExact(table, 'less') >= 1 - 1e-9);
    }),
    RUNS,
  );
});

test("Cliff's delta is the count over all pairs; both statistics forget any stretching of the scale", () => {
  fc.assert(
    fc.property(sample, sample, (a, b) => {
      let balance = 0;
      for (const x of a) for (const y of b) balance += Math.sign(x - y);
      assert.equal(cliffsDelta(a, b), balance / (a.length * b.length));
      const at = (values: number[], t: number) => values.filter((value) => value <= t).length / values.length;
      const far = Math.max(0, ...[...a, ...b].map((t) => at(a, t) - at(b, t)));
      assert.ok(Math.abs(ksStatistic(a, b) - far) < 1e-12);
      assert.equal(ksStatistic(a.map(Math.exp), b.map(Math.exp)), ksStatistic(a, b));
      assert.equal(cliffsDelta(b, a) + cliffsDelta(a, b), 0);
    }),
    RUNS,
  );
});

test('the critical value parts the statistics as the p-value does', () => {
  fc.assert(
    fc.property(sample, sample, fc.integer({ min: 1, max: 1000 }), (a, b, seed) => {
      const critical = ksCritical(a, b, 0.1, 99, new Prng(seed));
      const { statistic, pValue } = ksTest(a, b, 99, new Prng(seed));
      assert.equal(critical !== null && statistic > critical, pValue <= 0.1 + 1e-12);
    }),
    RUNS,
  );
});

test('with nothing there, p-values fall below each level no more often than it says, and about as often', () => {
  const prng = new Prng(SEED);
  const runs = 1500;
  const pValues = Array.from({ length: runs }, () => {
    const draw = () => Array.from({ length: 25 }, () => prng.normal());
    return ksTest(draw(), draw(), 199, prng).pValue;
  });
  for (const level of [0.05, 0.1, 0.2, 0.5]) {
    const share = pValues.filter((p) => p <= level + 1e-12).length / runs;
    const spread = 4 * Math.sqrt((level * (1 - level)) / runs);
    assert.ok(share <= level + spread && share >= 0.5 * level - spread, `seed ${SEED}: ${share} at ${level}`);
  }
});

test('the levels of looks rise, the last is below alpha, and one look alone has all of it', () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 6 }), fc.constantFrom(0.01, 0.05), (looks, alpha) => {
      const levels = nominalAlphas(
        alpha,
        Array.from({ length: looks }, (_, i) => (i + 1) / looks),
      );
      for (const [i, level] of levels.entries()) assert.ok(level > (levels[i - 1] ?? 0) && level < alpha);
      assert.ok(Math.abs(nominalAlphas(alpha, [1])[0]! - alpha) < 1e-12);
    }),
    { seed: SEED, numRuns: 8 },
  );
});

test('a histogram counts every value once, in the bin whose edges hold it; quantiles rise', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: -50, max: 50, noNaN: true }), { minLength: 1, maxLength: 40 }),
      fc.integer({ min: 1, max: 12 }),
      (values, bins) => {
        const { edges, counts } = histogram(values, bins);
        counts.forEach((got, i) => {
          const last = i === bins - 1;
          const inside = values.filter((v) => v >= edges[i]! && (v < edges[i + 1]! || (last && v <= edges[i + 1]!)));
          assert.equal(got, inside.length);
        });
        assert.equal(
          counts.reduce((x, y) => x + y, 0),
          values.length,
        );
        assert.ok(quantile(values, 0.2) <= quantile(values, 0.7));
      },
    ),
    { ...RUNS, examples: [[[0.1, 0.2, 0.3, 0.7, 1], 10]] },
  );
});
