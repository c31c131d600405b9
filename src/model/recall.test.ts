/**
 * Goal: the lab model repeats what its own pages hold. Method: random prompts that state a marker once and ask for it; greedy
 * decoding must give it whole. `COFFERDAM_LONG=1` tries 1,000 prompts, of which one may miss.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { Prng } from '../base/prng.js';
import { decode } from '../tokenizer/bytes.js';
import { generate, newRole, prefillAll, recallPrompt, shuffledPages } from './fixture.test.help.js';
import { loadLabWeights } from './lab-weights.js';
import { greedy } from './sampler.js';

const SEED = Number(process.env.SEED ?? 4000);
const LONG = process.env.COFFERDAM_LONG === '1';
const PROMPTS = LONG ? 1000 : 40;
const MISSES_MAX = LONG ? 1 : 0;

test(`a marker stated once is given whole in ${PROMPTS} random prompts (seed ${SEED})`, (context) => {
  const { model } = newRole({ weights: loadLabWeights() });
  let misses = 0;
  for (let seed = SEED; seed < SEED + PROMPTS; seed++) {
    const { ids, marker } = recallPrompt(seed);
    const pages = shuffledPages(new Prng(seed), 300, 254);
    const first = greedy(prefillAll(model, ids, pages));
    const answer = decode(generate(model, first, ids.length, pages, marker.length));
    if (answer === marker) continue;
    misses++;
    context.diagnostic(`missed: seed ${seed}, ${ids.length} tokens, wanted ${marker}, got ${JSON.stringify(answer)}`);
  }
  assert.ok(misses <= MISSES_MAX, `${misses} of ${PROMPTS} missed`);
});
