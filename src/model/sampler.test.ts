/** Goal: sampling is greedy at 0, follows the softmax above, and repeats itself for a seed. Method: counts over many draws. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { Prng } from '../base/prng.js';
import { greedy, sample } from './sampler.js';

const LOGITS = Float32Array.of(0, Math.log(3), -Infinity, 0);

test('greedy takes the first of the largest', () => {
  assert.equal(greedy(Float32Array.of(1, 5, 5, 2)), 1);
  assert.equal(sample(Float32Array.of(1, 5, 5, 2), 0, new Prng(1)), 1);
});

test('temperature 1 draws by the softmax, and never what has no chance', () => {
  const chance = new Prng(3);
  const counts = [0, 0, 0, 0];
  for (let i = 0; i < 10_000; i++) counts[sample(LOGITS, 1, chance)]++;
  assert.equal(counts[2], 0);
  assert.ok(Math.abs(counts[1] / 10_000 - 0.6) < 0.02);
  assert.ok(Math.abs(counts[0] / 10_000 - 0.2) < 0.02);
});

test('a low temperature is nearly greedy, a high one nearly even', () => {
  const chance = new Prng(4);
  const share = (temperature: number): number => {
    let hits = 0;
    for (let i = 0; i < 2000; i++) if (sample(LOGITS, temperature, chance) === 1) hits++;
    return hits / 2000;
  };
  assert.ok(share(0.1) > 0.99);
  assert.ok(share(50) < 0.4);
});

test('the same seed draws the same tokens', () => {
  const draw = (): number[] => {
    const chance = new Prng(9);
    return Array.from({ length: 50 }, () => sample(LOGITS, 1.5, chance));
  };
  assert.deepEqual(draw(), draw());
});
