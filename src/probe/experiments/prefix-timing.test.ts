/**
 * Goal: a shared prefix cache is seen, by its times or by its counts; one that is not shared never looks so; and where nothing could
 * have been seen, nothing is said. Method: endpoints made of chance, with noise as servers have it, and one over loopback.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CannedEngine } from '../../../test/support/canned-engine.js';
import { SystemClock } from '../../base/clock.js';
import { Prng } from '../../base/prng.js';
import type { Ask } from '../client.js';
import type { ExperimentResult } from '../experiment.js';
import { NOTHING_TOLD } from '../knowledge.js';
import { type FakeLab, fakeLab, type Faked } from '../lab.test.help.js';
import { runProbe } from '../run.js';
import { overallVerdict } from '../verdict.js';
import { prefixTiming } from './prefix-timing.js';
import { NOTHING_EARLIER } from '../resume.js';

const RUNS = process.env.COFFERDAM_LONG === '1' ? 100 : 6;

type Sharing = 'all' | 'tenant' | 'none';

interface Model {
  readonly sharing: Sharing;
  /** Milliseconds that a whole cached prompt saves. */
  readonly savesMs: number;
  readonly noiseMs: number;
  /** Whether `cached_tokens` says the truth, nothing, or always all. */
  readonly counts?: 'true' | 'none' | 'all';
}

/** Answers after 20 ms and noise with a long tail, less what a cached prompt saves. */
function endpoint(seed: number, { sharing, savesMs, noiseMs, counts = 'none' }: Model): (ask: Ask) => Faked {
  const chance = new Prng(seed);
  const cached = new Set<string>();
  return ({ tenant, prompt }) => {
    const key = sharing === 'all' ? prompt : `${tenant.name} ${prompt}`;
    const isHit = sharing !== 'none' && cached.has(key);
    cached.add(key);
    const tail = chance.chance(0.1) ? 10 * noiseMs * chance.unit() : 0;
    const firstByteMs = 20 + noiseMs * Math.abs(chance.normal()) + tail - (isHit ? savesMs : 0);
    const cachedTokens = counts === 'none' ? null : counts === 'all' || isHit ? prompt.length - 1 : 0;
    return { firstByteMs, usage: { promptTokens: prompt.length, completionTokens: 1, cachedTokens } };
  };
}

async function tried(seed: number, model: Model, options: Partial<Parameters<typeof fakeLab>[0]> = {}) {
  const faked: FakeLab = fakeLab({ seed, ask: endpoint(seed + 1, model), ...options });
  return { ...faked, result: await prefixTiming.run(faked.lab) };
}

const figure = (result: ExperimentResult, name: string): number => {
  const value = result.figures?.[name];
  assert.ok(typeof value === 'number', name);
  return value;
};

describe('prefix-timing', () => {
  test('sees a shared cache by its times alone, and stops early', async () => {
    const { result, asks, lab } = await tried(1, { sharing: 'all', savesMs: 10, noiseMs: 1 });
    assert.equal(result.verdict, 'leaks');
    assert.ok(result.hits > 0 && figure(result, 'crossDelta') < -0.9);
    assert.ok(asks.length < prefixTiming.plan(lab).requests, `${asks.length} requests`);
  });

  test('sees a shared cache by its counts where times show nothing, and names the two requests', async () => {
    const { result } = await tried(2, { sharing: 'all', savesMs: 0, noiseMs: 1, counts: 'true' });
    assert.equal(result.verdict, 'leaks');
    assert.ok(figure(result, 'crossP') > 0.001);
    assert.match(result.evidence.join(' '), /The first was q-\d+, after q-\d+\./);
  });

  test('says isolated of a cache for each tenant, with its control and what it would have seen', async () => {
    const { result, asks, lab } = await tried(3, { sharing: 'tenant', savesMs: 10, noiseMs: 1 });
    assert.equal(result.verdict, 'isolated');
    assert.ok(figure(result, 'controlP') <= 0.001);
    assert.ok(figure(result, 'visibleShiftMs') < figure(result, 'controlShiftMs'));
    assert.equal(asks.length, prefixTiming.plan(lab).requests);
    for (const name of ['crossHitMs', 'crossMissMs', 'controlHitMs', 'controlMissMs'])
      assert.equal((result.figures?.[name] as readonly number[] | undefined)?.length, 24, name);
  });

  test('says that no cache was seen where a tenant gains nothing by its own prompts; that counts as nothing', async () => {
    const { result } = await tried(4, { sharing: 'none', savesMs: 10, noiseMs: 1, counts: 'true' });
    assert.equal(result.verdict, 'no-cache-seen');
    assert.match(result.control, /^No cache seen/);
    const canary: ExperimentResult = { ...result, name: 'canary', verdict: 'isolated' };
    assert.equal(overallVerdict([canary, result], ['canary', 'prefix-timing']), 'isolated');
    assert.equal(overallVerdict([result], ['prefix-timing']), 'no-power');
  });

  test('believes no count that calls new prompts cached', async () => {
    const { result } = await tried(5, { sharing: 'none', savesMs: 0, noiseMs: 1, counts: 'all' });
    assert.equal(result.verdict, 'no-cache-seen');
  });

  test(`raises no false alarm in ${RUNS} seeded runs of a cache for each tenant, nor of none`, async () => {
    for (let seed = 100; seed < 100 + RUNS; seed++) {
      for (const sharing of ['tenant', 'none'] as const) {
        const { result } = await tried(seed, { sharing, savesMs: 8, noiseMs: 2, counts: 'true' });
        assert.equal(result.verdict, sharing === 'tenant' ? 'isolated' : 'no-cache-seen', `seed ${seed}`);
      }
    }
  });

  test('never sends one prompt as new twice, nor one of the other tenant first; all are equally long', async () => {
    const { asks } = await tried(6, { sharing: 'tenant', savesMs: 10, noiseMs: 1 });
    const firstBy = new Map<string, string>();
    const times = new Map<string, number>();
    for (const { prompt, tenant, maxTokens } of asks) {
      assert.equal(maxTokens, 1);
      if (!firstBy.has(prompt)) firstBy.set(prompt, tenant.name);
      times.set(prompt, (times.get(prompt) ?? 0) + 1);
    }
    for (const [prompt, count] of times) {
      assert.ok(count === 1 || count === 3);
      if (count === 3) assert.equal(firstBy.get(prompt), 'acme');
    }
    assert.equal(new Set(asks.slice(1).map(({ prompt }) => prompt.length)).size, 1);
    assert.equal(new Set(asks.map(({ prompt }) => prompt.slice(0, 16))).size, times.size);
  });

  test('prompts fit the context and the pool four at once', async () => {
    const pool = { knowledge: { pool: 2400, acceptLimit: 4000 } };
    const { asks } = await tried(7, { sharing: 'tenant', savesMs: 10, noiseMs: 1 }, pool);
    assert.equal(Math.max(...asks.map(({ prompt }) => prompt.length)), 600);
    assert.match(
      prefixTiming.unfit(fakeLab({ seed: 1, ask: () => ({}), knowledge: { advertised: 256 } }).lab) ?? '',
      /too short/,
    );
    assert.match(prefixTiming.unfit(fakeLab({ seed: 1, ask: () => ({}), tenants: ['acme'] }).lab) ?? '', /two tenants/);
  });

  test('waits out a 429, and says no power where answers fail', async () => {
    const answers = endpoint(9, { sharing: 'tenant', savesMs: 10, noiseMs: 1 });
    let count = 0;
    const limited = (ask: Ask): Faked =>
      count++ % 3 === 2 ? { outcome: 'refused', status: 429, retryAfterS: 2, firstByteMs: null } : answers(ask);
    const model: Model = { sharing: 'tenant', savesMs: 10, noiseMs: 1 };
    assert.equal((await tried(8, model, { ask: limited })).result.verdict, 'isolated');
    let failed = 0;
    const failing = (ask: Ask): Faked =>
      ask.tenant.name === 'globex' && failed++ >= 10
        ? { outcome: 'hung', status: null, firstByteMs: null }
        : answers(ask);
    assert.equal((await tried(8, model, { ask: failing })).result.verdict, 'no-power');
  });
});

test('over loopback, an endpoint that answers a known prompt 12 ms sooner whoever asks is told apart', async () => {
  const clock = new SystemClock();
  const known = new Set<unknown>();
  const engine: CannedEngine = new CannedEngine({
    count: ({ prompt }) => String(prompt).length,
    instead: (request, response) => {
      if (request.path === '/v1/models' || known.has(request.body.prompt)) return false;
      known.add(request.body.prompt);
      clock.after(12, () => engine.answer(request, response));
      return true;
    },
  });
  const origin = new URL(await engine.listen());
  try {
    const outcome = await runProbe({
      target: {
        origin,
        tenants: ['acme', 'globex'].map((name) => ({ name, key: `key-of-${name}` })),
        model: 'canned',
        route: 'completions',
      },
      told: { ...NOTHING_TOLD, advertised: 4096 },
      experiments: [prefixTiming],
      limits: { requests: 1000, tokens: 10_000_000, together: 4, durationMs: 60_000 },
      seed: 11,
      bound: 0.05,
      keepText: false,
      allowDestructive: false,
      version: 'test',
      clock,
      journal: { write: () => {}, close: () => {} },
      earlier: NOTHING_EARLIER,
      confirm: () => Promise.resolve(true),
      say: () => {},
    });
    assert.equal(outcome.verdict, 'leaks');
    assert.ok(figure(outcome.results[0]!, 'controlShiftMs') > 5);
  } finally {
    await engine.close();
  }
});
