import { assert } from '../base/assert.js';
import type { Prng } from '../base/prng.js';

/** The index of the largest logit, the first of several. */
export function greedy(logits: Float32Array): number {
  let best = 0;
  for (let id = 1; id < logits.length; id++) if (logits[id] > logits[best]) best = id;
  return best;
}

/**
 * Draws an id by softmax(logits / temperature); temperature 0 is greedy and draws nothing. One draw of `chance` a call, so the
 * same seed gives the same answer.
 */
export function sample(logits: Float32Array, temperature: number, chance: Prng): number {
  assert(temperature >= 0, 'a temperature is not negative');
  const top = greedy(logits);
  if (temperature === 0) return top;
  let total = 0;
  for (let id = 0; id < logits.length; id++) total += Math.exp((logits[id] - logits[top]) / temperature);
  let left = chance.unit() * total;
  for (let id = 0; id < logits.length; id++) {
    left -= Math.exp((logits[id] - logits[top]) / temperature);
    if (left < 0) return id;
  }
  return top;
}
