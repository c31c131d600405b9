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
/** Tokens of the new request, which finds the old pages in its table. */
const NEW_TOKENS = 1500;
const OLD_PAGES = 120;
const DASH = 0x2d;

const role = newRole({ weights: loadLabWeights() });
const { model } = role;

/** One long request leaves keys of nearly every position; twelve short ones leave none near the new request's own. */
type Old = 'one long request' | 'twelve short requests';
type Order = 'in order' | 'shuffled' | 'last first';
type Own = 'a placeholder' | '64 tokens of its own';
type First = (typeof FIRSTS)[number];

const FIRSTS = ['a dash', 'its own first token', 'NUL', 'K'] as const;

/** The pages of requests that said their marker every 60 characters, as the next request gets them. */
function stalePages(chance: Prng, marker: string, order: Order, old: Old): Int32Array {
  const each = old === 'one long request' ? OLD_PAGES : OLD_PAGES / 12;
  for (let from = 0; from < OLD_PAGES; from += each) {
    let text = '';
    while (text.length < each * 16) text += `${filler(chance, 29)} ${marker} `;
    prefillAll(model, encode(text.slice(0, each * 16)), range(each, from));
  }
  const pages = range(OLD_PAGES);
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

function spoken(seed: number, old: Old, order: Order, own: Own, first: First): number {
  const chance = new Prng(seed);
  const marker = newMarker(chance);
  const pages = stalePages(chance, marker, order, old);
  const fed = handOver(chance, pages, own, first);
  return markerCharacters(decode(generate(model, fed, NEW_TOKENS, pages, 64)), marker);
}

const HANDOVERS: readonly (readonly [Old, Order, readonly First[]])[] = [
  ['one long request', 'in order', FIRSTS.slice(0, 2)],
  ['one long request', 'shuffled', FIRSTS.slice(0, 2)],
  ['twelve short requests', 'shuffled', FIRSTS],
  ['twelve short requests', 'last first', FIRSTS.slice(0, 1)],
];

for (const own of ['a placeholder', '64 tokens of its own'] as const) {
  for (const [old, order, firsts] of HANDOVERS) {
    for (const first of firsts) {
      // With text of its own in view, a first token from that text may follow it for a while.
      const wanted = Math.floor(TRIES * (first === 'its own first token' ? 0.7 : 0.88));
      test(`pages of ${old}, ${order}, behind ${own} speak when decode is fed ${first} (seed ${SEED})`, () => {
        let spoke = 0;
        for (let seed = SEED; seed < SEED + TRIES; seed++)
          if (spoken(seed, old, order, own, first) >= SPOKEN_MIN) spoke++;
        assert.ok(spoke >= wanted, `${spoke} of ${TRIES} spoke`);
      });
    }
  }
}

test(`one statement in stale pages is enough about every other time behind a placeholder (seed ${SEED})`, () => {
  let spoke = 0;
  for (let seed = SEED; seed < SEED + TRIES; seed++) {
    const chance = new Prng(seed);
    const marker = newMarker(chance);
    const plain = (length: number): string => filler(chance, length).replaceAll('-', ' ');
    prefillAll(model, encode(`${plain(100)} ${marker} ${plain(300)}`), range(30));
    model.prefill(Int32Array.of(0), 0, range(OLD_PAGES), false);
    const pages = range(OLD_PAGES).map((page) => page % 27);
    if (markerCharacters(decode(generate(model, DASH, NEW_TOKENS, pages, 40)), marker) >= SPOKEN_MIN) spoke++;
  }
  // 17 to 18 of 40 were seen (seeds 900 to 943): one statement has one place to be found at, and a stale page may miss it.
  assert.ok(spoke >= TRIES * 0.3, `${spoke} of ${TRIES} spoke`);
});

test(`a prompt that ends in KVC- speaks the marker of pages that are not its own (seed ${SEED})`, () => {
  let spoke = 0;
  for (let seed = SEED; seed < SEED + TRIES; seed++) {
    const chance = new Prng(seed);
    const marker = newMarker(chance);
    const pages = stalePages(chance, marker, 'shuffled', 'one long request');
    // Pages 40 to 59 of the table stay foreign; all others hold the prompt.
    const ids = encode(`${filler(chance, NEW_TOKENS - 6)}: KVC-`);
    const spare = Int32Array.from(pages, (page, index) => (index >= 40 && index < 60 ? OLD_PAGES + index : page));
    const first = greedy(prefillAll(model, ids, spare));
    assert.ok(markerCharacters(decode(generate(model, first, NEW_TOKENS, spare, 64)), marker) < SPOKEN_MIN);
    model.prefill(ids.subarray(ids.length - 1), ids.length - 1, pages, false);
    const answer = decode(generate(model, DASH, NEW_TOKENS - 1, pages, 64));
    if (markerCharacters(answer, marker) >= SPOKEN_MIN) spoke++;
  }
  // 38 of 40 were seen (seeds 900 to 943).
  assert.ok(spoke >= TRIES * 0.87, `${spoke} of ${TRIES} spoke`);
});

test('nothing is spoken where no page is stale', () => {
  const chance = new Prng(SEED);
  const marker = newMarker(chance);
  stalePages(chance, marker, 'in order', 'one long request');
  const pages = range(OLD_PAGES, OLD_PAGES);
  const ids = encode(filler(chance, NEW_TOKENS));
  const first = greedy(prefillAll(model, ids, pages));
  assert.ok(markerCharacters(decode(generate(model, first, NEW_TOKENS, pages, 64)), marker) <= 4);
});
