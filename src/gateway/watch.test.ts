/**
 * Goal: sentinels go through an engine at their own rate while it has traffic, the way its traffic goes, and one that fails is ground
 * for suspicion and no more. Method: a watch under a clock that is moved by hand, over an engine that is played.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ManualClock, SystemClock } from '../base/clock.js';
import { playedEngine } from '../../test/support/fleet.js';
import { PATROL_EVERY_MS, PATROL_PROMPT_TOKENS, SENTINEL_EVERY_MS } from './bounds.js';
import { LiveMarkers } from './live-markers.js';
import type { OutReason, SentinelOutcome } from './rotation.js';
import { WaitingRoom } from './waiting.js';
import { Watch } from './watch.js';

function setUp(options: { sentinels?: boolean; sentinelEveryMs?: number } = {}) {
  const clock = new ManualClock();
  const engine = playedEngine();
  const room = new WaitingRoom({
    clock,
    tenants: 2,
    size: () => ({ runningMax: 8, poolTokens: 8192, pageTokens: 16, requestTokensMax: 4096 }),
  });
  const outcomes: SentinelOutcome[] = [];
  const outs: OutReason[] = [];
  const spent = { prompt: 0, output: 0 };
  const watch = new Watch({
    clock,
    upstream: engine,
    room,
    findings: { raise() {} },
    metrics: {
      doubted() {},
      sentinel: (outcome) => outcomes.push(outcome),
      sentinelTokens: (prompt, output) => {
        spent.prompt += prompt;
        spent.output += output;
      },
      out: (reason) => outs.push(reason),
      back() {},
    },
    markers: new LiveMarkers(),
    sentinels: options.sentinels ?? true,
    ...(options.sentinelEveryMs === undefined ? {} : { sentinelEveryMs: options.sentinelEveryMs }),
    onOut() {},
  });
  const advance = async (ms: number): Promise<void> => {
    clock.advance(ms);
    await new Promise<void>((next) => new SystemClock().soon(next));
  };
  return { clock, engine, watch, room, outcomes, outs, spent, advance };
}

describe('a sentinel that nobody’s suspicion asked for', () => {
  test('goes out once in its time while there is traffic, and none without', async () => {
    const { watch, engine, advance, outcomes, clock } = setUp();
    await advance(10 * PATROL_EVERY_MS);
    assert.equal(engine.requests.length, 0, 'without traffic there is none');
    for (let i = 0; i < 3; i++) {
      watch.passes('text');
      watch.passes('text');
      await advance(PATROL_EVERY_MS - 1);
      assert.equal(engine.requests.length, i);
      await advance(1);
      assert.equal(engine.requests.length, i + 1);
      engine.finish();
      await advance(10 * PATROL_EVERY_MS);
    }
    assert.deepEqual(outcomes, ['passed', 'passed', 'passed']);
    watch.close();
    assert.equal(clock.waiting, 0);
  });

  test('holds a marker of its own, says what it cost, and goes the way that requests go', async () => {
    const { watch, engine, advance, spent } = setUp();
    for (const kind of ['text', 'chat'] as const) {
      watch.passes(kind);
      await advance(PATROL_EVERY_MS);
      const { prompt, maxTokens } = engine.requests.at(-1)!;
      assert.equal(prompt.kind, kind);
      const text = prompt.kind === 'text' ? prompt.text : prompt.messages[0]!.content;
      assert.match(text, /^KVC-[a-z2-7]{26}\. /);
      assert.ok(text.length <= PATROL_PROMPT_TOKENS && text.length > PATROL_PROMPT_TOKENS / 2, `${text.length}`);
      engine.finish(Math.min(3, maxTokens));
      await advance(0);
    }
    const tokens = engine.requests.map(({ prompt }) => (engine.count(prompt) as { tokens: number }).tokens);
    assert.deepEqual(spent, { prompt: tokens[0]! + tokens[1]!, output: 6 });
    watch.close();
  });

  test('that fails leads to another, and only that one takes the engine out', async () => {
    for (const second of ['well', 'badly']) {
      const { watch, engine, advance, outcomes, outs } = setUp();
      const fail = (): void => {
        const { sink } = engine.open.shift()!;
        sink.end({ kind: 'failed', code: 'engine_failed', message: '', detail: '', guard: null });
        sink.released();
      };
      watch.passes('text');
      await advance(PATROL_EVERY_MS);
      fail();
      await advance(0);
      assert.ok(watch.rotation.isIn);
      await advance(SENTINEL_EVERY_MS);
      assert.equal(engine.requests.length, 2);
      if (second === 'well') engine.finish();
      else fail();
      await advance(0);
      assert.deepEqual(outs, second === 'well' ? [] : ['sentinel-failed']);
      assert.deepEqual(outcomes, ['failed', second === 'well' ? 'passed' : 'failed']);
      watch.close();
    }
  });

  test('is not sent beside one that suspicion asked for, nor to an engine that is out', async () => {
    const { watch, engine, advance } = setUp();
    watch.passes('text');
    await advance(PATROL_EVERY_MS - 1);
    watch.suspect(40);
    await advance(0);
    assert.equal(engine.requests.length, 1);
    await advance(1);
    assert.equal(engine.requests.length, 1);
    watch.close();
  });

  test('is off with the rate 0, and with sentinels off', async () => {
    for (const options of [{ sentinelEveryMs: 0 }, { sentinels: false }]) {
      const { watch, engine, advance, clock } = setUp(options);
      watch.passes('text');
      assert.equal(clock.waiting, 0);
      await advance(10 * PATROL_EVERY_MS);
      assert.equal(engine.requests.length, 0);
    }
  });
});
