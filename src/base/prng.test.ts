/** Goal: the same chance everywhere, within its bounds. Method: pinned numbers, properties, coarse statistics. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Prng } from './prng.js';

test('seed 1 gives these numbers on every machine', () => {
  const prng = new Prng(1);
  assert.deepEqual([prng.u32(), prng.u32(), prng.u32(), prng.u32()], [393288148, 2174103013, 3814759091, 2092745082]);
});

test('numbers stay in their ranges, both ends reached (seed 11)', () => {
  fc.assert(
    fc.property(fc.nat(), fc.integer({ min: -50, max: 50 }), fc.nat(20), (seed, low, span) => {
      const prng = new Prng(seed);
      for (let i = 0; i < 50; i++) {
        const value = prng.between(low, low + span);
        assert.ok(Number.isInteger(value) && value >= low && value <= low + span);
        const unit = prng.unit();
        assert.ok(unit >= 0 && unit < 1);
      }
    }),
    { seed: 11 },
  );
  const seen = new Set(Array.from({ length: 200 }, (_, i) => new Prng(i).between(3, 5)));
  assert.deepEqual(
    [...seen].sort((a, b) => a - b),
    [3, 4, 5],
  );
});

test('a shuffle keeps every item, and each item gets to each place about as often (seeds 0 to 5999)', () => {
  const counts = Array.from({ length: 3 }, () => [0, 0, 0]);
  for (let seed = 0; seed < 6000; seed++) {
    const items = new Prng(seed).shuffle([0, 1, 2]);
    assert.deepEqual(
      [...items].sort((a, b) => a - b),
      [0, 1, 2],
    );
    items.forEach((item, place) => {
      counts[item]![place]!++;
    });
  }
  for (const count of counts.flat()) assert.ok(Math.abs(count - 2000) < 200, `${count} is far from 2000`);
});

test('the normal has mean 0 and deviation 1 (seed 3)', () => {
  const prng = new Prng(3);
  const values = Array.from({ length: 20_000 }, () => prng.normal());
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
  assert.ok(Math.abs(mean) < 0.03 && Math.abs(variance - 1) < 0.05, `mean ${mean}, variance ${variance}`);
});

test('a fork is independent of how much its parent draws afterwards', () => {
  const one = new Prng(5);
  const two = new Prng(5);
  const forkOne = one.fork();
  const forkTwo = two.fork();
  for (let i = 0; i < 10; i++) two.u32();
  assert.equal(forkOne.u32(), forkTwo.u32());
});

test('chance 0 never happens, chance 1 always; nothing cannot be picked from', () => {
  const prng = new Prng(9);
  for (let i = 0; i < 100; i++) assert.ok(!prng.chance(0) && prng.chance(1));
  assert.throws(() => prng.pick([]), /cannot pick from nothing/);
  assert.throws(() => prng.below(0), /above zero/);
});
