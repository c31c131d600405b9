/**
 * Goal: every request of a tenant is told once, when nothing is held for it any more, with its numbers and none of its text. Method:
 * engines that are played by hand; real HTTP.
 */
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { type Played, playedEngine, type PlayedOptions } from '../../test/support/fleet.js';
import { type Harness, type HarnessOptions, startHarness, until } from '../../test/support/gateway-harness.js';
import type { Settlement } from './settlement.js';

const TEXT = '/v1/completions';
const SECRET = 'a secret of the prompt';
const body = (extra: Record<string, unknown> = {}): Record<string, unknown> => ({
  model: 'lab',
  prompt: SECRET,
  max_tokens: 4,
  ...extra,
});

let open: Harness[] = [];
async function start(
  options: HarnessOptions = {},
  played: PlayedOptions = {},
): Promise<{ harness: Harness; engine: Played; settled: Settlement[] }> {
  const settled: Settlement[] = [];
  const engine = playedEngine(played);
  const harness = await startHarness({
    upstreams: [engine],
    engineNames: ['left'],
    onSettled: (settlement) => settled.push(settlement),
    ...options,
  });
  open.push(harness);
  return { harness, engine, settled };
}
afterEach(async () => {
  await Promise.all(open.map((harness) => harness.close()));
  open = [];
});

async function one(harness: Harness, settled: Settlement[]): Promise<Settlement> {
  await until(harness.clock, 'it is settled', () => settled.length > 0);
  assert.equal(settled.length, 1);
  assert.ok(!JSON.stringify(settled).includes('secret'), 'text in a settlement');
  return settled[0]!;
}

describe('a settlement', () => {
  test('of a request that finished has all of its numbers, and waits for the engine’s release', async () => {
    const { harness, engine, settled } = await start();
    const begin = engine.start.bind(engine);
    engine.start = (request, sink) => ({ ...begin(request, sink), nodes: ['n1', 'n2'] });
    const beforeMs = harness.clock.wallMs();
    const answer = harness.post(TEXT, body());
    await until(harness.clock, 'it runs', () => engine.open.length === 1);
    const { sink, request } = engine.open.shift()!;
    const tokens = SECRET.length;
    sink.started({ promptTokens: tokens, prefillTokens: tokens });
    sink.text('y', 1);
    const usage = { promptTokens: tokens, prefillTokens: tokens, completionTokens: 1, cachedTokens: 3 };
    sink.end({ kind: 'finished', finishReason: 'stop', usage });
    const { id } = (await (await answer).json()) as { id: string };
    assert.equal(settled.length, 0, 'the engine still holds it');
    sink.released();
    const { arrivedAtMs, dispatchedMs, firstTextMs, endedMs, releasedMs, ...rest } = await one(harness, settled);
    assert.deepEqual(rest, {
      id: id.replace('cmpl-', ''),
      engineId: request.id,
      tenant: 'acme',
      route: 'completions',
      model: 'lab',
      engine: 'left',
      nodes: ['n1', 'n2'],
      counted: { least: tokens, most: tokens },
      maxTokens: 4,
      came: 1,
      said: { decode: tokens, prefill: tokens, completion: 1, cached: 3 },
      limits: { context: 4096, prefillPool: 4096, decodePool: 8192, effective: 4095 },
      outcome: 'finished',
      code: null,
      abortPhase: null,
    });
    assert.ok(arrivedAtMs >= beforeMs - 1 && arrivedAtMs <= harness.clock.wallMs());
    const times = [0, dispatchedMs!, firstTextMs!, endedMs, releasedMs!];
    assert.deepEqual(
      times,
      [...times].sort((a, b) => a - b),
    );
  });

  for (const [title, extra, expected] of [
    [
      'refused for its length says our count',
      { prompt: 'x'.repeat(5000) },
      { outcome: 'refused', code: 'context_length_exceeded', counted: { least: 5000, most: 5000 }, model: 'lab' },
    ],
    [
      'refused by the policy says no model',
      { rid: 'x' },
      { outcome: 'refused', code: 'field_not_allowed', counted: null, model: null },
    ],
  ] as const) {
    test(`of one that was ${title}, and that it never left`, async () => {
      const { harness, settled } = await start();
      await (await harness.post(TEXT, body(extra))).text();
      const { outcome, code, counted, model, ...rest } = await one(harness, settled);
      assert.deepEqual({ outcome, code, counted, model }, expected);
      assert.deepEqual(
        [rest.engine, rest.engineId, rest.limits, rest.dispatchedMs, rest.releasedMs],
        [null, null, null, null, null],
      );
    });
  }

  test('of one that failed in the engine says its code, and what the engine said that is no count is null', async () => {
    const { harness, engine, settled } = await start();
    const answer = harness.post(TEXT, body());
    await until(harness.clock, 'it runs', () => engine.open.length === 1);
    const { sink } = engine.open.shift()!;
    sink.started({ promptTokens: SECRET as never, prefillTokens: null });
    assert.equal((await answer).status, 502);
    sink.end({ kind: 'aborted', usage: null });
    sink.released();
    const { outcome, code, said, engine: name } = await one(harness, settled);
    assert.deepEqual([outcome, code, name], ['failed', 'verification_failed', 'left']);
    assert.deepEqual(said, { decode: null, prefill: null, completion: null, cached: null });
  });

  for (const phase of ['waiting', 'prefill', 'decode'] as const) {
    test(`of one whose client left in the phase ${phase} says so`, async () => {
      const { harness, engine, settled } = await start({ shield: { requestsMax: 0 } }, { runningMax: 1 });
      const other = phase === 'waiting' ? harness.post(TEXT, body()) : null;
      if (other !== null) await until(harness.clock, 'the other runs', () => engine.open.length === 1);
      const gone = new AbortController();
      const answer = harness.post(TEXT, body({ stream: true }), { signal: gone.signal });
      const has = (): boolean => (phase === 'waiting' ? harness.gateway.room.waiting : engine.open.length) === 1;
      await until(harness.clock, 'it is there', has);
      if (phase === 'decode') {
        engine.open[0]!.sink.started(null);
        engine.open[0]!.sink.text('y', 1);
        await answer;
      }
      gone.abort();
      await answer.catch(() => {});
      if (phase !== 'waiting') {
        await until(harness.clock, 'it is aborted', () => engine.aborts === 1);
        assert.equal(settled.length, 0);
        const { sink } = engine.open.shift()!;
        sink.end({ kind: 'aborted', usage: null });
        sink.released();
      }
      const { outcome, code, abortPhase } = await one(harness, settled);
      assert.deepEqual([outcome, code, abortPhase], ['aborted', 'client_closed_request', phase]);
      if (other !== null) engine.finish();
      await other;
    });
  }

  test('is not made for whoever has no key', async () => {
    const { harness, settled } = await start();
    assert.equal((await harness.post(TEXT, body(), { key: null })).status, 401);
    assert.equal((await harness.post(TEXT, body({ prompt: 'x'.repeat(5000) }))).status, 400);
    assert.equal((await one(harness, settled)).code, 'context_length_exceeded');
  });

  test('is made once for each of many, however they end', async () => {
    const { harness, engine, settled } = await start({ tenantOpenMax: 5 }, { runningMax: 3 });
    const answers = Array.from({ length: 12 }, () => harness.post(TEXT, body()));
    await until(harness.clock, 'seven are refused', () => settled.length === 7);
    while (settled.length < 12) {
      if (engine.open.length > 0) engine.finish();
      await until(harness.clock, 'more', () => engine.open.length > 0 || settled.length === 12);
    }
    await Promise.all(answers.map(async (answer) => (await answer).text()));
    assert.equal(new Set(settled.map(({ id }) => id)).size, 12);
    assert.deepEqual(
      [
        settled.filter(({ code }) => code === 'rate_limit_exceeded').length,
        settled.filter(({ code }) => code === null).length,
      ],
      [7, 5],
    );
  });
});
