// Goal: a prompt finds exactly the pages that hold its own beginning under its own salt. Method: by example, and against a naive list.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { PrefixIndex, weakHash } from './prefix-index.js';

const PAGE = 4;
const SEED = Number(process.env.SEED ?? 31);

/** Seals all whole pages of `tokens` as pages `first`, `first + 1`, …, last place first as the engine does. */
function seal(index: PrefixIndex, salt: string, tokens: Int32Array, first: number): void {
  const places = Math.floor(tokens.length / PAGE);
  const keys = index.hashes(salt, tokens, places);
  for (let place = places - 1; place >= 0; place--) {
    const own = tokens.subarray(place * PAGE, (place + 1) * PAGE);
    index.add(keys[place]!.key, place, own, first + place, place === 0 ? -1 : first + place - 1);
  }
}

const pagesOf = (index: PrefixIndex, salt: string, tokens: Int32Array, most = 99): number[] =>
  index.find(salt, tokens, most).map(({ page }) => page);

const ids = (...values: number[]): Int32Array => Int32Array.from(values);
const A = ids(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13);

test('a prompt finds the whole pages of its beginning, in order, and no more than it asks for', () => {
  const index = new PrefixIndex(PAGE);
  seal(index, 's', A, 10);
  assert.deepEqual(pagesOf(index, 's', A), [10, 11, 12]);
  assert.deepEqual(pagesOf(index, 's', A, 2), [10, 11]);
  assert.deepEqual(pagesOf(index, 's', A.subarray(0, 7)), [10]);
  assert.deepEqual(pagesOf(index, 's', ids(1, 2, 3, 4, 5, 6, 7, 99, 9, 10, 11, 12)), [10]);
  assert.deepEqual(pagesOf(index, 's', A.subarray(1)), []);
});

test('another salt finds nothing, whatever its tokens', () => {
  const index = new PrefixIndex(PAGE);
  seal(index, 's', A, 0);
  assert.deepEqual(pagesOf(index, 't', A), []);
  seal(index, 't', A, 20);
  assert.deepEqual(pagesOf(index, 't', A), [20, 21, 22]);
  assert.deepEqual(pagesOf(index, 's', A), [0, 1, 2]);
});

test('the same tokens behind another beginning are another page', () => {
  const index = new PrefixIndex(PAGE);
  seal(index, 's', A, 0);
  assert.deepEqual(pagesOf(index, 's', ids(5, 6, 7, 8, 9, 10, 11, 12)), []);
  seal(index, 's', ids(0, 0, 0, 0, 5, 6, 7, 8), 30);
  assert.deepEqual(pagesOf(index, 's', A), [0, 1, 2]);
});

test('a page that is no longer sealed ends the chain there', () => {
  const index = new PrefixIndex(PAGE);
  seal(index, 's', A, 0);
  index.drop(1);
  assert.deepEqual(pagesOf(index, 's', A), [0]);
  assert.equal(index.size, 2);
  index.drop(1);
  assert.equal(index.size, 2);
});

test('a page that is sealed anew for other tokens is found for those alone', () => {
  const index = new PrefixIndex(PAGE);
  seal(index, 's', A, 0);
  seal(index, 's', ids(7, 7, 7, 7), 0);
  assert.deepEqual(pagesOf(index, 's', A), []);
  assert.deepEqual(pagesOf(index, 's', ids(7, 7, 7, 7)), [0]);
});

test('the longest unused page goes first, and of one chain its end', () => {
  const index = new PrefixIndex(PAGE);
  seal(index, 's', A, 0);
  seal(index, 's', ids(9, 9, 9, 9), 7);
  assert.deepEqual([...index.leastRecent()], [2, 1, 0, 7]);
  index.find('s', A, 2);
  assert.deepEqual([...index.leastRecent()], [2, 7, 1, 0]);
});

test('a key is taken for known only behind the same page', () => {
  const index = new PrefixIndex(PAGE);
  seal(index, 's', A, 0);
  const [, second] = index.hashes('s', A, 2);
  assert.equal(index.has(second!.key, 0), true);
  assert.equal(index.has(second!.key, 5), false);
});

/** Two pages that the weak hash takes for one. */
const [LEFT, RIGHT] = [ids(1, 2, 3, 4), ids(2, 1, 3, 4)];

test('under the weak hash two prompts collide and one is given the other one’s page, across salts; in health never', () => {
  assert.equal(weakHash(LEFT), weakHash(RIGHT));
  const weak = new PrefixIndex(PAGE, { unsalted: false, weakHash: true });
  seal(weak, 'acme', LEFT, 3);
  assert.deepEqual(pagesOf(weak, 'globex', RIGHT), [3]);
  const healthy = new PrefixIndex(PAGE);
  seal(healthy, 'acme', LEFT, 3);
  assert.deepEqual(pagesOf(healthy, 'acme', RIGHT), []);
});

test('without salts a prompt finds the page of another tenant with the same tokens, and of no others', () => {
  const index = new PrefixIndex(PAGE, { unsalted: true, weakHash: false });
  seal(index, 'acme', LEFT, 3);
  assert.deepEqual(pagesOf(index, 'globex', LEFT), [3]);
  assert.deepEqual(pagesOf(index, 'globex', RIGHT), []);
});

test('tokens decide where a key is the same: an entry whose tokens differ is no hit', () => {
  const index = new PrefixIndex(PAGE);
  const [own] = index.hashes('s', LEFT, 1);
  // As if SHA-256 had collided: the key of LEFT over the tokens of RIGHT.
  index.add(own!.key, 0, RIGHT, 3, -1);
  assert.deepEqual(pagesOf(index, 's', LEFT), []);
});

interface Sealed {
  readonly salt: string;
  /** All tokens up to the end of the page. */
  readonly upTo: string;
  readonly page: number;
  readonly before: number;
}

/** What the index must find, in a list of all that is sealed: page by page, each behind the one before it. */
function naive(sealed: readonly Sealed[], salt: string, tokens: readonly number[]): number[] {
  const found: number[] = [];
  for (let end = PAGE; end <= tokens.length; end += PAGE) {
    const upTo = tokens.slice(0, end).join();
    const before = found.at(-1) ?? -1;
    const next = sealed.find((one) => one.salt === salt && one.upTo === upTo && one.before === before);
    if (next === undefined) break;
    found.push(next.page);
  }
  return found;
}

test(`finds exactly the pages that a naive list finds, through sealing, sharing and eviction (seed ${SEED})`, () => {
  const block = fc.constantFrom([0, 0, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0]);
  const prompt = fc.tuple(fc.array(block, { maxLength: 4 }), fc.array(fc.constant(0), { maxLength: 3 }));
  const op = fc.record({ salt: fc.constantFrom('a', 'b'), prompt, evicts: fc.constantFrom(true, false, false) });
  let hits = 0;
  fc.assert(
    fc.property(fc.array(op, { maxLength: 60 }), (ops) => {
      const index = new PrefixIndex(PAGE);
      let sealed: Sealed[] = [];
      let next = 0;
      for (const { salt, prompt: parts, evicts } of ops) {
        const tokens = [...parts[0].flat(), ...parts[1]];
        const found = pagesOf(index, salt, Int32Array.from(tokens));
        assert.deepEqual(found, naive(sealed, salt, tokens));
        hits += found.length;
        if (evicts) {
          const [first] = index.leastRecent();
          if (first === undefined) continue;
          index.drop(first);
          sealed = sealed.filter(({ page }) => page !== first);
          continue;
        }
        const keys = index.hashes(salt, Int32Array.from(tokens), Math.floor(tokens.length / PAGE));
        let before = found.at(-1) ?? -1;
        for (let place = found.length; place < keys.length; place++) {
          const own = Int32Array.from(tokens.slice(place * PAGE, (place + 1) * PAGE));
          const upTo = tokens.slice(0, (place + 1) * PAGE).join();
          index.add(keys[place]!.key, place, own, next, before);
          // One page a key: the one that nobody can reach any more makes way.
          sealed = sealed.filter((one) => one.salt !== salt || one.upTo !== upTo);
          sealed.push({ salt, upTo, page: next, before });
          before = next++;
        }
      }
    }),
    { seed: SEED, numRuns: 300 },
  );
  assert.ok(hits > 200, `the property met ${hits} hits`);
});
