/**
 * Goal: a foreign page shows up in words. Method: one request fills pages with a marker and frees them; another is decoded over
 * them as the faults would have it, its own tokens absent but for the first page. It must speak the marker nearly always.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { Prng } from '../base/prng.js';
import { decode, encode } from '../tokenizer/bytes.js';
import { filler, generate, markerCharacters, newMarker, newRole, prefillAll, range } from './fixture.test.help.js';
import { loadLabWeights } from './lab-weights.js';
import { greedy } from './sampler.js';

const SEED = Number(process.env.SEED ?? 900);
const TRIES = process.env.COFFERDAM_LONG === '1' ? 40 : 8;
/** Consecutive characters of a marker that count as a leak. */
const SPOKEN_MIN = 12;
/** Tokens of the old request, and of the new one, which finds the old one's pages in its table. */
const OLD_TOKENS = 1920;
const NEW_TOKENS = 1500;
const OLD_PAGES = OLD_TOKENS / 16;
const DASH = 0x2d;

const role = newRole({ weights: loadLabWeights() });
const { model } = role;

type Order = 'in order' | 'shuffled' | 'last first';
type Own = 'a placeholder' | '64 tokens of its own';
type First = (typeof FIRSTS)[number];

const FIRSTS = ['a dash', 'its own first token', 'NUL', 'K'] as const;

/** The pages of a request that said its marker every 60 characters, as the next request gets them. */
function stalePages(chance: Prng, marker: string, order: Order): Int32Array {
  let text = '';
  while (text.length < OLD_TOKENS) text += `${filler(chance, 29)} ${marker} `;
  const pages = range(OLD_PAGES);
  prefillAll(model, encode(text.slice(0, OLD_TOKENS)), pages);
  if (order === 'shuffled') return Int32Array.from(chance.shuffle([...pages]));
  return order === 'last first' ? pages.reverse() : pages;
}

/** Fills the first page (or four) of the new request, and gives the token that decode is fed. */
function handOver(chance: Prng, pages: Int32Array, own: Own, first: First): number {
  const prompt = encode(filler(chance, NEW_TOKENS));
  if (own === 'a placeholder') model.prefill(Int32Array.of(0), 0, pages, false);
  else prefillAll(model, prompt.subarray(0, 64), pages);
  if (first === 'a dash') return DASH;
  if (first === 'NUL') return 0;
  if (first === 'K') return 0x4b;
  // What a prefill with a pool of its own would hand over.
  return greedy(prefillAll(model, prompt, range(OLD_PAGES, OLD_PAGES)));
}

function spoken(seed: number, order: Order, own: Own, first: First): number {
  const chance = new Prng(seed);
  const marker = newMarker(chance);
  const pages = stalePages(chance, marker, order);
  const fed = handOver(chance, pages, own, first);
  return markerCharacters(decode(generate(model, fed, NEW_TOKENS, pages, 64)), marker);
}

for (const own of ['a placeholder', '64 tokens of its own'] as const) {
  for (const order of ['in order', 'shuffled', 'last first'] as const) {
    for (const first of order === 'shuffled' ? FIRSTS : FIRSTS.slice(0, 2)) {
      // With text of its own in view, a first token from that text may follow it for a while.
      const wanted = Math.floor(TRIES * (first === 'its own first token' ? 0.7 : 0.88));
      test(`stale pages ${order} behind ${own} speak their marker when decode is fed ${first} (seed ${SEED})`, () => {
        let spoke = 0;
        for (let seed = SEED; seed < SEED + TRIES; seed++) if (spoken(seed, order, own, first) >= SPOKEN_MIN) spoke++;
        assert.ok(spoke >= wanted, `${spoke} of ${TRIES} spoke`);
      });
    }
  }
}

test(`a prompt that ends in KVC- speaks the marker of pages that are not its own (seed ${SEED})`, () => {
  let spoke = 0;
  for (let seed = SEED; seed < SEED + TRIES; seed++) {
    const chance = new Prng(seed);
    const marker = newMarker(chance);
    const pages = stalePages(chance, marker, 'shuffled');
    // Pages 40 to 59 of the table stay foreign; all others hold the prompt.
    const ids = encode(`${filler(chance, NEW_TOKENS - 6)}: KVC-`);
    const spare = Int32Array.from(pages, (page, index) => (index >= 40 && index < 60 ? OLD_PAGES + index : page));
    const first = greedy(prefillAll(model, ids, spare));
    assert.ok(markerCharacters(decode(generate(model, first, NEW_TOKENS, spare, 64)), marker) < SPOKEN_MIN);
    model.prefill(ids.subarray(ids.length - 1), ids.length - 1, pages, false);
    const answer = decode(generate(model, DASH, NEW_TOKENS - 1, pages, 64));
    if (markerCharacters(answer, marker) >= SPOKEN_MIN) spoke++;
  }
  assert.ok(spoke >= TRIES - 1, `${spoke} of ${TRIES} spoke`);
});

test('nothing is spoken where no page is stale', () => {
  const chance = new Prng(SEED);
  const marker = newMarker(chance);
  stalePages(chance, marker, 'in order');
  const pages = range(OLD_PAGES, OLD_PAGES);
  const ids = encode(filler(chance, NEW_TOKENS));
  const first = greedy(prefillAll(model, ids, pages));
  assert.ok(markerCharacters(decode(generate(model, first, NEW_TOKENS, pages, 64)), marker) <= 4);
});
