/** Goal: percentiles that are those of the latest latencies. Method: against a sorted list, over random sequences. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { LATENCY_SAMPLES_MAX, LatencyWindow } from './latency.js';

const SEED = Number(process.env.SEED ?? 20_251);

test('nothing seen has no percentile', () => {
  assert.deepEqual(new LatencyWindow().summary(), { count: 0, samples: 0, p50: null, p95: null, p99: null });
});

test('of 1 to 100 the percentiles are 50, 95 and 99', () => {
  const window = new LatencyWindow();
  for (let ms = 100; ms >= 1; ms--) window.add(ms);
  assert.deepEqual(window.summary(), { count: 100, samples: 100, p50: 50, p95: 95, p99: 99 });
});

test(`percentiles are over the latest ${LATENCY_SAMPLES_MAX}, the count over all (SEED=${SEED})`, () => {
  const latencies = fc.array(fc.double({ min: 0, max: 1e6, noNaN: true }), {
    maxLength: 3 * LATENCY_SAMPLES_MAX,
    size: 'max',
  });
  const check = (all: number[]): void => {
    const window = new LatencyWindow();
    for (const ms of all) window.add(ms);
    const sorted = all.slice(-LATENCY_SAMPLES_MAX).sort((a, b) => a - b);
    const rank = (share: number): number | null => sorted[Math.ceil(sorted.length * share) - 1] ?? null;
    const expected = { count: all.length, samples: sorted.length, p50: rank(0.5), p95: rank(0.95), p99: rank(0.99) };
    // -0 is 0 here.
    assert.equal(JSON.stringify(window.summary()), JSON.stringify(expected));
  };
  fc.assert(fc.property(latencies, check), {
    seed: SEED,
    numRuns: 60,
    // Making thousands of numbers smaller takes minutes and says nothing more.
    endOnFailure: true,
    examples: [[Array.from({ length: 2500 }, (_, i) => i)]],
  });
});
