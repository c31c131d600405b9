/**
 * Goal: work goes to the prefill node that has the least to do, and never to one that is no match for decode. Method: several servers
 * that tell of themselves as written here; real HTTP.
 */
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { SystemClock } from '../../base/clock.js';
import { answerWell, FakeSglang } from '../../../test/support/fake-pair.js';
import { until } from '../../../test/support/gateway-harness.js';
import { failure, fakePair, Heard, type PairFixture } from '../../../test/support/pair-fixture.js';
import { nodeMaking } from '../../../test/support/sglang-double.js';
import { SglangPairUpstream } from './pair.js';

const clock = new SystemClock();
const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((close) => close()));
});
const pair = (prefills = 1): Promise<PairFixture> => fakePair(open, prefills, {});

describe('prefill nodes', () => {
  test('get what is to be done by tokens in flight, and give it back', async () => {
    const { prefills, upstream } = await pair(2);
    for (const prefill of prefills) prefill.play = () => {};
    const sent = (): number[] => prefills.map(({ legs }) => legs.length);
    const runs = [new Heard(upstream, { promptTokens: 1000 })];
    for (const tokens of [100, 100, 100]) runs.push(new Heard(upstream, { promptTokens: tokens }));
    await until(clock, 'all are there', () => sent()[0]! + sent()[1]! === 4);
    assert.deepEqual(
      sent().sort((one, other) => one - other),
      [1, 3],
    );
    for (const each of runs) each.run!.abort();
    for (const leg of prefills.flatMap(({ legs }) => legs)) answerWell(leg, 'prefill');
    await Promise.all(runs.map((each) => each.released));
    const more = [new Heard(upstream, { promptTokens: 5 }), new Heard(upstream, { promptTokens: 5 })];
    await until(clock, 'one each', () => sent()[0]! + sent()[1]! === 6);
    assert.deepEqual(
      sent().sort((one, other) => one - other),
      [2, 4],
    );
    for (const each of more) each.run!.abort();
  });

  test('that agree with decode are used, and the least of them counts; others are named once and get nothing', async () => {
    const prefills = await Promise.all(
      [
        new FakeSglang('prefill', { pool: 4096 }),
        new FakeSglang('prefill', { pool: 2048 }),
        new FakeSglang('prefill', { pool: 1024, version: '0.5.23' }),
        new FakeSglang('prefill', { pool: 1024, flags: { page_size: 64 } }),
        new FakeSglang('prefill', { pool: 1024, flags: { kv_cache_dtype: 'fp8_e5m2' } }),
        new FakeSglang('prefill', { pool: 1024, context: 4096 }),
        new FakeSglang('prefill', { pool: 1024, flags: { served_model_name: 'other' } }),
        new FakeSglang('decode', { pool: 1024 }),
      ].map((node) => node.listen()),
    );
    const decode = await new FakeSglang('decode').listen();
    const { node, options, notices } = nodeMaking();
    const upstream = await SglangPairUpstream.open(
      node(decode.url),
      prefills.map(({ url }) => node(url)),
      options(),
    );
    open.push(async () => {
      await upstream.close();
      await Promise.all([decode, ...prefills].map((each) => each.close()));
    });
    assert.deepEqual(upstream.health(), { isUp: true });
    const { context, prefillPool, decodePool } = upstream.capacity();
    assert.deepEqual([context, prefillPool, decodePool], [8192, 2041, 8185]);
    const told = notices.filter(({ kind }) => kind === 'pair-mismatch').map(({ words }) => words.split(': ')[1]);
    const own = new URL(decode.url).host;
    assert.deepEqual(
      told.toSorted((one, other) => (String(one) < String(other) ? -1 : 1)),
      [
        'KV cache type `fp8_e5m2`, decode has `auto`',
        'context 4096, decode has 8192',
        'its role is decode',
        'model `other`, decode has `glm`',
        'page size 64, decode has 1',
        'version `0.5.23`, decode has `0.5.18`',
      ],
    );
    assert.ok(notices.every(({ words }) => words.includes(own)));
    for (let i = 0; i < 4; i++) await new Heard(upstream).released;
    assert.deepEqual(prefills.map(({ legs }) => legs.length).slice(2), [0, 0, 0, 0, 0, 0]);
  });

  test('with none that can be used, the pair is down and says so; a request that comes all the same ends at once', async () => {
    const { prefills, upstream, notices } = await pair();
    prefills[0]!.set({ version: '0.5.23' });
    await upstream.readNow();
    const health = upstream.health();
    assert.ok(!health.isUp && health.reason === 'changed' && health.words.includes('version `0.5.23`'));
    assert.equal(upstream.capacity().prefillPool, null);
    const heard = new Heard(upstream);
    await heard.released;
    assert.deepEqual([failure(heard.end), prefills[0]!.legs.length], ['engine_unavailable', 0]);
    assert.deepEqual(
      notices.map(({ kind }) => kind),
      ['version-changed', 'pair-mismatch'],
    );
  });
});
