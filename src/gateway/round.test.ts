/** Goal: turns are shared by stride, nobody starves, and resting saves no turns. Method: the round alone; random histories from a seed. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Prng } from '../base/prng.js';
import { Round } from './round.js';

interface Member {
  readonly name: string;
  readonly stride: number;
  pass: number;
}
const member = (name: string, stride = 1): Member => ({ name, stride, pass: 0 });
const newRound = (): Round<Member> => new Round(({ stride }) => stride);

function serve(round: Round<Member>, turns: number): string {
  let order = '';
  for (let i = 0; i < turns; i++) {
    order += round.first!.name;
    round.served(round.first!, true);
  }
  return order;
}

describe('a round', () => {
  test('of equals goes round', () => {
    const round = newRound();
    for (const name of 'abc') round.join(member(name));
    assert.equal(serve(round, 9), 'abcabcabc');
  });

  test('gives turns in the measure of the strides', () => {
    const round = newRound();
    for (const each of [member('h', 0.25), member('n'), member('l', 4)]) round.join(each);
    const order = serve(round, 21 * 10);
    const count = (name: string): number => order.split(name).length - 1;
    assert.deepEqual([count('h'), count('n'), count('l')], [160, 40, 10]);
  });

  test('does not make up for turns that a tenant could not take', () => {
    const round = newRound();
    const [blocked, ...others] = ['x', 'a', 'b'].map((name) => member(name));
    for (const each of [blocked!, ...others]) round.join(each);
    for (let i = 0; i < 50; i++) for (const each of others) round.served(each, true);
    assert.equal(serve(round, 6), 'xabxab');
  });

  test('gives nobody turns for the time in which it wanted none', () => {
    const round = newRound();
    const rested = member('r');
    round.join(member('a'));
    serve(round, 100);
    round.join(rested);
    assert.match(serve(round, 6), /^(ar|ra){3}$/);
  });

  for (const [stride, least, most] of [
    [4, 19, 21],
    [1, 49, 51],
    [0.25, 79, 81],
  ] as const) {
    test(`gives a stride of ${stride} its share to whoever asks one at a time, too`, () => {
      const round = newRound();
      const single = member('s', stride);
      round.join(member('n'));
      round.join(single);
      let turns = 0;
      for (let i = 0; i < 100; i++) {
        const next = round.first!;
        round.served(next, next !== single);
        if (next !== single) continue;
        turns++;
        round.join(single);
      }
      assert.ok(turns >= least && turns <= most, `${turns} of 100 turns`);
    });
  }
});

const SEED = 8_117;
test(`whoever waits has a turn before the others have had more than their strides give them (seed ${SEED})`, () => {
  const prng = new Prng(SEED);
  for (let history = 0; history < 50; history++) {
    const round = newRound();
    const members = Array.from({ length: 6 }, (_, i) => member(`${i}`, prng.pick([0.25, 1, 4] as const)));
    const waiting = new Map<Member, number>();
    for (let step = 0; step < 400; step++) {
      const one = prng.pick(members);
      if (!waiting.has(one)) {
        round.join(one);
        waiting.set(one, 0);
      }
      const next = round.first!;
      const hasMore = prng.chance(0.7);
      round.served(next, hasMore);
      for (const each of waiting.keys()) waiting.set(each, waiting.get(each)! + 1);
      waiting.delete(next);
      if (hasMore) waiting.set(next, 0);
      for (const [each, passed] of waiting) {
        // In the time of its own stride, and of the one that it came with, everybody else's turns.
        const most = members.reduce((sum, other) => sum + Math.ceil((each.stride + 1) / other.stride) + 1, 0);
        assert.ok(passed <= most, `${each.name} was passed ${passed} times`);
      }
    }
  }
});
