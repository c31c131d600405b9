/** Goal: the page and its numbers over HTTP, for its own origin and its key only. Method: a gateway at work, real HTTP. */
import assert from 'node:assert/strict';
import { get, type IncomingHttpHeaders } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { sleep } from '../base/clock.js';
import type { DashboardState } from '../dashboard/state.js';
import { FindingLog } from '../findings/finding-log.js';
import { STATE_EVERY_MS } from '../gateway/bounds.js';
import { capacityFindings } from '../gateway/findings.js';
import { type OperatorsPage, OperatorsServer } from '../gateway/operators.js';
import { keyDigest } from '../gateway/tenants.js';
import { ALL_GUARDS, guardBit } from '../handoff/guards.js';
import { GLOBEX_KEY, type Harness, startHarness, until } from '../../test/support/gateway-harness.js';
import { operatorsPage } from './operators-page.js';

const OPS_KEY = 'ops:secret-with-a-colon';

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** Not `fetch`, which adds headers of its own. */
function ask(url: string, headers: Record<string, string> = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = get(url, { headers, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => (text += piece));
      response.on('end', () => resolve({ status: response.statusCode!, headers: response.headers, text }));
    });
    request.on('error', reject);
  });
}

const basic = (user: string, password: string): Record<string, string> => ({
  authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
});

describe('the operators’ page over HTTP', () => {
  let harness: Harness;
  let findings: FindingLog;
  let page: OperatorsPage;
  let readings = 0;
  let open: OperatorsServer;
  let keyed: OperatorsServer;
  let url: string;
  let keyedUrl: string;

  before(async () => {
    harness = await startHarness({ engine: { context: 100, prefillPool: 64, decodePool: 128 } });
    findings = new FindingLog(harness.clock);
    for (const finding of capacityFindings(harness.upstream.capacity())) findings.record(finding);
    const made = operatorsPage({
      gateway: harness.gateway,
      findings,
      clock: harness.clock,
      guards: ALL_GUARDS & ~guardBit('salt'),
      faults: ['room-collision'],
      stats: () => harness.engine.stats(),
    });
    page = {
      ...made,
      state: () => {
        readings++;
        return made.state();
      },
    };
    const common = {
      engines: harness.gateway.engines,
      metrics: harness.gateway.metrics,
      findings: () => findings.list(),
      page,
      clock: harness.clock,
      at: { host: '127.0.0.1', port: 0 },
    };
    open = new OperatorsServer(common);
    keyed = new OperatorsServer({ ...common, opsKeySha256: keyDigest(OPS_KEY) });
    url = (await open.listen()).url;
    keyedUrl = (await keyed.listen()).url;
  });
  after(async () => {
    await open.close();
    await keyed.close();
    await harness.close();
  });

  /** A reading that no earlier one is shared with. */
  const state = async (): Promise<DashboardState> => JSON.parse(await page.state()) as DashboardState;

  test('`/` is the page with its policy; `/state` is its numbers as JSON', async () => {
    const answer = await ask(url);
    assert.equal(answer.status, 200);
    assert.equal(answer.headers['content-type'], 'text/html; charset=utf-8');
    assert.match(answer.headers['content-security-policy'] as string, /^default-src 'none'; script-src 'sha256-/);
    assert.equal(answer.headers['x-content-type-options'], 'nosniff');
    assert.equal(answer.headers['cache-control'], 'no-store');
    assert.equal(answer.headers['cross-origin-resource-policy'], 'same-origin');
    assert.equal(answer.text, page.html);
    const numbers = await ask(`${url}/state`);
    assert.equal(numbers.headers['content-type'], 'application/json');
    assert.deepEqual((JSON.parse(numbers.text) as DashboardState).capacity.limit, {
      tokens: 64,
      limitedBy: 'prefill pool',
    });
  });

  test('its numbers are those of /metrics, and its findings those of /findings', async () => {
    const post = (body: unknown): Promise<Response> => harness.post('/v1/completions', body);
    await post({ model: 'lab', prompt: 'abc' });
    await post({ model: 'lab', prompt: 'x'.repeat(80) });
    await post({ model: 'lab', prompt: 'abc', rid: 'x' });
    harness.engine.hold = 'decode';
    const held = harness.post('/v1/completions', { model: 'lab', prompt: 'abc', max_tokens: 20 }, { key: GLOBEX_KEY });
    await until(harness.clock, 'it runs', () => harness.gateway.room.running === 1);
    const text = (await ask(`${url}/metrics`)).text;
    const metric = (name: string): number => {
      const line = text.split('\n').find((each) => each.startsWith(`${name} `));
      assert.ok(line !== undefined, name);
      return Number(line.slice(name.length + 1));
    };
    const now = await state();
    assert.equal(now.requests.admitted, metric('cofferdam_admissions_total'));
    assert.equal(now.requests.clamped, metric('cofferdam_clamped_total'));
    assert.deepEqual(
      now.refusals.map(({ reason }) => reason),
      ['context_length_exceeded', 'field_not_allowed'],
    );
    for (const { reason, count } of now.refusals)
      assert.equal(count, metric(`cofferdam_refusals_total{reason="${reason}"}`));
    assert.equal(now.requests.refused, 2);
    for (const { guard, stopped } of now.guards)
      assert.equal(stopped, metric(`cofferdam_guard_hits_total{guard="${guard}"}`));
    for (const row of now.tenants.rows) {
      assert.equal(row.running, metric(`cofferdam_tenant_requests{tenant="${row.name}",state="running"}`));
      assert.equal(row.leased, metric(`cofferdam_tenant_tokens{tenant="${row.name}",state="leased"}`));
      assert.equal(row.draining, metric(`cofferdam_tenant_tokens{tenant="${row.name}",state="draining"}`));
    }
    assert.ok(now.tenants.rows[1]!.leased > 0);
    for (const pool of now.pools) {
      for (const kind of ['free', 'leased', 'draining', 'sealed'] as const) {
        assert.equal(pool[kind], metric(`cofferdam_pages{role="${pool.role}",state="${kind}"}`));
      }
    }
    assert.equal(now.capacity.context, metric('cofferdam_advertised_context_tokens{engine="engine-1"}'));
    assert.equal(now.capacity.prefillPool, metric('cofferdam_prefill_pool_tokens{engine="engine-1"}'));
    assert.equal(now.capacity.decodePool, metric('cofferdam_decode_pool_tokens{engine="engine-1"}'));
    assert.equal(now.capacity.limit?.tokens, metric('cofferdam_effective_limit_tokens{engine="engine-1"}'));
    assert.equal(now.checks?.pagesVerified, metric('cofferdam_pages_verified_total'));
    assert.equal(now.latency.ttft.count, metric('cofferdam_ttft_seconds_count'));
    assert.equal(now.latency.total.count, metric('cofferdam_request_seconds_count'));
    assert.ok(now.latency.total.p50! >= 0 && now.latency.total.p99! >= now.latency.total.p50!);
    const listed = JSON.parse((await ask(`${url}/findings`)).text) as { id: string }[];
    assert.deepEqual(
      now.findings.rows.map(({ id }) => id),
      listed.map(({ id }) => id),
    );
    harness.engine.hold = 'nothing';
    harness.engine.wake();
    await held;
  });

  test('says which guards are off and which faults are on', async () => {
    const now = await state();
    assert.deepEqual(now.guardsOff, ['salt']);
    assert.deepEqual(now.faults, ['room-collision']);
    assert.deepEqual(
      now.guards.filter(({ on }) => !on).map(({ guard }) => guard),
      ['salt'],
    );
  });

  test('holds no key and no prompt', async () => {
    await harness.post('/v1/completions', { model: 'lab', prompt: 'a word that nobody else says' });
    assert.doesNotMatch(await page.state(), /nobody else|key-0123|sha256|[0-9a-f]{32}/);
  });

  test('a hundred who ask at once cost one reading, and nothing is held for them', async () => {
    await sleep(harness.clock, STATE_EVERY_MS);
    const earlier = readings;
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask(`${url}/state`)));
    assert.equal(readings, earlier + 1);
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1);
    await sleep(harness.clock, STATE_EVERY_MS);
    await ask(`${url}/state`);
    assert.equal(readings, earlier + 2);
  });

  test('a page of another origin is refused on every route, in words; its own origin and links are not', async () => {
    const own = new URL(url).host;
    for (const path of ['/', '/state', '/metrics', '/findings', '/healthz']) {
      for (const origin of ['https://evil.example', 'null', `http://${own}.evil.example`, 'http://127.0.0.1:1', '']) {
        const answer = await ask(url + path, { origin });
        assert.equal(answer.status, 403, `${path} ${origin}`);
        assert.match(answer.text, /"code":"origin_not_allowed"/);
        assert.match(answer.text, /another origin.*own address/);
        assert.doesNotMatch(answer.text, /evil/);
        assert.equal(answer.headers['access-control-allow-origin'], undefined);
      }
      for (const site of ['cross-site', 'same-site', 'anything']) {
        assert.equal((await ask(url + path, { 'sec-fetch-site': site, 'sec-fetch-mode': 'no-cors' })).status, 403);
        const frame = { 'sec-fetch-site': site, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' };
        assert.equal((await ask(url + path, frame)).status, 403);
      }
    }
    assert.equal((await ask(`${url}/state`, { origin: `http://${own}`, 'sec-fetch-site': 'same-origin' })).status, 200);
    assert.equal((await ask(`${url}/state`, { origin: `https://${own}` })).status, 200);
    const link = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
    assert.equal((await ask(url, link)).status, 200);
  });

  test('another name in `Host` is refused, also when the origin is the same', async () => {
    for (const path of ['/', '/state']) {
      const answer = await ask(url + path, { host: 'evil.example', origin: 'http://evil.example' });
      assert.equal(answer.status, 421);
      assert.match(answer.text, /host_not_allowed/);
    }
  });

  test('the key opens the page and its numbers as a bearer or as the password of any user, and nothing else does', async () => {
    for (const path of ['/', '/state', '/metrics', '/findings']) {
      const none = await ask(keyedUrl + path);
      assert.equal(none.status, 401);
      assert.equal(none.headers['www-authenticate'], 'Basic realm="Cofferdam operators", charset="UTF-8", Bearer');
      assert.match(none.text, /password of `Authorization: Basic`/);
      assert.equal((await ask(keyedUrl + path, { authorization: `Bearer ${OPS_KEY}` })).status, 200);
      assert.equal((await ask(keyedUrl + path, basic('anyone', OPS_KEY))).status, 200);
      assert.equal((await ask(keyedUrl + path, basic('', OPS_KEY))).status, 200);
      assert.equal((await ask(keyedUrl + path, basic('anyone', `${OPS_KEY}x`))).status, 401);
      assert.equal((await ask(keyedUrl + path, basic(OPS_KEY, ''))).status, 401);
      assert.equal((await ask(keyedUrl + path, { authorization: 'Basic ****' })).status, 401);
      assert.equal((await ask(keyedUrl + path, { authorization: `Basic ${OPS_KEY}` })).status, 401);
    }
  });

  test('other methods are refused, and without a page there is none', async () => {
    assert.equal((await fetch(url, { method: 'POST' })).status, 405);
    const bare = new OperatorsServer({
      engines: harness.gateway.engines,
      metrics: harness.gateway.metrics,
      findings: () => [],
      clock: harness.clock,
      at: { host: '127.0.0.1', port: 0 },
    });
    const at = await bare.listen();
    assert.equal((await ask(at.url)).status, 404);
    assert.equal((await ask(`${at.url}/state`)).status, 404);
    await bare.close();
  });
});
