/** Goal: what changes while requests are open reaches the next one and no earlier one; an end lets them go on. Method: a gateway on HTTP. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Harness, idle, startHarness, until } from '../../test/support/gateway-harness.js';
import { keyDigest } from './tenants.js';

const BOUNDS = { bodyBytesMax: 8192, tenantOpenMax: 4, waitingMax: 100, waitMsMax: 60_000 };
const acme = { name: 'acme', keys: [{ sha256: keyDigest('new-acme-key') }] };
const fresh = { name: 'fresh', keys: [{ sha256: keyDigest('fresh-key') }] };
const BODY = { model: 'lab', prompt: 'hello', max_tokens: 4 };

async function ended(response: Promise<Response>): Promise<number> {
  const { status, body } = await response;
  await body?.cancel();
  return status;
}

describe('another configuration while requests are open', () => {
  let harness: Harness;
  before(async () => {
    harness = await startHarness({ tenantOpenMax: 2 });
  });
  after(() => harness.close());

  test('the keys hold from the next request on, open ones of a tenant that is gone are finished and shown, then not', async () => {
    const { engine, gateway, clock } = harness;
    const model = harness.upstream.describe().models[0];
    const body = { ...BODY, model };
    engine.hold = 'decode';
    const open = harness.post('/v1/completions', body);
    await until(clock, 'one running', () => gateway.room.running === 1);
    gateway.reconfigure([fresh], BOUNDS);
    assert.deepEqual(
      gateway.accounts.map(({ tenant, running }) => [tenant.name, running]),
      [
        ['acme', 1],
        ['fresh', 0],
      ],
    );
    assert.equal(await ended(harness.post('/v1/completions', body)), 401);
    engine.hold = 'nothing';
    engine.wake();
    assert.equal(await ended(open), 200);
    assert.equal(await ended(harness.post('/v1/completions', body, { key: 'fresh-key' })), 200);
    await until(clock, 'nothing open', () => idle(harness));
    assert.deepEqual(
      gateway.accounts.map(({ tenant }) => tenant.name),
      ['fresh'],
    );
    const metrics = await gateway.metrics.registry.metrics();
    assert.ok(metrics.includes('tenant="fresh"') && !metrics.includes('tenant="acme"'));
  });

  test('bounds hold from the next request on, up and down', async () => {
    const { engine, gateway, clock } = harness;
    const body = { ...BODY, model: harness.upstream.describe().models[0] };
    gateway.reconfigure([acme], { ...BOUNDS, tenantOpenMax: 200 });
    engine.hold = 'decode';
    const open = Array.from({ length: 150 }, () => harness.post('/v1/completions', body, { key: 'new-acme-key' }));
    await until(
      clock,
      '150 open',
      () => gateway.room.running + gateway.room.waiting >= 150 || gateway.room.waiting >= 100,
    );
    gateway.reconfigure([acme], { ...BOUNDS, tenantOpenMax: 1, bodyBytesMax: 16 });
    assert.equal(await ended(harness.post('/v1/completions', body, { key: 'new-acme-key' })), 413);
    gateway.reconfigure([acme], { ...BOUNDS, tenantOpenMax: 1 });
    assert.equal(await ended(harness.post('/v1/completions', body, { key: 'new-acme-key' })), 429);
    engine.hold = 'nothing';
    engine.wake();
    const statuses = new Set(await Promise.all(open.map(ended)));
    assert.ok(statuses.has(200) && !statuses.has(500), [...statuses].join());
    await until(clock, 'nothing open', () => idle(harness));
  });

  test('a configuration that is wrong changes nothing', async () => {
    assert.throws(() => harness.gateway.reconfigure([], { ...BOUNDS, bodyBytesMax: 1 }));
    const body = { ...BODY, model: harness.upstream.describe().models[0] };
    assert.equal(await ended(harness.post('/v1/completions', body, { key: 'new-acme-key' })), 200);
  });
});

test('a drain refuses what comes, waits for what is open, and is over when nothing is', async () => {
  const harness = await startHarness();
  const { engine, gateway, clock } = harness;
  const body = { ...BODY, model: harness.upstream.describe().models[0] };
  engine.hold = 'decode';
  const open = harness.post('/v1/completions', body);
  await until(clock, 'one running', () => gateway.room.running === 1);
  let over = false;
  const drained = gateway.drain(60_000).then(() => {
    over = true;
  });
  const refused = await harness.post('/v1/completions', body);
  assert.deepEqual([refused.status, refused.headers.get('connection')], [503, 'close']);
  await refused.body?.cancel();
  assert.deepEqual([over, gateway.draining], [false, true]);
  engine.hold = 'nothing';
  engine.wake();
  assert.equal(await ended(open), 200);
  await drained;
  await harness.close();
});
