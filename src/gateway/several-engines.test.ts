/**
 * Goal: several engines behind one port: each request goes to one that may have it, once, and what one engine suffers costs the
 * requests of no other. Method: engines that are played by hand; real HTTP, two tenants.
 */
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { CodedError } from '../base/errors.js';
import { makeMarker } from '../markers/marker.js';
import type { Upstream } from '../upstream/upstream.js';
import { type Played, playedEngine, type PlayedOptions } from '../../test/support/fleet.js';
import {
  GLOBEX_KEY,
  type Harness,
  type HarnessOptions,
  idle,
  startHarness,
  until,
} from '../../test/support/gateway-harness.js';

const TEXT = '/v1/completions';
const GLOBEXES = makeMarker(Buffer.from('a secret of these tests alone'), 'globex', 'test', 0);

let open: Harness[] = [];
async function start(upstreams: readonly Upstream[], options: HarnessOptions = {}): Promise<Harness> {
  const harness = await startHarness({ upstreams, ...options });
  open.push(harness);
  return harness;
}
afterEach(async () => {
  await Promise.all(open.map((harness) => harness.close()));
  open = [];
});

const fleet = (...options: PlayedOptions[]): Played[] => options.map((each) => playedEngine(each));
const body = (prompt: string, extra: Record<string, unknown> = {}): Record<string, unknown> => ({
  model: 'lab',
  prompt,
  max_tokens: 4,
  ...extra,
});
const sent = (engines: readonly Played[]): number[] => engines.map(({ requests }) => requests.length);
const total = (engines: readonly Played[]): number => sent(engines).reduce((sum, each) => sum + each, 0);
const prompt = { isPrompt: true };
const DOWN = { isUp: false, reason: 'unreachable', words: 'no node answers' } as const;

describe('of several engines', () => {
  test('those that serve the model get its requests, and an unknown model is refused', async () => {
    const engines = fleet(
      { ...prompt, models: ['lab'] },
      { ...prompt, models: ['other', 'both'] },
      { ...prompt, models: ['both'] },
    );
    const harness = await start(engines);
    for (let i = 0; i < 5; i++) assert.equal((await harness.post(TEXT, body(`p${i}`, { model: 'other' }))).status, 200);
    assert.deepEqual(sent(engines), [0, 5, 0]);
    assert.equal((await harness.post(TEXT, body('p'))).status, 200);
    assert.deepEqual(sent(engines), [1, 5, 0]);
    assert.equal((await harness.post(TEXT, body('p', { model: 'none' }))).status, 400);
    for (let i = 0; i < 20; i++) await harness.post(TEXT, body(`p${i}`, { model: 'both' }));
    assert.ok(engines[1]!.requests.length > 5 && engines[2]!.requests.length > 0, sent(engines).join());
  });

  test('a prompt goes to one that admits it; one too long for all is told the largest limit and what set it', async () => {
    const engines = fleet(
      { ...prompt, capacity: { prefillPool: 100 } },
      { ...prompt, capacity: { prefillPool: 500, decodePool: 300 } },
    );
    const harness = await start(engines);
    for (let i = 0; i < 4; i++) assert.equal((await harness.post(TEXT, body(`${i}`.repeat(200)))).status, 200);
    assert.deepEqual(sent(engines), [0, 4]);
    const refused = await harness.post(TEXT, body('x'.repeat(301)));
    assert.equal(refused.status, 400);
    assert.match(await refused.text(), /at most 300 tokens \(set by the decode pool\), got 301 tokens/);
    assert.equal(total(engines), 4);
  });

  test('one whose capacity is unknown gets nothing, and where all are unknown that is what is said', async () => {
    const engines = fleet({ ...prompt, capacity: { decodePool: null } }, prompt);
    const harness = await start(engines);
    for (let i = 0; i < 8; i++) assert.equal((await harness.post(TEXT, body(`p${i}`))).status, 200);
    assert.deepEqual(sent(engines), [0, 8]);
    engines[1]!.said.capacity = { context: null };
    const refused = await harness.post(TEXT, body('p'));
    assert.equal(refused.status, 503);
    assert.match(await refused.text(), /"code":"capacity_unknown"/);
  });

  test('a tenant’s prefix stays with one, and other prefixes spread over all', async () => {
    const engines = fleet(prompt, prompt, prompt);
    const harness = await start(engines);
    const prefix = 'p'.repeat(1024);
    for (let i = 0; i < 6; i++) await harness.post(TEXT, body(`${prefix} question ${i}`));
    assert.deepEqual(
      sent(engines).sort((a, b) => a - b),
      [0, 0, 6],
    );
    for (let i = 0; i < 40; i++) await harness.post(TEXT, body(`another ${i}`));
    assert.ok(
      sent(engines).every((count) => count > 3),
      sent(engines).join(),
    );
  });

  test('a burst over one prefix does not queue at its home while another has room', async () => {
    const engines = fleet({ runningMax: 2 }, { runningMax: 2 });
    const harness = await start(engines);
    const answers = Array.from({ length: 3 }, () => harness.post(TEXT, body('one prefix'), { key: GLOBEX_KEY }));
    // Of two permits a tenant has one at most, since there are others: the second request goes elsewhere, the third waits.
    await until(
      harness.clock,
      'both have one',
      () => sent(engines).join() === '1,1' && harness.gateway.room.waiting === 1,
    );
    for (const each of engines) each.finish();
    await until(harness.clock, 'the third is sent', () => total(engines) === 3);
    for (const each of engines) if (each.open.length > 0) each.finish();
    for (const answer of answers) assert.equal((await answer).status, 200);
    assert.equal(total(engines), 3);
  });

  test('an engine may count otherwise than another: each is verified by its own count', async () => {
    const [plain, other] = fleet({ ...prompt, models: ['lab'] }, { ...prompt, models: ['lab'] });
    const count = other!.count.bind(other);
    // Its template has ten tokens more.
    other!.count = (asked) => ({ kind: 'exact', tokens: (count(asked) as { tokens: number }).tokens + 10 });
    const harness = await start([plain!, other!]);
    for (let i = 0; i < 12; i++) assert.equal((await harness.post(TEXT, body(`p${i}`))).status, 200);
    assert.ok(sent([plain!, other!]).every((each) => each > 0));
    assert.deepEqual(harness.findings, []);
  });

  test('engines that name what they count with are counted for once, and others each', async () => {
    for (const [counting, counted] of [
      ['the same', 1],
      [undefined, 3],
    ] as const) {
      let counts = 0;
      const engines = fleet(prompt, prompt, prompt);
      for (const each of engines) {
        const count = each.count.bind(each);
        const say = each.describe.bind(each);
        each.count = (asked) => {
          counts++;
          return count(asked);
        };
        each.describe = () => ({ ...say(), ...(counting === undefined ? {} : { counting }) });
      }
      const harness = await start(engines);
      assert.equal((await harness.post(TEXT, body('p'))).status, 200);
      // The engine that is played counts once more to say its usage.
      assert.equal(counts, counted + 1);
    }
  });

  test('one that can’t count a prompt does not keep another from serving it', async () => {
    const engines = fleet(prompt, prompt);
    engines[0]!.count = () => {
      throw new CodedError('engine_unavailable', 'It can’t be counted.');
    };
    const harness = await start(engines);
    for (let i = 0; i < 6; i++) assert.equal((await harness.post(TEXT, body(`p${i}`))).status, 200);
    assert.deepEqual(sent(engines), [0, 6]);
    engines[1]!.said.health = DOWN;
    const refused = await harness.post(TEXT, body('p'));
    assert.equal(refused.status, 503);
    assert.match(await refused.text(), /can’t be counted/);
  });
});

describe('an engine that is out of service', () => {
  test('gets nothing while another serves; with all out it is 503, on /health too', async () => {
    const engines = fleet(prompt, prompt);
    const harness = await start(engines);
    const health = async (): Promise<number> => (await fetch(`${harness.url}/health`)).status;
    engines[0]!.said.health = DOWN;
    for (let i = 0; i < 8; i++) assert.equal((await harness.post(TEXT, body(`p${i}`))).status, 200);
    assert.deepEqual([...sent(engines), await health()], [0, 8, 200]);
    engines[1]!.said.health = { ...DOWN, reason: 'stalled' };
    const refused = await harness.post(TEXT, body('p'));
    assert.deepEqual([refused.status, refused.headers.get('retry-after'), await health()], [503, '1', 503]);
    assert.match(await refused.text(), /"code":"engine_unavailable"/);
    engines[0]!.said.health = { isUp: true };
    assert.equal((await harness.post(TEXT, body('p'))).status, 200);
    assert.deepEqual([...sent(engines), await health()], [1, 8, 200]);
  });

  test('ends its own requests when it is proved wrong, and those of no other', async () => {
    const engines = fleet({}, {});
    const harness = await start(engines, { markers: [GLOBEXES], sentinels: true });
    const answers = Array.from({ length: 12 }, (_, i) => harness.post(TEXT, body(`p${i}`, { max_tokens: 60 })));
    await until(harness.clock, 'all run', () => total(engines) === 12);
    const [bad, good] = engines as [Played, Played];
    const kept = good.open.length;
    assert.ok(kept > 0 && bad.open.length > 0);
    const { sink } = bad.open[0]!;
    sink.text(GLOBEXES.text, 40);
    await until(harness.clock, 'it is out', () => !harness.gateway.engines[0]!.isServing);
    assert.equal(bad.aborts, 12 - kept);
    assert.ok(harness.gateway.engines[1]!.isServing);
    assert.deepEqual(
      harness.findings.map(({ where }) => where.node),
      ['engine-1', 'engine-1'],
    );
    for (const { sink: each } of bad.open.splice(0)) {
      each.end({ kind: 'aborted', usage: null });
      each.released();
    }
    while (good.open.length > 0) good.finish();
    const statuses = await Promise.all(answers.map(async (answer) => (await answer).status));
    assert.equal(statuses.filter((status) => status === 200).length, kept);
    assert.equal(total(engines), 12, 'nothing is sent twice');
    const text = await harness.gateway.metrics.registry.metrics();
    assert.match(text, /cofferdam_in_rotation\{engine="engine-1"\} 0\n/);
    assert.match(text, /cofferdam_in_rotation\{engine="engine-2"\} 1\n/);
  });

  for (const how of ['proved wrong', 'unreachable'] as const) {
    test(`hands on what waits for it when it is ${how}: it has not left yet`, async () => {
      const engines = fleet({ runningMax: 1 }, { runningMax: 1 });
      const harness = await start(engines, { markers: [GLOBEXES] });
      const [bad, good] = engines as [Played, Played];
      const answers = Array.from({ length: 6 }, (_, i) => harness.post(TEXT, body(`p${i}`, { max_tokens: 60 })));
      await until(harness.clock, 'all are there', () => total(engines) === 2 && harness.gateway.room.waiting === 4);
      const [first] = harness.gateway.engines;
      assert.ok(first!.room.waiting > 0, 'some wait for it');
      if (how === 'unreachable') bad.said.health = DOWN;
      else bad.open[0]!.sink.text(GLOBEXES.text, 40);
      await until(harness.clock, 'nobody waits for it', () => first!.room.waiting === 0);
      assert.equal(harness.gateway.room.waiting, 4, 'they wait for the other');
      const { sink } = bad.open.shift()!;
      sink.end({ kind: 'aborted', usage: null });
      sink.released();
      for (let served = 0; served < 5; served++) {
        await until(harness.clock, 'the next one runs', () => good.open.length === 1);
        good.finish();
      }
      const statuses = await Promise.all(answers.map(async (answer) => (await answer).status));
      assert.equal(statuses.filter((status) => status === 200).length, 5);
      assert.deepEqual(sent(engines), [1, 5]);
      await until(harness.clock, 'all back', () => idle(harness));
    });
  }

  test('with no other to go to, what waits is refused', async () => {
    const engines = fleet({ runningMax: 1 });
    const harness = await start(engines);
    const answers = [harness.post(TEXT, body('a')), harness.post(TEXT, body('b'))];
    await until(harness.clock, 'one waits', () => harness.gateway.room.waiting === 1);
    engines[0]!.said.health = DOWN;
    await until(harness.clock, 'none waits', () => harness.gateway.room.waiting === 0);
    engines[0]!.finish();
    const statuses = await Promise.all(answers.map(async (answer) => (await answer).status));
    assert.deepEqual(
      statuses.sort((a, b) => a - b),
      [200, 503],
    );
    assert.equal(engines[0]!.requests.length, 1);
  });
});

describe('over all engines together', () => {
  test('a tenant’s bound of open requests holds, and its account comes back to zero', async () => {
    const engines = fleet({}, {});
    const harness = await start(engines, { tenantOpenMax: 6 });
    let refused = 0;
    const answers = Array.from({ length: 9 }, async (_, i) => {
      const { status } = await harness.post(TEXT, body(`p${i}`));
      if (status === 429) refused++;
      return status;
    });
    await until(harness.clock, 'six run and three are refused', () => total(engines) === 6 && refused === 3);
    assert.ok(
      sent(engines).every((each) => each > 0),
      'on both engines',
    );
    const [acme] = harness.gateway.accounts;
    assert.deepEqual([acme!.running, acme!.leasedTokens], [6, 6 * 16]);
    for (const each of engines) while (each.open.length > 0) each.finish();
    const statuses = await Promise.all(answers);
    assert.deepEqual(
      statuses.sort((a, b) => a - b),
      [200, 200, 200, 200, 200, 200, 429, 429, 429],
    );
    await until(harness.clock, 'all back', () => idle(harness));
  });

  test('/v1/models says of each model what every engine in service takes', async () => {
    const engines = fleet(
      { capacity: { prefillPool: 700 }, models: ['lab', 'large'] },
      { capacity: { prefillPool: 500 }, models: ['lab'] },
      { capacity: { prefillPool: null }, models: ['lab', 'unknown'] },
    );
    const harness = await start(engines);
    const limits = async (): Promise<Record<string, number | null>> => {
      const response = await fetch(`${harness.url}/v1/models`, { headers: { authorization: `Bearer ${GLOBEX_KEY}` } });
      const { data } = (await response.json()) as { data: { id: string; max_model_len: number | null }[] };
      return Object.fromEntries(data.map((row) => [row.id, row.max_model_len]));
    };
    assert.deepEqual(await limits(), { lab: 500, large: 700, unknown: null });
    engines[1]!.said.health = DOWN;
    assert.deepEqual(await limits(), { lab: 700, large: 700, unknown: null });
    engines[0]!.said.health = DOWN;
    assert.deepEqual(await limits(), { lab: null, large: 700, unknown: null });
  });

  test('metrics have a row for every node of every engine', async () => {
    const node = { role: 'single', advertised: 4096, acceptLimit: null, source: 'test', atMs: 0 } as const;
    const engines = fleet(
      { capacity: { nodes: [{ ...node, node: 'n1', pool: 100 }] } },
      {
        capacity: {
          nodes: [
            { ...node, node: 'n1', pool: 200 },
            { ...node, node: 'n2', pool: null },
          ],
        },
      },
    );
    const harness = await start(engines, { engineNames: ['left', 'right'] });
    const text = await harness.gateway.metrics.registry.metrics();
    for (const line of [
      'cofferdam_node_pool_tokens{engine="left",node="n1",role="single"} 100',
      'cofferdam_node_pool_tokens{engine="right",node="n1",role="single"} 200',
      'cofferdam_node_pool_tokens{engine="right",node="n2",role="single"} Nan',
      'cofferdam_effective_limit_tokens{engine="right"} 4095',
    ]) {
      assert.ok(text.includes(`${line}\n`), line);
    }
  });

  test('two engines of one name, or none at all, are refused at the start', async () => {
    const isUsage = (thrown: unknown): boolean => thrown instanceof CodedError && thrown.code === 'usage';
    await assert.rejects(startHarness({ upstreams: [] }), isUsage);
    await assert.rejects(startHarness({ upstreams: fleet({}, {}), engineNames: ['a', 'a'] }), isUsage);
  });
});
