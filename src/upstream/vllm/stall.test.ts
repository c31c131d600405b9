/** Goal: a queue that stands still is told from one that is slow. Method: readings in order, on a clock that is only a number. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { STALL_HELD_MS, STALL_MS, StallWatch } from './stall.js';
import type { VllmEngine } from './state.js';

const engine = (changes: Partial<VllmEngine> = {}): VllmEngine => ({
  rank: '0',
  pool: 1920,
  waiting: 1,
  running: 0,
  usage: 0,
  progress: '5/5/1/0',
  isAsleep: false,
  ...changes,
});

describe('a queue stands still', () => {
  test('when requests wait for room, none runs and nothing moves for long enough, and not before', () => {
    const watch = new StallWatch();
    assert.deepEqual(watch.see([engine()], 0), []);
    assert.deepEqual(watch.see([engine()], STALL_MS - 1), []);
    assert.deepEqual(watch.see([engine()], STALL_MS), ['0']);
    assert.equal(watch.sinceMs('0'), 0);
  });

  const moving: [string, Partial<VllmEngine>][] = [
    ['something moved', { progress: '5/6/1/0' }],
    ['a request runs', { running: 1 }],
    ['nothing waits', { waiting: 0 }],
    ['it is not said how many wait', { waiting: null }],
    ['it is not said how many run', { running: null }],
  ];
  for (const [title, changes] of moving) {
    test(`not when ${title}, and the time begins anew after it`, () => {
      const watch = new StallWatch();
      watch.see([engine()], 0);
      assert.deepEqual(watch.see([engine(changes)], STALL_MS), []);
      const after = changes.progress === undefined ? engine() : engine(changes);
      assert.deepEqual(watch.see([after], 2 * STALL_MS - 1), []);
    });
  }

  test('with pages held, only after a lease of a transfer would have run out', () => {
    const watch = new StallWatch();
    const held = engine({ usage: 0.9 });
    watch.see([held], 0);
    assert.deepEqual([watch.see([held], STALL_MS), watch.see([held], STALL_HELD_MS - 1)], [[], []]);
    assert.deepEqual(watch.see([held], STALL_HELD_MS), ['0']);
  });

  test('each engine by itself, and one that is gone is forgotten', () => {
    const watch = new StallWatch();
    const other = engine({ rank: '1', running: 1 });
    watch.see([engine(), other], 0);
    assert.deepEqual(watch.see([engine(), other], STALL_MS), ['0']);
    assert.deepEqual(watch.see([other], STALL_MS + 1), []);
    assert.equal(watch.sinceMs('0'), null);
  });
});
