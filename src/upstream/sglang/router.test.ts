/**
 * Goal: behind a router a prompt fits every worker that may get it, and what the router takes away is said at the start. Method: a
 * router that lists workers and answers for them, and workers that tell of themselves; real HTTP.
 */
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { answerWell, FakeSglang, type FakeLeg } from '../../../test/support/fake-pair.js';
import { type FakeNode, fakeNode } from '../../../test/support/fake-node.js';
import { nodeMaking } from '../../../test/support/sglang-double.js';
import { EndpointReader } from '../poll.js';
import type { UpstreamEnd, UpstreamRequest } from '../upstream.js';
import { detectSglang, readWorkers } from './detect.js';
import { SglangRouterUpstream, type SglangRouterOptions } from './router.js';

const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((close) => close()));
});

const ROUTER_INFO = '{"router_manager":true,"routers_count":1,"workers_count":2}';
const MODELS = '{"object":"list","data":[{"id":"glm","object":"model","owned_by":"local"}]}';

interface Fixture {
  readonly router: FakeNode;
  readonly making: ReturnType<typeof nodeMaking>;
  /** What the router lists from now on. */
  listed: { url: string; worker_type: string; bootstrap_port?: number }[];
  readonly posted: FakeLeg['body'][];
}

async function router(workers: readonly [FakeSglang, string][], key: string | null = null): Promise<Fixture> {
  for (const [worker] of workers) {
    await worker.listen();
    open.push(() => worker.close());
  }
  const posted: FakeLeg['body'][] = [];
  const fixture: Fixture = {
    making: nodeMaking(),
    listed: workers.map(([{ url }, type]) => ({ url, worker_type: type, bootstrap_port: 18998 })),
    posted,
    router: await fakeNode(
      {
        '/get_server_info': { body: ROUTER_INFO },
        '/v1/models': { body: MODELS },
        '/health': { body: 'OK' },
        '/workers': (_, response) =>
          void response.end(JSON.stringify({ workers: fixture.listed, total: fixture.listed.length })),
        '/v1/completions': (request, response) => {
          let text = '';
          request.on('data', (chunk: Buffer) => (text += chunk.toString()));
          request.on('end', () => {
            const body = JSON.parse(text) as Record<string, unknown>;
            posted.push(body);
            answerWell({ path: '', headers: {}, text, body, response, isGone: () => false }, 'decode');
          });
        },
      },
      key,
    ),
  };
  open.push(() => fixture.router.close());
  return fixture;
}

async function behind(fixture: Fixture, more: Partial<SglangRouterOptions> = {}): Promise<SglangRouterUpstream> {
  const upstream = await SglangRouterUpstream.open({
    ...fixture.making.options(),
    node: { url: new URL(fixture.router.url), key: null },
    workers: null,
    ...more,
  });
  open.push(() => upstream.close());
  return upstream;
}

const pair = (version = '0.5.18'): [FakeSglang, string][] => [
  [new FakeSglang('prefill', { pool: 2048, version }), 'prefill'],
  [new FakeSglang('decode', { pool: 8192, version }), 'decode'],
];
const single = (pool: number, more: object = {}): [FakeSglang, string] => [
  new FakeSglang('single', { pool, flags: { disable_radix_cache: true, ...more } }),
  'regular',
];

describe('a router in front', () => {
  test('of a pair: capacity is its workers’, and three things are said at the start', async () => {
    const fixture = await router(pair());
    const upstream = await behind(fixture);
    const { context, prefillPool, decodePool, nodes } = upstream.capacity();
    assert.deepEqual([context, prefillPool, decodePool], [8192, 2041, 8185]);
    assert.deepEqual(
      nodes.map(({ role }) => role),
      ['router', 'prefill', 'decode'],
    );
    assert.deepEqual([upstream.describe().models, upstream.health()], [['glm'], { isUp: true }]);
    assert.deepEqual(
      fixture.making.notices.map(({ kind, severity }) => `${severity} ${kind}`),
      ['high no-salt', 'high no-prefill-count', 'medium repeats-elsewhere'],
    );
  });

  test('of single servers without a radix cache: the least of them counts, and only its repeats are said', async () => {
    const fixture = await router([single(4096), single(1024)]);
    const upstream = await behind(fixture, { require: ['salt', 'prefill-count'] });
    assert.deepEqual([upstream.capacity().prefillPool, upstream.capacity().decodePool], [1017, 1017]);
    assert.deepEqual(
      fixture.making.notices.map(({ kind }) => kind),
      ['repeats-elsewhere'],
    );
  });

  test('with what it can’t do required, there is no start', async () => {
    for (const [requirement, workers] of [
      ['salt', [single(4096, { disable_radix_cache: false })]],
      ['prefill-count', pair('0.5.23')],
    ] as const) {
      const fixture = await router(workers);
      await assert.rejects(behind(fixture, { require: [requirement] }), (error: Error & { code: string }) => {
        assert.equal(error.code, 'usage');
        assert.ok(error.message.includes(`\`${requirement}\``), error.message);
        return true;
      });
    }
  });

  test('of workers that are not known: the worse is taken, nothing is admitted', async () => {
    const fixture = await router([]);
    fixture.listed = [{ url: 'http://127.0.0.1:1', worker_type: 'regular' }];
    await assert.rejects(behind(fixture, { require: ['salt'], model: 'glm' }), { code: 'usage' });
    await assert.rejects(behind(fixture), { code: 'usage' });
    const upstream = await behind(fixture, { model: 'glm' });
    assert.deepEqual([upstream.capacity().prefillPool, upstream.health().isUp], [null, false]);
  });

  test('a worker that comes with a smaller pool counts from the next reading, and gets no key of ours; one that goes is forgotten', async () => {
    const workers = [single(4096), single(1024)];
    const fixture = await router(workers, 'router-key');
    const [all] = [fixture.listed];
    fixture.listed = all.slice(0, 1);
    const upstream = await behind(fixture, { node: { url: new URL(fixture.router.url), key: 'router-key' } });
    const pools = [upstream.capacity().decodePool];
    for (const listed of [all, all.slice(0, 1), []]) {
      fixture.listed = listed;
      await upstream.readNow();
      pools.push(upstream.capacity().decodePool);
    }
    assert.deepEqual(pools, [4089, 1017, 4089, null]);
    assert.equal(upstream.health().isUp, false, 'a router without workers serves nothing');
    assert.ok(workers.every(([worker]) => worker.asked.every(({ authorization }) => authorization === null)));
  });

  test('workers that are configured are not asked of it; one that serves another model takes it out', async () => {
    const [[worker]] = [single(4096)];
    await worker.listen();
    open.push(() => worker.close());
    const fixture = await router([]);
    const upstream = await behind(fixture, { workers: [fixture.making.node(worker.url)] });
    assert.equal(upstream.capacity().prefillPool, 4089);
    assert.ok(fixture.router.asked.every(({ path }) => path === '/health'));
    worker.set({ served_model_name: 'other' });
    await upstream.readNow();
    const health = upstream.health();
    assert.ok(!health.isUp && health.reason === 'changed');
    await fixture.router.close();
    await upstream.readNow();
    const gone = upstream.health();
    assert.ok(!gone.isUp && gone.reason === 'unreachable');
  });

  test('a request goes to it without a room, and its answer is read as any other', async () => {
    const fixture = await router([single(4096)]);
    const upstream = await behind(fixture);
    const request: UpstreamRequest = {
      id: 'a'.repeat(32),
      traceparent: '',
      prompt: { kind: 'text', text: 'two words' },
      maxTokens: 1,
      temperature: 0,
      seed: 0,
      tenant: 1,
      salt: 'cd',
      engineFields: { bootstrap_room: '5' },
    };
    const end = await new Promise<UpstreamEnd>((resolve) => {
      upstream.start(request, { started() {}, text() {}, piece() {}, end: resolve, released() {} });
    });
    assert.ok(end.kind === 'finished' && end.usage.promptTokens === 2 && end.usage.prefillTokens === null);
    assert.deepEqual([fixture.posted[0]?.bootstrap_room, fixture.posted[0]?.cache_salt], [undefined, 'cd']);
    assert.equal(await upstream.selfTest(AbortSignal.timeout(2000)), null);
  });
});

describe('what stands at a URL', () => {
  const detect = async (url: string) => {
    const { clock } = nodeMaking();
    const reader = new EndpointReader({ clock, url: new URL(url), key: null });
    open.push(async () => reader.close());
    return detectSglang((path) => reader.get(path));
  };

  test('a prefill node, a router with its workers, or nothing of SGLang’s', async () => {
    const fixture = await router(pair());
    const prefill = await detect(fixture.listed[0]!.url);
    assert.deepEqual(
      [prefill?.kind, prefill?.role, prefill?.models, prefill?.version, prefill?.bootstrapPort],
      ['sglang', 'prefill', ['glm'], '0.5.18', 18998],
    );
    assert.deepEqual([prefill?.advertised, prefill?.promptMax, prefill?.pool], [8192, 2041, 2048]);
    const found = await detect(fixture.router.url);
    assert.deepEqual([found?.kind, found?.role, found?.models], ['sglang-router', 'router', ['glm']]);
    assert.deepEqual(
      found?.workers.map(({ role, url, bootstrapPort }) => [role, url.origin, bootstrapPort]),
      fixture.listed.map(({ worker_type, url }) => [worker_type, url, 18998]),
    );
    const other = await fakeNode({ '/v1/models': { body: MODELS } });
    open.push(() => other.close());
    assert.equal(await detect(other.url), null);
    assert.equal(await detect('http://127.0.0.1:1'), null);
  });

  test('a router’s list decides where is asked, and nothing else of it is taken', () => {
    const listed = [
      { url: 'http://user:word@w:1/base?x=1#y', worker_type: 'prefill', bootstrap_port: 70000 },
      { url: 'file:///etc/passwd', worker_type: 'decode' },
      { url: 7 },
      null,
      { url: 'https://w:2', worker_type: 'other' },
    ];
    assert.deepEqual(
      readWorkers({ workers: listed })?.map(({ url, role, bootstrapPort }) => [url.href, role, bootstrapPort]),
      [
        ['http://w:1/base', 'prefill', null],
        ['https://w:2/', 'unknown', null],
      ],
    );
    assert.equal(readWorkers({ workers: 'x' }), null);
  });
});
