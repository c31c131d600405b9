/**
 * Goal: a tenant's limits bind it and nobody else, come before anything shared, and are given back. Method: the meter under a clock
 * that is moved by hand; then real HTTP over an engine that is played.
 */
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { CodedError } from '../base/errors.js';
import { type Played, playedEngine } from '../../test/support/fleet.js';
import { ACME_KEY, GLOBEX_KEY, type Harness, idle, startHarness, until } from '../../test/support/gateway-harness.js';
import { openAccount, type TenantAccount } from './account.js';
import type { TenantLimits } from './tenant-limits.js';
import { TenantMeter } from './tenant-meter.js';
import { keyDigest, type TenantConfig, TenantRegistry } from './tenants.js';

function meterOf(limits: TenantLimits) {
  let nowMs = 5_000_000;
  const account: TenantAccount = openAccount({ number: 1, name: 'acme', salt: '' });
  return {
    meter: new TenantMeter(
      () => limits,
      () => nowMs,
    ),
    account,
    advance: (ms: number) => {
      nowMs += ms;
    },
  };
}

const told = (error: CodedError | null): [string, number | undefined] | null =>
  error === null ? null : [error.code, error.retryAfterS];

describe('a meter', () => {
  test('lets so many requests through a minute, and says when the next one may come', () => {
    const { meter, advance } = meterOf({ requestsPerMinute: 6 });
    for (let i = 0; i < 6; i++) assert.equal(meter.arrive(), null);
    assert.deepEqual(told(meter.arrive()), ['rate_limit_exceeded', 10]);
    advance(4_000);
    assert.deepEqual(told(meter.arrive()), ['rate_limit_exceeded', 6]);
    advance(6_000);
    assert.equal(meter.arrive(), null);
    assert.notEqual(meter.arrive(), null);
    advance(3_600_000);
    for (let i = 0; i < 6; i++) assert.equal(meter.arrive(), null, 'an hour of rest saves no more than a minute');
    assert.notEqual(meter.arrive(), null);
  });

  test('serves a request larger than what is left, which is then owed', () => {
    const { meter, account, advance } = meterOf({ tokensPerMinute: 600 });
    assert.equal(meter.admit(account, 900), null);
    const [code, retryAfterS] = told(meter.admit(account, 1))!;
    assert.deepEqual([code, retryAfterS], ['rate_limit_exceeded', 31]);
    advance(30_000);
    assert.notEqual(meter.admit(account, 1), null);
    advance(1_000);
    assert.equal(meter.admit(account, 1), null);
  });

  test('gets back what was not used, and never more than a minute’s', () => {
    const { meter, account, advance } = meterOf({ tokensPerMinute: 600 });
    assert.equal(meter.admit(account, 600), null);
    assert.notEqual(meter.admit(account, 1), null);
    meter.giveBack(500);
    assert.equal(meter.admit(account, 500), null);
    assert.notEqual(meter.admit(account, 1), null);
    meter.giveBack(100_000);
    advance(1);
    assert.equal(meter.admit(account, 600), null);
    assert.notEqual(meter.admit(account, 1), null);
  });

  test('looks at what is open at all engines, and one request over the whole is refused for good', () => {
    const { meter, account } = meterOf({ tokensInFlight: 100, requestsInFlight: 3 });
    account.leasedTokens = 40;
    account.drainingTokens = 20;
    account.waitingTokens = 20;
    assert.equal(meter.admit(account, 20), null);
    assert.deepEqual(told(meter.admit(account, 21)), ['rate_limit_exceeded', 1]);
    assert.deepEqual(told(meter.admit(account, 101)), ['context_length_exceeded', undefined]);
    account.running = 2;
    account.waiting = 1;
    assert.deepEqual(told(meter.admit(account, 1)), ['rate_limit_exceeded', 1]);
  });

  test('without limits refuses nothing', () => {
    const { meter, account } = meterOf({});
    for (let i = 0; i < 1000; i++) assert.deepEqual([meter.arrive(), meter.admit(account, 1e9)], [null, null]);
  });
});

const TEXT = '/v1/completions';
const body = (prompt: string, maxTokens = 4): Record<string, unknown> => ({
  model: 'lab',
  prompt,
  max_tokens: maxTokens,
});

let open: Harness[] = [];
afterEach(async () => {
  await Promise.all(open.map((harness) => harness.close()));
  open = [];
});

const configs = (acme: TenantLimits, globex: TenantLimits = {}): TenantConfig[] => [
  { name: 'acme', keys: [{ sha256: keyDigest(ACME_KEY) }], limits: acme },
  { name: 'globex', keys: [{ sha256: keyDigest(GLOBEX_KEY) }], limits: globex },
];

async function start(
  acme: TenantLimits,
  globex: TenantLimits = {},
  runningMax = 8,
): Promise<{ harness: Harness; engine: Played }> {
  const engine = playedEngine({ runningMax });
  const tenants = new TenantRegistry(configs(acme, globex), 'a secret for tests');
  const harness = await startHarness({ upstreams: [engine], tenants });
  open.push(harness);
  return { harness, engine };
}

describe('at the gateway', () => {
  test('a tenant over its rate is told when to come back, before its body is looked at; others are served', async () => {
    const { harness, engine } = await start({ requestsPerMinute: 1 });
    const served = harness.post(TEXT, body('abc'));
    await until(harness.clock, 'it runs', () => engine.open.length === 1);
    engine.finish();
    assert.equal((await served).status, 200);
    const refused = await harness.post(TEXT, 'not even JSON');
    assert.equal(refused.status, 429);
    const waitS = Number(refused.headers.get('retry-after'));
    assert.ok(waitS >= 58 && waitS <= 60, `${waitS}`);
    assert.match(await refused.text(), /"code":"rate_limit_exceeded"/);
    const other = harness.post(TEXT, body('abc'), { key: GLOBEX_KEY });
    await until(harness.clock, 'it runs', () => engine.open.length === 1);
    engine.finish();
    assert.equal((await other).status, 200);
  });

  test('its limit of open requests comes before the one that all share', async () => {
    const { harness, engine } = await start({ requestsInFlight: 2 }, {}, 1);
    const answers = [harness.post(TEXT, body('a')), harness.post(TEXT, body('b'))];
    await until(harness.clock, 'one waits', () => harness.gateway.room.waiting === 1);
    const refused = await harness.post(TEXT, body('c'));
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '1']);
    for (let i = 0; i < 2; i++) {
      await until(harness.clock, 'it runs', () => engine.open.length === 1);
      engine.finish();
    }
    for (const answer of answers) assert.equal((await answer).status, 200);
    await until(harness.clock, 'all back', () => idle(harness));
  });

  test('tokens that were granted and did not come are given back', async () => {
    const { harness, engine } = await start({ tokensPerMinute: 1000 });
    const granted: number[] = [];
    for (let i = 0; i < 3; i++) {
      const answer = harness.post(TEXT, body('abc', 997));
      await until(harness.clock, 'it runs', () => engine.open.length === 1);
      granted.push(engine.requests.at(-1)!.maxTokens);
      engine.finish(2);
      assert.equal((await answer).status, 200, `round ${i}`);
    }
    assert.deepEqual(granted, [997, 997, 997]);
    const last = harness.post(TEXT, body('x'.repeat(990)));
    await until(harness.clock, 'it runs', () => engine.open.length === 1);
    assert.equal((await harness.post(TEXT, body('abc'))).status, 429);
    engine.finish();
    assert.equal((await last).status, 200);
  });

  test('limits change with the configuration from the next request on', async () => {
    const { harness, engine } = await start({ tokensInFlight: 50 });
    assert.equal((await harness.post(TEXT, body('x'.repeat(100)))).status, 400);
    const bounds = { bodyBytesMax: 1000, tenantOpenMax: 10, waitingMax: 10, waitMsMax: 1000 };
    harness.gateway.reconfigure(configs({ tokensInFlight: 200 }), bounds);
    const answer = harness.post(TEXT, body('x'.repeat(100)));
    await until(harness.clock, 'it runs', () => engine.open.length === 1);
    engine.finish();
    assert.equal((await answer).status, 200);
  });

  test('a higher class has four turns for one, and the lower one still has its own', async () => {
    const { harness, engine } = await start({ priority: 'low' }, { priority: 'normal' }, 1);
    const answers: Promise<Response>[] = [harness.post(TEXT, body('first'), { key: GLOBEX_KEY })];
    await until(harness.clock, 'it runs', () => engine.open.length === 1);
    for (const key of [ACME_KEY, GLOBEX_KEY]) {
      for (let i = 0; i < 12; i++) answers.push(harness.post(TEXT, body(key === ACME_KEY ? 'low' : 'normal'), { key }));
    }
    await until(harness.clock, 'all wait', () => harness.gateway.room.waiting === 24);
    for (let i = 0; i < 25; i++) {
      await until(harness.clock, 'the next one runs', () => engine.open.length === 1);
      engine.finish();
    }
    for (const answer of answers) assert.equal((await answer).status, 200);
    const turns = engine.requests
      .slice(1)
      .map(({ prompt }) => (prompt.kind === 'text' && prompt.text === 'low' ? 'l' : 'n'));
    const while12 = turns.slice(0, turns.lastIndexOf('n') + 1);
    const low = while12.filter((each) => each === 'l').length;
    assert.ok(low >= 3 && low <= 4, `${turns.join('')}`);
    assert.ok(!while12.join('').includes('nnnnnn'), `${turns.join('')}`);
  });

  test('what is no limit is refused at the start', () => {
    for (const limits of [{ requestsPerMinute: 0 }, { tokensInFlight: 1.5 }, { priority: 'urgent' }]) {
      assert.throws(
        () => new TenantRegistry(configs(limits as TenantLimits), 'secret'),
        (thrown) => thrown instanceof CodedError && thrown.code === 'usage' && thrown.message.includes('acme'),
      );
    }
  });
});
