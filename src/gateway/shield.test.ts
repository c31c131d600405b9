/**
 * Goal: a client that leaves before the first token makes no abort inside the transfer, and gets nothing by leaving. Method: the
 * echoing engine held before prefill and decode, clients that leave there, bounds made small; the bounds alone on a manual clock.
 */
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { ManualClock } from '../base/clock.js';
import { Prng } from '../base/prng.js';
import {
  AUTH,
  GLOBEX_KEY,
  type Harness,
  type HarnessOptions,
  idle,
  rawClient,
  rawRequest,
  startHarness,
  until,
} from '../../test/support/gateway-harness.js';
import { SHIELDED_MAX, SHIELDED_MS_MAX } from './bounds.js';
import { Shield, type ShieldOutcome } from './shield.js';
import { openAccount } from './waiting.js';

const TEXT = '/v1/completions';
let open: Harness[] = [];
async function start(options: HarnessOptions = {}): Promise<Harness> {
  const harness = await startHarness(options);
  open.push(harness);
  return harness;
}
afterEach(async () => {
  await Promise.all(open.map((harness) => harness.close()));
  open = [];
});

async function send(harness: Harness, prompt: string, extra: Record<string, unknown> = {}) {
  const { socket } = await rawClient(harness.port);
  const json = JSON.stringify({ model: 'lab', prompt, ...extra });
  const runs = harness.engine.runs.length;
  socket.write(rawRequest(TEXT, json, [AUTH, `Content-Length: ${Buffer.byteLength(json)}`]));
  await until(harness.clock, 'it runs', () => harness.engine.runs.length === runs + 1);
  return { socket, run: harness.engine.runs[runs]! };
}

const leave = async (harness: Harness, socket: { destroy(): void }): Promise<void> => {
  const before = harness.gateway.open;
  socket.destroy();
  await until(harness.clock, 'the gateway has seen it', () => harness.gateway.open === before - 1);
};

const counted = async (harness: Harness, what: string, outcome: ShieldOutcome | 'over_bound'): Promise<number> => {
  const line = `cofferdam_shielded_${what}_total{outcome="${outcome}"} `;
  const text = await harness.gateway.metrics.registry.metrics();
  const at = text.indexOf(line);
  return at < 0 ? 0 : Number(text.slice(at + line.length).split('\n', 1)[0]);
};

describe('a client that leaves before the first token', () => {
  for (const phase of ['prefill', 'decode'] as const) {
    for (const stream of [false, true]) {
      test(`before ${phase}, ${stream ? 'streamed' : 'whole'}: its request goes on to its first token, then one abort ends it`, async () => {
        const harness = await start();
        harness.engine.hold = phase;
        const { socket, run } = await send(harness, 'hello there', { stream });
        await leave(harness, socket);
        assert.equal(harness.gateway.shield.open, 1);
        assert.equal(run.aborts, 0, 'an abort inside the transfer');
        assert.equal(harness.gateway.accounts[0]!.running, 1, 'it keeps its permit');
        harness.engine.hold = 'nothing';
        harness.engine.wake();
        await until(harness.clock, 'all back', () => idle(harness));
        assert.deepEqual([run.aborts, run.produced, harness.gateway.shield.open], [1, 1, 0]);
        assert.equal(await counted(harness, 'requests', 'first_token'), 1);
        assert.equal(await counted(harness, 'prompt_tokens', 'first_token'), 'hello there'.length);
        assert.ok((await counted(harness, 'seconds', 'first_token')) > 0);
        assert.equal(await counted(harness, 'requests', 'over_bound'), 0);
      });
    }
  }

  test('past its tenant’s number is an abort at once; another tenant has its own', async () => {
    const harness = await start({ shield: { requestsMax: 2 } });
    harness.engine.hold = 'prefill';
    const sent: Awaited<ReturnType<typeof send>>[] = [];
    for (let i = 0; i < 3; i++) sent.push(await send(harness, 'abc'));
    for (const { socket } of sent) await leave(harness, socket);
    await until(harness.clock, 'the third is aborted', () => sent[2]!.run.released);
    assert.deepEqual(
      sent.map(({ run }) => run.aborts),
      [0, 0, 1],
    );
    const controller = new AbortController();
    const other = harness.post(TEXT, { model: 'lab', prompt: 'abc' }, { key: GLOBEX_KEY, signal: controller.signal });
    await until(harness.clock, 'it runs', () => harness.engine.runs.length === 4);
    controller.abort();
    await assert.rejects(other);
    await until(harness.clock, 'it is shielded', () => harness.gateway.shield.open === 3);
    harness.engine.hold = 'nothing';
    harness.engine.wake();
    await until(harness.clock, 'all back', () => idle(harness));
    assert.equal(await counted(harness, 'requests', 'over_bound'), 1);
    assert.equal(await counted(harness, 'requests', 'first_token'), 3);
  });

  test('and whose prefill takes too long is aborted when its time is over', async () => {
    const harness = await start({ shield: { msMax: 20 } });
    harness.engine.hold = 'prefill';
    const { socket, run } = await send(harness, 'abc');
    await leave(harness, socket);
    await until(harness.clock, 'all back', () => idle(harness));
    assert.equal(run.aborts, 1);
    assert.equal(await counted(harness, 'requests', 'timed_out'), 1);
  });

  test('holds its tenant’s permits meanwhile: by leaving nobody gets more at work than by staying', async () => {
    const harness = await start({ tenantOpenMax: 3 });
    harness.engine.hold = 'prefill';
    for (let i = 0; i < 3; i++) await leave(harness, (await send(harness, 'abc')).socket);
    const refused = await harness.post(TEXT, { model: 'lab', prompt: 'abc' });
    assert.equal(refused.status, 429);
    assert.equal(harness.engine.runs.length, 3);
    harness.engine.hold = 'nothing';
    harness.engine.wake();
    await until(harness.clock, 'all back', () => idle(harness));
    assert.equal((await harness.post(TEXT, { model: 'lab', prompt: 'abc' })).status, 200);
  });

  test('has its counts judged all the same: what they say concerns everybody', async () => {
    const harness = await start();
    harness.engine.hold = 'prefill';
    const { socket } = await send(harness, 'hello there');
    await leave(harness, socket);
    harness.engine.lie = { prefillTokens: 1 };
    harness.engine.hold = 'nothing';
    harness.engine.wake();
    await until(harness.clock, 'the engine is out', () => !harness.gateway.engines[0]!.watch.rotation.isIn);
    assert.equal(harness.findings[0]?.id, 'usage-mismatch');
  });

  test('does not keep the gateway from closing', async () => {
    const harness = await start();
    harness.engine.hold = 'prefill';
    const { socket, run } = await send(harness, 'abc');
    await leave(harness, socket);
    await harness.gateway.close();
    assert.equal(run.aborts, 1);
    assert.equal(await counted(harness, 'requests', 'cut_off'), 1);
  });
});

test('an engine that fails before the first token ends the shield, and nothing is aborted', async () => {
  const harness = await start();
  harness.engine.hold = 'decode';
  const { socket, run } = await send(harness, 'abc');
  await leave(harness, socket);
  harness.engine.failWith = { guard: 'tag', message: '' };
  harness.engine.hold = 'nothing';
  harness.engine.wake();
  await until(harness.clock, 'all back', () => idle(harness));
  assert.equal(run.aborts, 0);
  assert.equal(await counted(harness, 'requests', 'ended'), 1);
});

const SEED = 9_104;
test(`no tenant ever has more than its number, its tokens and its time (seed ${SEED})`, () => {
  const prng = new Prng(SEED);
  const clock = new ManualClock();
  const over: number[] = [];
  const shield = new Shield({
    clock,
    tokensMax: 500,
    onOver: (_outcome, tokens, ms) => {
      assert.ok(ms <= SHIELDED_MS_MAX);
      over.push(tokens);
    },
    onRefused() {},
  });
  const accounts = [1, 2, 3].map((number) => openAccount({ number, name: `t${number}`, salt: '' }));
  const held = accounts.map(() => new Map<object, number>());
  let entered = 0;
  let refused = 0;
  for (let i = 0; i < 5000; i++) {
    const at = prng.below(accounts.length);
    const mine = held[at]!;
    const tokens = prng.between(1, 300);
    const what = prng.below(3);
    if (what === 0) {
      const token = {};
      const shielded = shield.enter(accounts[at]!, tokens, shield, () => mine.delete(token));
      const sum = [...mine.values()].reduce((all, each) => all + each, 0);
      const fits = mine.size < SHIELDED_MAX && sum + tokens <= 500;
      assert.equal(shielded !== null, fits);
      if (shielded === null) refused++;
      else {
        entered++;
        mine.set(token, tokens);
        if (prng.chance(0.3)) {
          mine.delete(token);
          shielded.over('first_token');
          shielded.over('ended');
        }
      }
    } else clock.advance(prng.below(what === 1 ? 100 : 2000));
  }
  assert.ok(entered > 100 && refused > 100, `${entered} entered, ${refused} were refused`);
  shield.cutAll();
  assert.deepEqual([over.length, shield.open, clock.waiting], [entered, 0, 0]);
});
