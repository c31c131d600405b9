/**
 * Goal: a thread that ends at any moment under load costs its open requests one error each, and nothing else. Method: the real engine
 * in its threads; `terminate()` at seeded points in time; the ledgers' counts, before and after. COFFERDAM_LONG=1: 200 points.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Prng } from '../base/prng.js';
import { engineConfig } from './config.js';
import { ask, type Asked, clock, isIdle, recall, until } from './harness.test.help.js';
import { ThreadedEngine } from './threaded-engine.js';

const SEED = Number(process.env.SEED ?? 91);
const IS_LONG = process.env.COFFERDAM_LONG === '1';
const POINTS = IS_LONG ? 200 : 20;
/** Of one engine: it gives up on nodes that end too often. */
const POINTS_OF_ENGINE = 40;
const BACK_MS_MAX = 2_000;
const OPEN = 6;
/** As far into the load as a crash may come: from the first chunk to the middle of most answers. */
const DELAY_MS_MAX = 200;

const start = (): Promise<ThreadedEngine> =>
  ThreadedEngine.start({
    config: engineConfig({ context: 1024, prefillPool: 2048, decodePool: 4096, runningMax: 8 }),
    clock,
  });

/** Some prompts come again and again, so that kept pages are read and sealed while the crash comes. */
function load(engine: ThreadedEngine, chance: Prng, prompts: readonly string[]): Asked[] {
  return Array.from({ length: OPEN }, () => {
    const tenant = chance.between(1, 3);
    const text = chance.chance(0.5) ? chance.pick(prompts) : recall(chance, chance.between(100, 900)).prompt;
    const options = { tenant, salt: String(tenant).repeat(64), maxTokens: chance.between(1, 200), ignoreEos: true };
    return ask(engine, text, options);
  });
}

async function crashOnce(engine: ThreadedEngine, role: 'prefill' | 'decode', asked: Asked[]): Promise<number> {
  const before = engine.incarnation(role)!;
  const begunMs = clock.nowMs();
  await engine.crash(role);
  await until(() => engine.incarnation(role) === before + 1, `${role} is back`, BACK_MS_MAX);
  const backMs = clock.nowMs() - begunMs;
  await Promise.all(asked.map(({ whenReleased }) => whenReleased));
  for (const { ended } of asked) {
    const isWhole = ended?.outcome === 'finished' && ended.completionTokens > 0;
    assert.ok(isWhole || ended?.error?.code === 'engine_failed', JSON.stringify(ended));
  }
  await until(() => isIdle(engine.stats()), `every page is back: ${JSON.stringify(engine.stats())}`, BACK_MS_MAX);
  const { prefillPages, decodePages, waiting } = engine.stats();
  for (const { free, sealed, total } of [prefillPages, decodePages]) assert.equal(free + sealed, total);
  assert.equal(waiting, 0);
  return backMs;
}

test(`prefill and decode end at ${POINTS} points under load, and come back as if nothing had been (seed ${SEED})`, {
  timeout: 60_000 + POINTS * 4_000,
}, async (t) => {
  const chance = new Prng(SEED);
  const prompts = [500, 700].map((length) => recall(chance, length).prompt);
  let [refused, slowestMs, failed] = [0, 0, 0];
  for (let point = 0; point < POINTS; ) {
    const engine = await start();
    try {
      for (let i = 0; i < POINTS_OF_ENGINE && point < POINTS; i++, point++) {
        const asked = load(engine, chance, prompts);
        const role = chance.pick(['prefill', 'decode'] as const);
        await new Promise<void>((resolve) => clock.after(chance.unit() * DELAY_MS_MAX, resolve));
        slowestMs = Math.max(slowestMs, await crashOnce(engine, role, asked));
        failed += asked.filter(({ ended }) => ended?.outcome !== 'finished').length;
      }
      const { prompt, marker } = recall(chance, 400);
      const last = ask(engine, prompt, { maxTokens: marker.length });
      await last.whenEnded;
      assert.equal(last.text(), marker);
      const { landingsRefused, sweep, findings } = engine.stats();
      refused += landingsRefused;
      assert.deepEqual([sweep?.prefill.findings, sweep?.decode.findings, findings.length], [0, 0, 0]);
    } finally {
      await engine.close();
    }
  }
  t.diagnostic(`slowest return ${Math.round(slowestMs)} ms, ${failed} requests failed, ${refused} landings refused`);
  assert.ok(failed > 0, 'no crash met a request');
});
