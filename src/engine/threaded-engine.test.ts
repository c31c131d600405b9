/**
 * Goal: the engine in its threads answers right, keeps requests apart, and comes back from whatever happens to it. Method: real
 * threads and a real model; what is left behind is read from the ledgers' counts.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Prng } from '../base/prng.js';
import { engineConfig, type EngineOptions } from './config.js';
import { ask, type Asked, clock, isIdle, recall, until } from './harness.test.help.js';
import { STREAM_AHEAD_MAX } from './decode-node.js';
import { ThreadedEngine } from './threaded-engine.js';

const SEED = Number(process.env.SEED ?? 77);
/** A request that is lost would hold a test for ever. */
const BOUNDED = { timeout: 30_000 } as const;
const SIZES = { context: 2048, prefillPool: 2048, decodePool: 4096, runningMax: 12 } as const;

const start = (options: EngineOptions = {}): Promise<ThreadedEngine> =>
  ThreadedEngine.start({ config: engineConfig({ ...SIZES, ...options }), clock });

const idle = (engine: ThreadedEngine): Promise<void> =>
  until(() => isIdle(engine.stats()), `every page is free again: ${JSON.stringify(engine.stats())}`);

const finished = async (asked: Asked): Promise<string> => {
  const end = await asked.whenEnded;
  assert.equal(end.outcome, 'finished', JSON.stringify(end.error));
  return asked.text();
};

describe('the engine', () => {
  let engine: ThreadedEngine;
  before(async () => {
    engine = await start();
  });
  after(async () => {
    await engine.close();
  });

  test(`gives a stated marker whole, with both counts at the start (seed ${SEED})`, async () => {
    const chance = new Prng(SEED);
    for (const length of [100, 256, 257, 1000, 1900]) {
      const { prompt, marker } = recall(chance, length);
      const asked = ask(engine, prompt, { maxTokens: marker.length });
      assert.equal(await finished(asked), marker);
      const counts = { promptTokens: prompt.length, prefillTokens: prompt.length, cachedTokens: 0 };
      assert.deepEqual(asked.counts, counts);
      const { ended } = asked;
      assert.deepEqual(
        [ended?.promptTokens, ended?.prefillTokens, ended?.completionTokens],
        [prompt.length, prompt.length, marker.length],
      );
      assert.equal(ended?.finishReason, 'length');
    }
    await idle(engine);
    assert.ok(engine.stats().pagesVerified > 0);
    assert.ok(engine.stats().tagsChecked > 0);
  });

  test(`an answer is the same alone and among eight others (seed ${SEED})`, async () => {
    const chance = new Prng(SEED + 1);
    const prompts = Array.from({ length: 9 }, () => recall(chance, chance.between(60, 400)).prompt);
    const options = { maxTokens: 60, temperature: 0.7, seed: 5 };
    const alone: string[] = [];
    for (const prompt of prompts) alone.push(await finished(ask(engine, prompt, options)));
    const together = await Promise.all(prompts.map((prompt) => finished(ask(engine, prompt, options))));
    assert.deepEqual(together, alone);
    await idle(engine);
  });

  test('the output is cut to the context, and refusals at the door say why', async () => {
    const cut = ask(engine, 'x'.repeat(2040), { maxTokens: 1000, ignoreEos: true });
    await cut.whenEnded;
    assert.equal(cut.ended?.completionTokens, 8);
    const long = ask(engine, 'x'.repeat(2048));
    assert.equal((await long.whenEnded).error?.code, 'context_length_exceeded');
    assert.equal((await ask(engine, '').whenEnded).error?.code, 'invalid_request');
  });

  test(`requests that are aborted at random points leave nothing behind, and the others are right (seed ${SEED})`, async () => {
    const chance = new Prng(SEED + 2);
    const kept: { readonly asked: Asked; readonly marker: string }[] = [];
    const all: Asked[] = [];
    for (let i = 0; i < 60; i++) {
      const { prompt, marker } = recall(chance, chance.between(80, 700));
      if (chance.chance(0.5)) {
        const asked = ask(engine, prompt, { maxTokens: marker.length });
        kept.push({ asked, marker });
        all.push(asked);
      } else {
        const leavesAt = chance.below(40);
        const asked = ask(engine, prompt, {
          maxTokens: 100,
          onToken: (one) => {
            if (one.tokens.length === leavesAt) one.run.abort();
          },
        });
        if (leavesAt === 0) asked.run.abort();
        else if (chance.chance(0.5)) clock.after(chance.below(60), () => asked.run.abort());
        all.push(asked);
      }
      if (chance.chance(0.3)) await new Promise<void>((resolve) => clock.after(chance.below(8), resolve));
    }
    await Promise.all(all.map(({ whenReleased }) => whenReleased));
    for (const { asked, marker } of kept) assert.equal(asked.text(), marker);
    await idle(engine);
    assert.equal(engine.stats().waiting, 0);
  });

  test('a reader that takes nothing rests by itself, while others go on', async () => {
    const slow = ask(engine, 'tell me a story', { reads: false, maxTokens: 2000, ignoreEos: true });
    await until(() => slow.tokens.length >= STREAM_AHEAD_MAX, 'the slow one is as far ahead as it may be');
    const other = ask(engine, 'another story', { maxTokens: 900, ignoreEos: true });
    await finished(other);
    assert.equal(other.tokens.length, 900);
    assert.equal(slow.tokens.length, STREAM_AHEAD_MAX);
    assert.equal(slow.ended, null);
    slow.run.acknowledge(STREAM_AHEAD_MAX);
    await until(() => slow.tokens.length === 2 * STREAM_AHEAD_MAX, 'it goes on when something was taken');
    slow.run.abort();
    assert.equal((await slow.whenEnded).outcome, 'aborted');
    await idle(engine);
  });

  for (const role of ['prefill', 'decode'] as const) {
    test(
      `${role} may end at any moment: every request ends once, and the engine serves again (seed ${SEED})`,
      BOUNDED,
      async () => {
        const chance = new Prng(SEED + (role === 'prefill' ? 3 : 4));
        for (const delayMs of [0, 3, 15, 60]) {
          const asked = Array.from({ length: 10 }, () =>
            ask(engine, recall(chance, chance.between(100, 1500)).prompt, { maxTokens: 200, ignoreEos: true }),
          );
          await new Promise<void>((resolve) => clock.after(delayMs, resolve));
          await engine.crash(role);
          const begunMs = clock.nowMs();
          const { prompt, marker } = recall(chance, 300);
          assert.equal(await finished(ask(engine, prompt, { maxTokens: marker.length })), marker);
          assert.ok(clock.nowMs() - begunMs < 2000, `served again after ${Math.round(clock.nowMs() - begunMs)} ms`);
          for (const { outcome, error } of await Promise.all(asked.map(({ whenEnded }) => whenEnded))) {
            assert.ok(outcome === 'finished' || error?.code === 'engine_failed', `${outcome} ${error?.code}`);
          }
          await Promise.all(asked.map(({ whenReleased }) => whenReleased));
          await idle(engine);
        }
      },
    );
  }

  test('a node that ends again while it starts is started again, and both may end at once', BOUNDED, async () => {
    for (const roles of [
      ['decode', 'decode'],
      ['prefill', 'prefill', 'decode'],
      ['prefill', 'decode'],
    ] as const) {
      const asked = ask(engine, 'who is there?', { maxTokens: 500, ignoreEos: true });
      for (const role of roles) await engine.crash(role);
      const { prompt, marker } = recall(new Prng(SEED + 5), 300);
      assert.equal(await finished(ask(engine, prompt, { maxTokens: marker.length })), marker);
      await asked.whenReleased;
      await idle(engine);
    }
  });
});

test('a full engine makes requests wait, and refuses one more than may wait', async () => {
  const engine = await start({ runningMax: 1 });
  try {
    const first = ask(engine, 'tell me a story', { reads: false, maxTokens: 2000, ignoreEos: true });
    const waiting: Asked[] = [];
    for (let i = 0; i < 1024; i++) waiting.push(ask(engine, 'next', { maxTokens: 1 }));
    assert.equal(engine.stats().waiting, 1024);
    const oneMore = ask(engine, 'one more');
    assert.equal((await oneMore.whenEnded).error?.code, 'no_capacity');
    for (const asked of waiting.slice(4)) asked.run.abort();
    await Promise.all(waiting.slice(4).map(({ whenReleased }) => whenReleased));
    first.run.abort();
    for (const asked of waiting.slice(0, 4)) await finished(asked);
    await idle(engine);
  } finally {
    await engine.close();
  }
});

test('requests that wait for pages are served in turn, and none is lost', async () => {
  const engine = await start({ context: 1024, prefillPool: 1024, decodePool: 1024 });
  try {
    const chance = new Prng(SEED + 6);
    const asked = Array.from({ length: 10 }, () => {
      const { prompt, marker } = recall(chance, 600);
      return { marker, one: ask(engine, prompt, { maxTokens: marker.length }) };
    });
    for (const { marker, one } of asked) assert.equal(await finished(one), marker);
    await idle(engine);
  } finally {
    await engine.close();
  }
});

test('closing ends open and waiting requests once, within two seconds, and takes none after', async () => {
  const engine = await start({ runningMax: 4 });
  const asked = Array.from({ length: 12 }, () =>
    ask(engine, 'tell me a story', { maxTokens: 2000, ignoreEos: true, reads: false }),
  );
  await until(() => (asked[0]?.tokens.length ?? 0) > 0, 'the first one runs');
  const begunMs = clock.nowMs();
  await engine.close();
  assert.ok(clock.nowMs() - begunMs < 2000);
  await Promise.all(asked.map(({ whenReleased }) => whenReleased));
  for (const { ended } of asked) {
    assert.ok(ended?.outcome === 'aborted' || ended?.error?.code === 'shutting_down', JSON.stringify(ended));
  }
  const late = ask(engine, 'anybody there?');
  assert.equal((await late.whenEnded).error?.code, 'shutting_down');
});

test('an engine whose node does not stay up gives up: open requests end, later ones are refused', BOUNDED, async () => {
  const engine = await start();
  try {
    const open = ask(engine, 'tell me a story', { maxTokens: 2000, ignoreEos: true, reads: false });
    for (let i = 0; i < 80; i++) await engine.crash('prefill');
    for (let i = 0; i < 80; i++) await engine.crash('decode');
    assert.ok(['engine_failed', 'engine_unavailable'].includes((await open.whenEnded).error?.code ?? ''));
    await open.whenReleased;
    assert.equal((await ask(engine, 'anybody there?').whenEnded).error?.code, 'engine_unavailable');
  } finally {
    await engine.close();
  }
});
