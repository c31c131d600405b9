/** Goal: who may take an engine out, when, and what brings it back. Method: a clock that is moved by hand and sentinels that end as told. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ManualClock, SystemClock } from '../base/clock.js';
import { Prng } from '../base/prng.js';
import { SELF_TEST_MS_MAX, SELF_TEST_MS_MIN, SENTINEL_EVERY_MS, SENTINELS_UNSENT_MAX } from './bounds.js';
import { type OutReason, Rotation, type SentinelOutcome } from './rotation.js';

function setUp() {
  const clock = new ManualClock();
  const sent: number[] = [];
  const sentAtMs: number[] = [];
  const outs: OutReason[] = [];
  let backs = 0;
  let end: ((outcome: SentinelOutcome) => void) | null = null;
  const rotation = new Rotation({
    clock,
    sentinel: (promptTokens) => {
      assert.equal(end, null, 'one sentinel at a time');
      sent.push(promptTokens);
      sentAtMs.push(clock.nowMs());
      return new Promise((resolve) => {
        end = resolve;
      });
    },
    onSentinel() {},
    onOut: (reason) => outs.push(reason),
    onBack: () => backs++,
  });
  return {
    clock,
    rotation,
    sent,
    sentAtMs,
    outs,
    backs: () => backs,
    isOpen: () => end !== null,
    /** Ends the sentinel that is open. */
    end: async (outcome: SentinelOutcome): Promise<void> => {
      assert.ok(end !== null, 'no sentinel is open');
      const resolve = end;
      end = null;
      resolve(outcome);
      await new Promise<void>((next) => new SystemClock().soon(next));
    },
  };
}

describe('suspicion', () => {
  test('sends a sentinel of the same length at once, and one that passes changes nothing', async () => {
    const { rotation, sent, outs, end, clock } = setUp();
    rotation.suspect(70);
    assert.deepEqual(sent, [70]);
    assert.ok(rotation.isIn, 'it serves while the sentinel is under way');
    await end('passed');
    assert.deepEqual([rotation.isIn, outs.length, clock.waiting], [true, 0, 0]);
  });

  test('takes the engine out only when the sentinel fails', async () => {
    const { rotation, outs, end } = setUp();
    rotation.suspect(70);
    await end('failed');
    assert.deepEqual([rotation.isIn, rotation.reason, outs], [false, 'sentinel-failed', ['sentinel-failed']]);
  });

  test('a thousand times costs one sentinel in five seconds, and the last one is not forgotten', async () => {
    const { rotation, sent, end, clock } = setUp();
    for (let i = 0; i < 1000; i++) rotation.suspect(1 + i);
    await end('passed');
    for (let i = 0; i < 1000; i++) rotation.suspect(1 + i);
    assert.equal(sent.length, 1);
    clock.advance(SENTINEL_EVERY_MS - 1);
    assert.equal(sent.length, 1);
    clock.advance(1);
    assert.deepEqual(sent, [1, 1000]);
    await end('passed');
    clock.advance(10 * SENTINEL_EVERY_MS);
    assert.equal(sent.length, 2, 'what was looked into is not looked into again');
  });

  test('that can’t be looked into takes the engine out in the end', async () => {
    const { rotation, outs, end, clock } = setUp();
    rotation.suspect(70);
    for (let i = 0; i < SENTINELS_UNSENT_MAX; i++) {
      assert.ok(rotation.isIn);
      await end('unsent');
      clock.advance(SENTINEL_EVERY_MS);
    }
    assert.deepEqual(outs, ['unchecked']);
  });
});

describe('an engine that is out', () => {
  test('is asked after 1, 2, 4 … 60 seconds, and comes back with the first self-test that passes', async () => {
    const { rotation, sent, sentAtMs, backs, isOpen, end, clock } = setUp();
    rotation.suspect(70);
    await end('failed');
    const pauses: number[] = [];
    for (let i = 0; i < 9; i++) {
      const fromMs = clock.nowMs();
      while (!isOpen()) clock.advance(SELF_TEST_MS_MIN);
      pauses.push(sentAtMs.at(-1)! - fromMs);
      assert.equal(sent.at(-1), 70, 'a self-test is as long as what raised suspicion');
      if (i < 8) await end('failed');
    }
    assert.deepEqual(
      pauses,
      [1, 2, 4, 8, 16, 32, 60, 60, 60].map((seconds) => seconds * 1000),
    );
    await end('passed');
    assert.deepEqual([rotation.isIn, backs(), clock.waiting], [true, 1, 0]);
  });

  test('after proof needs three in a row, and one that fails or finds no turn begins the count again', async () => {
    const { rotation, backs, end, clock } = setUp();
    rotation.prove(70);
    assert.equal(rotation.reason, 'foreign-marker');
    for (const outcome of ['passed', 'passed', 'failed', 'passed', 'passed', 'unsent', 'passed', 'passed'] as const) {
      clock.advance(SELF_TEST_MS_MAX);
      await end(outcome);
      assert.ok(!rotation.isIn);
    }
    clock.advance(SELF_TEST_MS_MAX);
    await end('passed');
    assert.deepEqual([rotation.isIn, backs()], [true, 1]);
  });

  test('proof does not wait for the sentinel that is under way, and that one does not bring it back', async () => {
    const { rotation, backs, end } = setUp();
    rotation.suspect(70);
    rotation.prove(70);
    assert.equal(rotation.reason, 'foreign-marker');
    await end('passed');
    assert.deepEqual([rotation.isIn, backs()], [false, 0]);
  });

  test('that comes back and leaves again is asked more rarely', async () => {
    const { rotation, end, clock, sentAtMs } = setUp();
    for (const pauseMs of [1000, 2000, 4000]) {
      rotation.prove(1);
      for (let i = 0; i < 3; i++) {
        const fromMs = clock.nowMs();
        clock.advance(pauseMs);
        assert.equal(sentAtMs.at(-1)! - fromMs, pauseMs);
        await end('passed');
      }
      assert.ok(rotation.isIn);
    }
  });

  test('closing leaves no timer, and a sentinel that ends later changes nothing', async () => {
    const { rotation, outs, end, clock } = setUp();
    rotation.suspect(1);
    rotation.close();
    await end('failed');
    rotation.prove(1);
    assert.deepEqual([outs.length, clock.waiting], [0, 0]);
  });
});

const SEED = 40_417;
test(`whatever comes in whatever order, sentinels keep their rate and their turn (seed ${SEED})`, async () => {
  const prng = new Prng(SEED);
  for (let round = 0; round < 40; round++) {
    const { rotation, sentAtMs, isOpen, end, clock } = setUp();
    for (let i = 0; i < 200; i++) {
      const what = prng.below(10);
      if (what < 5) rotation.suspect(prng.below(100));
      else if (what < 6) rotation.prove(prng.below(100));
      else if (what < 8 && isOpen()) await end(prng.pick(['passed', 'failed', 'unsent'] as const));
      else clock.advance(prng.below(8_000));
    }
    const gaps = sentAtMs.slice(1).map((ms, i) => ms - sentAtMs[i]!);
    assert.ok(
      gaps.every((ms) => ms >= SELF_TEST_MS_MIN),
      `sentinels ${Math.min(...gaps)} ms apart`,
    );
    assert.ok(clock.waiting <= 1);
    if (isOpen()) await end('passed');
    rotation.close();
    assert.equal(clock.waiting, 0);
  }
});
