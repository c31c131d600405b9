/** Goal: time moves only when told, in the order asked for. Method: the manual clock by hand, the system clock loosely. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ManualClock, SystemClock, sleep } from './clock.js';

test('timers run in order of due time, then of asking, and see the time at which they were due', () => {
  const clock = new ManualClock();
  const seen: string[] = [];
  clock.after(20, () => seen.push(`c ${clock.nowMs()}`));
  clock.after(10, () => seen.push(`a ${clock.nowMs()}`));
  clock.after(10, () => seen.push(`b ${clock.nowMs()}`));
  clock.advance(9);
  assert.deepEqual(seen, []);
  clock.advance(11);
  assert.deepEqual(seen, ['a 10', 'b 10', 'c 20']);
  assert.equal(clock.nowMs(), 20);
  assert.equal(clock.waiting, 0);
});

test('a timer set by a timer runs in the same advance when it falls due within it', () => {
  const clock = new ManualClock();
  const seen: number[] = [];
  clock.after(5, () => clock.after(5, () => seen.push(clock.nowMs())));
  clock.advance(9);
  assert.deepEqual(seen, []);
  clock.advance(1);
  assert.deepEqual(seen, [10]);
});

test('a cancelled timer never runs, also when it is cancelled by one due at the same time', () => {
  const clock = new ManualClock();
  let ran = false;
  clock.after(5, () => later.cancel());
  const later = clock.after(5, () => {
    ran = true;
  });
  clock.advance(100);
  assert.equal(ran, false);
});

test('soon runs at the next advance, even by zero', () => {
  const clock = new ManualClock();
  let ran = false;
  clock.soon(() => {
    ran = true;
  });
  assert.equal(ran, false);
  clock.advance(0);
  assert.equal(ran, true);
});

test('sleep resolves once its time has come', async () => {
  const clock = new ManualClock();
  let awake = false;
  const slept = sleep(clock, 50).then(() => {
    awake = true;
  });
  clock.advance(49);
  await Promise.resolve();
  assert.equal(awake, false);
  clock.advance(1);
  await slept;
  assert.equal(awake, true);
});

test('however the way is cut into steps, the same timers run in the same order (seed 7)', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(40), { maxLength: 20 }), fc.array(fc.nat(15), { maxLength: 20 }), (delays, steps) => {
      const run = (cuts: readonly number[]): string[] => {
        const clock = new ManualClock();
        const seen: string[] = [];
        delays.forEach((delay, i) => {
          clock.after(delay, () => seen.push(`${i} at ${clock.nowMs()}`));
        });
        for (const cut of cuts) clock.advance(cut);
        clock.advance(400 - clock.nowMs());
        return seen;
      };
      assert.deepEqual(run(steps), run([]));
    }),
    { seed: 7 },
  );
});

test('the system clock goes forward, waits at least as long as asked, and can be cancelled', async () => {
  const clock = new SystemClock();
  const startMs = clock.nowMs();
  clock.after(0, () => assert.fail('was cancelled')).cancel();
  await sleep(clock, 15);
  assert.ok(clock.nowMs() - startMs >= 14, 'woke too early');
  await new Promise<void>((resolve) => clock.soon(resolve));
  assert.ok(clock.wallMs() > 1_700_000_000_000, 'wall time is not in milliseconds since 1970');
});
