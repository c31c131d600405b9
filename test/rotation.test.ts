/**
 * Goal: the public incident, met by an engine's answers alone. Method: the embedded engine with the fault `rejected-stays-alive` and none of
 * its guards, behind a gateway that was told the advertised context for the size of a prefill pool that is much smaller.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeMarker } from '../src/markers/marker.js';
import { Prng } from '../src/base/prng.js';
import { countNow } from './cases/upstream.js';
import { GLOBEX_KEY, idle, until } from './support/gateway-harness.js';
import { startRealGateway } from './support/real-gateway.js';
import { filler, recallPrompt } from './support/recall.js';

const TEXT = '/v1/completions';
const SENTINEL_OWNER = 1_000_000;

const GLOBEXES = makeMarker(Buffer.from('a secret of the rotation test'), 'globex', 'test', 0);

test('a prompt above the true pool is withheld, a sentinel as long fails, the engine is out, and comes back once its size is told', async () => {
  const pools = { context: 2048, prefillPool: 512, decodePool: 4096 };
  const gateway = await startRealGateway({ ...pools, faults: ['rejected-stays-alive'], guards: 0 });
  const sizes = (): Promise<number[]> =>
    Promise.all(
      gateway.requests
        .filter(({ tenant }) => tenant === SENTINEL_OWNER)
        .map(({ prompt }) => countNow(gateway.upstream, prompt)),
    );
  try {
    gateway.claimed = { prefillPool: 2048 };
    // What another tenant has at work, and leaves behind in the pages.
    const chance = new Prng(7);
    const theirs = { model: 'lab', prompt: recallPrompt(chance, GLOBEXES.text, 400), max_tokens: 30 };
    const answer = await (await gateway.post(TEXT, theirs, { key: GLOBEX_KEY })).text();
    assert.ok(answer.includes(GLOBEXES.text), answer);

    const long = { model: 'lab', prompt: filler(chance, 1000), max_tokens: 30, stream: true };
    const withheld = await gateway.post(TEXT, long);
    const text = await withheld.text();
    assert.match(text, /"code":"verification_failed"/);
    assert.ok(!text.includes('[DONE]'));
    await until(gateway.clock, 'the engine is out', () => !gateway.gateway.engines[0]!.watch.rotation.isIn, 5000);
    assert.equal(gateway.gateway.engines[0]!.watch.rotation.reason, 'sentinel-failed');
    assert.ok(
      (await sizes()).every((tokens) => tokens > 900 && tokens <= 1000),
      (await sizes()).join(' '),
    );
    assert.equal((await gateway.post(TEXT, theirs, { key: GLOBEX_KEY })).status, 503);
    assert.equal((await sizes()).length, 1);
    // The operators tell the true size: a prompt as long is not admitted any more, and self-tests are no longer than what is.
    gateway.claimed = null;
    await until(gateway.clock, 'the engine is back', () => gateway.gateway.engines[0]!.watch.rotation.isIn, 8000);
    assert.ok((await sizes()).at(-1)! <= 512);
    assert.equal((await gateway.post(TEXT, long)).status, 400);
    assert.ok((await (await gateway.post(TEXT, theirs, { key: GLOBEX_KEY })).text()).includes(GLOBEXES.text));
    const ids = new Set(gateway.findings.map(({ id }) => id));
    for (const id of ['usage-mismatch', 'engine-out', 'engine-back']) assert.ok(ids.has(id), id);
    await until(gateway.clock, 'all back', () => idle(gateway));
  } finally {
    await gateway.close();
  }
});
