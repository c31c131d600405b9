/** Goal: operators see the numbers, the findings and a health that has been through the engine. Method: real HTTP. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CodedError } from '../base/errors.js';
import { GLOBEX_KEY, type Harness, startHarness, until } from '../../test/support/gateway-harness.js';
import { capacityFindings } from './findings.js';
import { OperatorsServer } from './operators.js';
import { keyDigest } from './tenants.js';

function operators(harness: Harness, extra: { host?: string; opsKey?: string } = {}): OperatorsServer {
  return new OperatorsServer({
    engines: harness.gateway.engines,
    metrics: harness.gateway.metrics,
    findings: () => harness.findings,
    clock: harness.clock,
    at: { host: extra.host ?? '127.0.0.1', port: 0 },
    ...(extra.opsKey === undefined ? {} : { opsKeySha256: keyDigest(extra.opsKey) }),
  });
}

describe('the operators’ port', () => {
  let harness: Harness;
  let ops: OperatorsServer;
  let url: string;
  before(async () => {
    harness = await startHarness({ engine: { context: 100, prefillPool: 64, decodePool: 128 } });
    ops = operators(harness);
    url = (await ops.listen()).url;
  });
  after(async () => {
    await ops.close();
    await harness.close();
  });

  const metric = async (name: string): Promise<string | undefined> => {
    const text = await (await fetch(`${url}/metrics`)).text();
    return text
      .split('\n')
      .find((line) => line.startsWith(`${name} `))
      ?.slice(name.length + 1);
  };

  test('gives the two numbers, the decode pool and the effective limit as gauges', async () => {
    assert.equal(await metric('cofferdam_advertised_context_tokens{engine="engine-1"}'), '100');
    assert.equal(await metric('cofferdam_prefill_pool_tokens{engine="engine-1"}'), '64');
    assert.equal(await metric('cofferdam_decode_pool_tokens{engine="engine-1"}'), '128');
    assert.equal(await metric('cofferdam_effective_limit_tokens{engine="engine-1"}'), '64');
  });

  test('counts admissions, refusals by reason, guard hits and latencies', async () => {
    const ask = (body: unknown): Promise<Response> => harness.post('/v1/completions', body);
    await ask({ model: 'lab', prompt: 'abc' });
    await ask({ model: 'lab', prompt: 'x'.repeat(80) });
    await ask({ model: 'lab', prompt: 'abc', rid: 'x' });
    await ask({ model: 'other', prompt: 'abc' });
    assert.equal(await metric('cofferdam_admissions_total'), '1');
    assert.equal(await metric('cofferdam_refusals_total{reason="context_length_exceeded"}'), '1');
    assert.equal(await metric('cofferdam_refusals_total{reason="field_not_allowed"}'), '1');
    assert.equal(await metric('cofferdam_refusals_total{reason="model_not_found"}'), '1');
    assert.equal(await metric('cofferdam_guard_hits_total{guard="admission"}'), '1');
    assert.equal(await metric('cofferdam_guard_hits_total{guard="policy"}'), '1');
    assert.equal(await metric('cofferdam_ttft_seconds_count'), '1');
    assert.equal(await metric('cofferdam_request_seconds_count'), '1');
    assert.equal(await metric('cofferdam_pages_verified_total'), '1');
  });

  test('shows what each tenant holds, leased and draining, and the pages', async () => {
    harness.engine.hold = 'decode';
    harness.engine.holdRelease = true;
    const answer = harness.post(
      '/v1/completions',
      { model: 'lab', prompt: 'abc', max_tokens: 20 },
      { key: GLOBEX_KEY },
    );
    await until(harness.clock, 'it runs', () => harness.gateway.room.running === 1);
    assert.equal(await metric('cofferdam_tenant_requests{tenant="globex",state="running"}'), '1');
    assert.equal(await metric('cofferdam_tenant_tokens{tenant="globex",state="leased"}'), '32');
    assert.equal(await metric('cofferdam_pages{role="decode",state="leased"}'), '2');
    harness.engine.hold = 'nothing';
    harness.engine.wake();
    await answer;
    assert.equal(await metric('cofferdam_tenant_tokens{tenant="globex",state="draining"}'), '32');
    assert.equal(await metric('cofferdam_pages{role="decode",state="draining"}'), '2');
    harness.engine.holdRelease = false;
    harness.engine.wake();
    await until(harness.clock, 'all back', () => harness.gateway.room.heldTokens === 0);
    assert.equal(await metric('cofferdam_tenant_tokens{tenant="globex",state="draining"}'), '0');
  });

  test('/healthz runs one token through the engine, once for all who ask within 5 s', async () => {
    const before = harness.engine.runs.length;
    const answers = await Promise.all(Array.from({ length: 10 }, () => fetch(`${url}/healthz`)));
    for (const answer of answers) assert.equal(answer.status, 200);
    assert.equal(((await answers[0]!.json()) as { status: string }).status, 'ok');
    await fetch(`${url}/healthz`);
    assert.equal(harness.engine.runs.length, before + 1);
    assert.equal(harness.engine.runs.at(-1)!.produced, 1);
  });

  test('/healthz says so when the engine fails', async () => {
    const fresh = operators(harness);
    const at = await fresh.listen();
    harness.engine.failWith = { guard: 'tag', message: 'no' };
    const answer = await fetch(`${at.url}/healthz`);
    assert.equal(answer.status, 503);
    assert.equal(((await answer.json()) as { status: string }).status, 'failing');
    await fresh.close();
  });

  test('/findings is a JSON array', async () => {
    for (const finding of capacityFindings(harness.upstream.capacity())) harness.findings.push(finding);
    const found = (await (await fetch(`${url}/findings`)).json()) as { id: string; severity: string; title: string }[];
    assert.deepEqual(
      found.map((each) => [each.id, each.severity]),
      [['small-prefill-pool', 'high']],
    );
    assert.match(found[0]!.title, /\b100\b.*\b64\b/);
  });

  test('checks Host, and knows no tenant’s route', async () => {
    assert.equal((await fetch(`${url}/v1/models`)).status, 404);
    const { rawClient } = await import('../../test/support/gateway-harness.js');
    const client = await rawClient(Number(new URL(url).port));
    client.socket.write('GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n');
    await client.closed;
    assert.match(client.received(), /^HTTP\/1\.1 421 /);
  });

  test('beyond loopback it is not built without a key', () => {
    assert.throws(
      () => operators(harness, { host: '0.0.0.0' }),
      (thrown) => thrown instanceof CodedError && thrown.code === 'usage' && thrown.message.includes('--ops-key'),
    );
  });

  test('with a key it answers to that key only', async () => {
    const keyed = operators(harness, { opsKey: 'ops-secret' });
    const at = await keyed.listen();
    assert.equal((await fetch(`${at.url}/findings`)).status, 401);
    const wrong = { authorization: 'Bearer other' };
    assert.equal((await fetch(`${at.url}/findings`, { headers: wrong })).status, 401);
    const right = { authorization: 'Bearer ops-secret' };
    assert.equal((await fetch(`${at.url}/findings`, { headers: right })).status, 200);
    await keyed.close();
  });

  test('a port in use is an error of usage with the port in it', async () => {
    const second = new OperatorsServer({
      engines: harness.gateway.engines,
      metrics: harness.gateway.metrics,
      findings: () => [],
      clock: harness.clock,
      at: { host: '127.0.0.1', port: Number(new URL(url).port) },
    });
    await assert.rejects(
      second.listen(),
      (thrown) => thrown instanceof CodedError && thrown.code === 'usage' && /in use/.test(thrown.message),
    );
  });
});
