/**
 * Goal: an engine that changes under the gateway is seen to, and nothing is admitted by what it was. Method: one server whose
 * answers change while it serves; real HTTP, readings asked for by the test and a clock that it moves.
 */
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { ManualClock } from '../../base/clock.js';
import { FakeSglang, type FakeRole } from '../../../test/support/fake-pair.js';
import { nodeMaking } from '../../../test/support/sglang-double.js';
import { until } from '../../../test/support/gateway-harness.js';
import { SystemClock } from '../../base/clock.js';
import { READ_EVERY_MS, RETRY_EVERY_MS } from '../poll.js';
import type { UpstreamRequest } from '../upstream.js';
import { SglangUpstream, type SglangOptions } from './single.js';
import type { SglangNodeOptions } from './node.js';

const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((close) => close()));
});

async function single(
  how: {
    role?: FakeRole;
    routes?: Parameters<FakeSglang['listen']>[0];
    node?: Partial<SglangNodeOptions>;
    options?: Partial<SglangOptions>;
    before?: (engine: FakeSglang) => void;
  } = {},
) {
  const engine = new FakeSglang(how.role ?? 'single', { pool: 4096 });
  how.before?.(engine);
  await engine.listen(how.routes);
  open.push(() => engine.close());
  const making = nodeMaking();
  const upstream = await SglangUpstream.open(making.node(engine.url, how.node), making.options(how.options));
  open.push(() => upstream.close());
  return { engine, upstream, notices: making.notices };
}

const kinds = (notices: readonly { kind: string }[]): string[] => notices.map(({ kind }) => kind);

describe('one server', () => {
  test('tells both of its numbers at the start', async () => {
    const { upstream, notices } = await single();
    const { context, prefillPool, decodePool, nodes } = upstream.capacity();
    assert.deepEqual([context, prefillPool, decodePool], [8192, 4089, 4089]);
    const [node] = nodes;
    assert.deepEqual(
      [node?.advertised, node?.pool, node?.acceptLimit, node?.role, node?.source],
      [8192, 4096, 4089, 'single', '/server_info'],
    );
    assert.deepEqual([upstream.describe().models, upstream.health(), notices], [['glm'], { isUp: true }, []]);
  });

  test('whose pool shrinks, grows and is no longer told while it serves', async () => {
    const { engine, upstream, notices } = await single();
    const pools: (number | null)[] = [];
    for (const pool of [1024, 8192, 0, 'None', -1, 2048]) {
      engine.setPool(pool);
      await upstream.readNow();
      pools.push(upstream.capacity().prefillPool);
      assert.equal(upstream.health().isUp, true);
    }
    assert.deepEqual(pools, [1017, 8185, null, null, null, 2041]);
    assert.deepEqual(kinds(notices), ['pool-shrank', 'pool-grew', 'capacity-unknown']);
  });

  test('that is started again with another version, and one that returns another model', async () => {
    const { engine, upstream, notices } = await single();
    engine.set({ version: '0.5.23', startup_time: 9 });
    await upstream.readNow();
    assert.equal(upstream.health().isUp, true);
    engine.set({ served_model_name: 'another' });
    await upstream.readNow();
    const health = upstream.health();
    assert.ok(!health.isUp && health.reason === 'changed');
    assert.equal(upstream.capacity().prefillPool, null, 'its numbers are another model’s');
    assert.deepEqual(upstream.describe().models, ['glm']);
    engine.set({ served_model_name: 'glm' });
    await upstream.readNow();
    assert.equal(upstream.health().isUp, true);
    assert.deepEqual(kinds(notices), ['version-changed', 'model-changed', 'model-changed']);
  });

  test('that becomes one half of a pair serves nothing by itself', async () => {
    const { engine, upstream, notices } = await single();
    engine.set({ disaggregation_mode: 'decode', internal_states: [{ memory_usage: { token_capacity: 4096 } }] });
    await upstream.readNow();
    const health = upstream.health();
    assert.ok(!health.isUp && health.reason === 'changed' && health.words.endsWith('its role is decode'));
    assert.deepEqual(kinds(notices), ['role-switched']);
  });

  test('that answers nonsense is unreachable at once, and comes back when it makes sense', async () => {
    const { engine, upstream, notices } = await single();
    const { info } = engine;
    for (const nonsense of ['{', '[]', '{"version":1}', '<html>']) {
      engine.info = nonsense;
      await upstream.readNow();
      const health = upstream.health();
      assert.ok(!health.isUp && health.reason === 'unreachable', nonsense);
    }
    engine.info = info;
    await upstream.readNow();
    assert.equal(upstream.health().isUp, true);
    assert.deepEqual(kinds(notices), ['unreachable', 'back']);
  });

  test('that never answers is unreachable, and without its name there is nothing to serve', async () => {
    const silent = { before: (engine: FakeSglang) => (engine.isSilent = true), node: { readMsMax: 60 } };
    await assert.rejects(single(silent), { code: 'usage' });
    const { upstream } = await single({ ...silent, options: { model: 'glm' } });
    const health = upstream.health();
    assert.ok(!health.isUp && health.reason === 'unreachable' && /60 ms/.test(health.words));
    assert.equal(upstream.capacity().prefillPool, null);
  });

  test('under its old names, without a context of its own, and with metrics as the second source', async () => {
    let said = '';
    const { engine, upstream } = await single({
      before: (each) => {
        each.set({ context_length: null, enable_metrics: true });
        said = JSON.stringify(each.info);
      },
      routes: {
        '/server_info': { status: 404 },
        '/get_server_info': (_, response) => void response.end(said),
        '/v1/models': { body: '{"object":"list","data":[{"id":"glm","owned_by":"sglang","max_model_len":6000}]}' },
        '/metrics': { body: 'sglang:max_total_num_tokens{dp_rank="0"} 3000\n' },
      },
    });
    const { context, prefillPool, nodes } = upstream.capacity();
    assert.deepEqual([context, prefillPool], [6000, 2993]);
    assert.equal(nodes[0]?.source, '/get_server_info, /metrics');
    await upstream.readNow();
    const paths = engine.asked.map(({ path }) => path);
    assert.equal(
      paths.filter((path) => path === '/server_info').length,
      1,
      'the name that answered is asked from then on',
    );
    assert.equal(paths.filter((path) => path === '/metrics').length, 1, 'what does not change is read once a start');
  });

  test('is read on the timer; after a jump of the clock its late answer is asked for again, and it stays in service', async () => {
    const engine = await new FakeSglang('single', { pool: 4096 }).listen();
    const clock = new ManualClock();
    const { node, options, notices } = nodeMaking(clock);
    const upstream = await SglangUpstream.open(node(engine.url), options());
    open.push(
      () => upstream.close(),
      () => engine.close(),
    );
    engine.setPool(1024);
    // The bound of the reading is over in the same jump.
    clock.advance(READ_EVERY_MS * 1000);
    assert.deepEqual([upstream.capacity().prefillPool, upstream.health()], [4089, { isUp: true }]);
    await until(new SystemClock(), 'the next reading waits', () => clock.waiting === 1);
    clock.advance(RETRY_EVERY_MS);
    await until(new SystemClock(), 'it was read', () => upstream.capacity().prefillPool === 1017);
    assert.deepEqual(kinds(notices), ['pool-shrank']);
  });

  test('whose connection fails in a request is looked at at once', async () => {
    const { engine, upstream } = await single();
    engine.play = (leg) => void leg.response.destroy();
    engine.setPool(512);
    const request: UpstreamRequest = {
      id: 'a'.repeat(32),
      traceparent: '',
      prompt: { kind: 'text', text: 'x' },
      maxTokens: 1,
      temperature: 0,
      seed: 0,
      tenant: 1,
      salt: 'cd',
      engineFields: { bootstrap_room: '5', cache_salt: 'theirs' },
    };
    await new Promise<void>((resolve) => {
      upstream.start(request, { started() {}, text() {}, piece() {}, end() {}, released: resolve });
    });
    await until(new SystemClock(), 'it was read', () => upstream.capacity().prefillPool === 505);
    const { body } = engine.legs[0]!;
    assert.deepEqual([body.bootstrap_room, body.cache_salt, body.rid], [undefined, 'cd', request.id]);
  });
});
