/** Goal: stops cut the same answer wherever its pieces were cut. Method: examples, then random texts against the naive way. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { StopMatcher } from './stops.js';

function run(stops: readonly string[], pieces: readonly string[]): { text: string; hit: boolean } {
  const matcher = new StopMatcher(stops);
  let text = '';
  for (const piece of pieces) text += matcher.push(piece);
  return { text: text + matcher.flush(), hit: matcher.hit };
}

/** The stop that ends first; of those that end there, the longest. */
function naive(stops: readonly string[], text: string): { text: string; hit: boolean } {
  for (let end = 1; end <= text.length; end++) {
    const found = stops.filter((stop) => text.slice(0, end).endsWith(stop)).sort((a, b) => b.length - a.length)[0];
    if (found !== undefined) return { text: text.slice(0, end - found.length), hit: true };
  }
  return { text, hit: false };
}

test('without stops every piece leaves as it came', () => {
  const matcher = new StopMatcher([]);
  assert.equal(matcher.push('abc'), 'abc');
  assert.equal(matcher.flush(), '');
});

test('holds back only what might be the start of a stop', () => {
  const matcher = new StopMatcher(['END']);
  assert.equal(matcher.push('the E'), 'the ');
  assert.equal(matcher.push('N'), '');
  assert.equal(matcher.push('x'), 'ENx');
  assert.equal(matcher.hit, false);
});

test('meets a stop that straddles three pieces', () => {
  assert.deepEqual(run(['###'], ['a#', '#', '#b']), { text: 'a', hit: true });
});

test('meets a stop that begins inside a failed start of itself', () => {
  assert.deepEqual(run(['aab'], ['aa', 'ab', 'c']), { text: 'a', hit: true });
});

test('gives nothing after a stop', () => {
  const matcher = new StopMatcher(['x']);
  matcher.push('ax');
  assert.equal(matcher.push('more'), '');
  assert.equal(matcher.flush(), '');
});

const SEED = 7_401;
test(`agrees with the naive way for any stops, text and cuts (seed ${SEED})`, () => {
  const word = (max: number, min = 0) =>
    fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: min, maxLength: max });
  fc.assert(
    fc.property(
      fc.array(word(5, 1), { minLength: 1, maxLength: 4 }),
      fc.array(word(6), { maxLength: 12 }),
      (stops, pieces) => {
        assert.deepEqual(run(stops, pieces), naive(stops, pieces.join('')));
      },
    ),
    { seed: SEED, numRuns: 2000 },
  );
});
