/**
 * Goal: whatever happens to a request, exactly one result leaves, the engine is told once, and everything comes back. Method:
 * the echoing engine is held at each phase, made to lie or fail, and clients leave or stop reading there.
 */
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { sleep } from '../base/clock.js';
import { Prng } from '../base/prng.js';
import { ALL_GUARDS, guardBit } from '../handoff/guards.js';
import type { Upstream } from '../upstream/upstream.js';
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

const body = (prompt: string, extra: Record<string, unknown> = {}): Record<string, unknown> => ({
  model: 'lab',
  prompt,
  ...extra,
});

/** Starts a raw request that can be destroyed; fetch hides when its socket closes. */
async function rawPost(harness: Harness, prompt: string, extra: Record<string, unknown> = {}) {
  const client = await rawClient(harness.port);
  const json = JSON.stringify(body(prompt, extra));
  client.socket.write(rawRequest(TEXT, json, [AUTH, `Content-Length: ${Buffer.byteLength(json)}`]));
  return client;
}

async function streamed(response: Response): Promise<{ text: string; frames: string[] }> {
  const frames = (await response.text()).split('\n\n').filter((frame) => frame !== '');
  let text = '';
  for (const frame of frames) {
    if (frame === 'data: [DONE]') continue;
    const chunk = JSON.parse(frame.slice(6)) as { choices?: { text: string }[] };
    text += chunk.choices?.[0]?.text ?? '';
  }
  return { text, frames };
}

describe('a client that leaves', () => {
  test('during its body costs nothing', async () => {
    const harness = await start();
    const client = await rawClient(harness.port);
    client.socket.write(rawRequest(TEXT, '{"model":', [AUTH, 'Content-Length: 1000']));
    await until(harness.clock, 'the body is being read', () => harness.gateway.accounts[0]!.bodyBytes > 0);
    client.socket.destroy();
    await until(harness.clock, 'all back', () => idle(harness));
    assert.equal(harness.engine.runs.length, 0);
  });

  test('while it waits leaves the queue, and the engine never hears of it', async () => {
    const harness = await start({ engine: { runningMax: 1 } });
    harness.engine.hold = 'prefill';
    const first = harness.post(TEXT, body('first'));
    await until(harness.clock, 'one runs', () => harness.gateway.room.running === 1);
    const client = await rawPost(harness, 'second');
    await until(harness.clock, 'one waits', () => harness.gateway.room.waiting === 1);
    client.socket.destroy();
    await until(harness.clock, 'none waits', () => harness.gateway.room.waiting === 0);
    harness.engine.hold = 'nothing';
    harness.engine.wake();
    assert.equal((await first).status, 200);
    assert.equal(harness.engine.runs.length, 1);
    await until(harness.clock, 'all back', () => idle(harness));
  });

  for (const phase of ['prefill', 'decode'] as const) {
    for (const stream of [false, true]) {
      test(`before ${phase}, ${stream ? 'streamed' : 'whole'}, past its shield: one abort, and all comes back`, async () => {
        const harness = await start({ shield: { requestsMax: 0 } });
        harness.engine.hold = phase;
        const client = await rawPost(harness, 'hello', { stream });
        await until(harness.clock, 'it runs', () => harness.engine.runs.length === 1);
        client.socket.destroy();
        await until(harness.clock, 'all back', () => idle(harness));
        assert.equal(harness.engine.runs[0]!.aborts, 1);
      });
    }
  }

  test('in the middle of its stream: one abort, and all comes back', async () => {
    const harness = await start({ engine: { context: 4000, prefillPool: 4096, decodePool: 8192 } });
    const client = await rawPost(harness, 'y'.repeat(1500), { stream: true });
    await until(harness.clock, 'text comes', () => client.received().includes('"text":"y"'));
    client.socket.destroy();
    await until(harness.clock, 'all back', () => idle(harness));
    const run = harness.engine.runs[0]!;
    assert.ok(run.aborts === 1 || run.produced === 1500, `${run.aborts} aborts after ${run.produced}`);
  });

  test('keeps its tokens draining, and not leased, until the engine has let go', async () => {
    const harness = await start({ shield: { requestsMax: 0 } });
    harness.engine.hold = 'decode';
    harness.engine.holdRelease = true;
    const client = await rawPost(harness, 'hello', { max_tokens: 12 });
    const account = harness.gateway.accounts[0]!;
    await until(harness.clock, 'it runs', () => account.leasedTokens === 16);
    client.socket.destroy();
    await until(harness.clock, 'it drains', () => account.drainingTokens === 16);
    assert.deepEqual([account.leasedTokens, account.running], [0, 0]);
    harness.engine.holdRelease = false;
    harness.engine.wake();
    await until(harness.clock, 'all back', () => idle(harness));
  });
});

test('a slow reader stops its own stream only, within a bounded memory', async () => {
  const harness = await start({ engine: { context: 200_000, prefillPool: 200_000, decodePool: 400_000 } });
  const prompt = 'z'.repeat(90_000);
  const client = await rawPost(harness, prompt, { stream: true, max_tokens: 90_000 });
  await until(harness.clock, 'text comes', () => client.received().includes('"text":"z"'));
  client.socket.pause();
  const slow = harness.engine.runs[0]!;
  let produced = -1;
  await until(
    harness.clock,
    'the slow stream has stopped',
    () => {
      const same = produced === slow.produced;
      produced = slow.produced;
      return same && slow.produced - slow.acknowledged > 0;
    },
    10_000,
  );
  await sleep(harness.clock, 50);
  assert.equal(slow.produced, produced, 'it goes on though nobody reads');
  assert.ok(produced < 90_000, 'the socket took everything; the case shows nothing');
  // Others go on.
  const other = await harness.post(TEXT, body('abc', { stream: true }), { key: GLOBEX_KEY });
  assert.equal((await streamed(other)).text, 'abc');
  // And so does this one, whole, once it is read again.
  client.socket.resume();
  await until(harness.clock, 'the end', () => client.latest().includes('[DONE]'), 20_000);
  assert.equal(slow.produced, 90_000);
  client.socket.destroy();
});

describe('usage', () => {
  for (const lie of [{ prefillTokens: 1 }, { promptTokens: 1 }, { completionTokens: 0 }]) {
    for (const early of [true, false]) {
      test(`with ${JSON.stringify(lie)} ${early ? 'said early' : 'said at the end'} fails closed`, async () => {
        // The engine goes on lying, and a sentinel would take it out before the second request.
        const harness = await start({ sentinels: false });
        harness.engine.lie = { ...lie, early };
        const whole = await harness.post(TEXT, body('secret words'));
        const wholeText = await whole.text();
        assert.equal(whole.status, 502);
        assert.match(wholeText, /"code":"verification_failed"/);
        assert.ok(!wholeText.includes('secret'), 'the answer leaves with the error');
        const stream = await harness.post(TEXT, body('secret words', { stream: true }));
        const streamText = await stream.text();
        assert.match(streamText, /"code":"verification_failed"/);
        assert.ok(!streamText.includes('[DONE]'));
        // Said early, nothing at all has left, and the error is a plain one.
        if (early && !('completionTokens' in lie)) assert.equal(stream.status, 502);
        else assert.equal(stream.status, 200);
        assert.ok(harness.findings.some((finding) => finding.id === 'usage-mismatch'));
        await until(harness.clock, 'all back', () => idle(harness));
      });
    }
  }

  test('is not compared with the guard off, and every answer says so', async () => {
    const harness = await start({ guards: ALL_GUARDS & ~guardBit('usage'), faults: ['count-unchecked'] });
    harness.engine.lie = { promptTokens: 1 };
    const response = await harness.post(TEXT, body('abc'));
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('x-cofferdam-guards-off'), 'usage');
    assert.equal(response.headers.get('x-cofferdam-fault'), 'count-unchecked');
    const refusal = await harness.post(TEXT, 'no json');
    assert.equal(refusal.headers.get('x-cofferdam-guards-off'), 'usage');
  });
});

describe('without capacity', () => {
  test('a request that waits too long gets 503 no_capacity with Retry-After, and the one that runs is served', async () => {
    const harness = await start({ engine: { runningMax: 1 }, waitMsMax: 30 });
    harness.engine.hold = 'decode';
    const running = harness.post(TEXT, body('abc'));
    await until(harness.clock, 'it runs', () => harness.gateway.room.running === 1);
    const late = await harness.post(TEXT, body('abc'), { key: GLOBEX_KEY });
    assert.deepEqual([late.status, late.headers.get('retry-after')], [503, '1']);
    assert.match(await late.text(), /"code":"no_capacity"/);
    harness.engine.hold = 'nothing';
    harness.engine.wake();
    assert.equal((await running).status, 200);
  });

  test('a pool that nobody knows admits nothing: 503 capacity_unknown', async () => {
    const inner = await start();
    const { upstream } = inner;
    const unknown: Upstream = {
      describe: () => upstream.describe(),
      capacity: () => ({ ...upstream.capacity(), prefillPool: null }),
      health: () => upstream.health(),
      count: (prompt) => upstream.count(prompt),
      start: (request, sink) => upstream.start(request, sink),
      selfTest: (signal) => upstream.selfTest(signal),
      close: () => upstream.close(),
    };
    const harness = await start({ upstream: unknown });
    const response = await harness.post(TEXT, body('abc'));
    assert.equal(response.status, 503);
    assert.match(await response.text(), /"code":"capacity_unknown"/);
    assert.equal(inner.engine.runs.length, 0);
  });
});

describe('an engine that fails', () => {
  test('before the first token gives a plain error in our words, with nothing of its own', async () => {
    for (const stream of [false, true]) {
      const harness = await start();
      harness.engine.failWith = { guard: 'tag', message: 'A page was not its own.' };
      const response = await harness.post(TEXT, body('abc', { stream }));
      const text = await response.text();
      assert.equal(response.status, 502);
      assert.match(text, /The engine could not finish this request/);
      assert.ok(!text.includes('A page') && !text.includes('for operators'));
    }
  });

  test('in the middle of a stream gives an error event and no [DONE]', async () => {
    const harness = await start();
    const response = await harness.post(TEXT, body('x'.repeat(200), { stream: true }));
    const reader = response.body!.getReader();
    await reader.read();
    harness.engine.failWith = { guard: 'checksum', message: 'A checksum did not agree.' };
    let rest = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      rest += Buffer.from(value).toString();
    }
    assert.match(rest, /data: \{"error":\{"message":"The engine could not finish this request\./);
    assert.ok(!rest.includes('[DONE]'));
  });
});

describe('stop sequences', () => {
  for (const stream of [false, true]) {
    const how = stream ? 'streamed' : 'whole';
    test(`cut the answer before the stop and abort the engine once, ${how}`, async () => {
      const harness = await start();
      const response = await harness.post(
        TEXT,
        body('one two three four', { stop: ['three'], stream, temperature: 0 }),
      );
      if (stream) {
        const { text, frames } = await streamed(response);
        assert.equal(text, 'one two ');
        assert.match(frames.at(-2)!, /"finish_reason":"stop"/);
      } else {
        const answer = (await response.json()) as { choices: unknown[]; usage: Record<string, number> };
        assert.deepEqual(answer.choices, [{ index: 0, text: 'one two ', logprobs: null, finish_reason: 'stop' }]);
        assert.equal(answer.usage.completion_tokens, 'one two three'.length);
      }
      await until(harness.clock, 'all back', () => idle(harness));
      assert.equal(harness.engine.runs[0]!.aborts, 1);
    });
  }

  test('and a client that leaves before the engine has ended still make one abort', async () => {
    const harness = await start();
    harness.engine.holdAborted = true;
    const client = await rawPost(harness, 'one two three', { stop: ['two'], stream: true });
    await until(harness.clock, 'the stop', () => harness.engine.runs[0]?.aborts === 1);
    client.socket.destroy();
    await until(harness.clock, 'the client is gone', () => harness.gateway.open === 0);
    harness.engine.holdAborted = false;
    harness.engine.wake();
    await until(harness.clock, 'all back', () => idle(harness));
    assert.equal(harness.engine.runs[0]!.aborts, 1);
  });

  test('let go what only began like one', async () => {
    const harness = await start();
    const response = await harness.post(TEXT, body('ab abc', { stop: ['abd', 'bcx'], stream: true }));
    const { text, frames } = await streamed(response);
    assert.equal(text, 'ab abc');
    assert.equal(frames.at(-1), 'data: [DONE]');
  });
});

describe('with all guards off', () => {
  test('engine fields reach the engine, the limit is not applied, and the key still tells tenants apart', async () => {
    const harness = await start({ guards: 0 });
    const long = 'x'.repeat(400);
    const fields = '"bootstrap_room":9046351419888738945,"kv_transfer_params":{"handle":"h"}';
    const json = `{"model":"lab","prompt":"${long}","max_tokens":4,${fields},"whatever":1}`;
    const response = await harness.post(TEXT, json, { key: GLOBEX_KEY });
    assert.equal(response.status, 200);
    const { request } = harness.engine.runs[0]!;
    assert.equal(request.room, 9046351419888738945n);
    assert.deepEqual([request.handle, request.tenant, request.salt, request.prompt.length], ['h', 2, '', 400]);
    assert.match(await response.text(), /"kv_transfer_params":\{"handle":"echo-0"\}/);
    await harness.post(TEXT, '{}', { key: null }).then((refusal) => assert.equal(refusal.status, 401));
  });

  test('and with all on the tenant’s salt is set and no handle leaves', async () => {
    const harness = await start();
    const response = await harness.post(TEXT, body('abc'));
    assert.ok(!(await response.text()).includes('handle'));
    assert.match(harness.engine.runs[0]!.request.salt, /^[0-9a-f]{64}$/);
    assert.equal(response.headers.get('x-cofferdam-guards-off'), null);
  });
});

describe('closing', () => {
  test('lets open requests finish and refuses new ones', async () => {
    const harness = await start({ closeGraceMs: 1000 });
    harness.engine.hold = 'decode';
    const running = harness.post(TEXT, body('abc'));
    await until(harness.clock, 'it runs', () => harness.engine.runs.length === 1);
    const closing = harness.gateway.close();
    harness.engine.hold = 'nothing';
    harness.engine.wake();
    assert.equal((await running).status, 200);
    await closing;
    await assert.rejects(harness.post(TEXT, body('abc')));
  });

  test('fails what does not finish with shutting_down, whole, streamed and waiting, in under 2 s', async () => {
    const harness = await start({ engine: { runningMax: 2, context: 4000, prefillPool: 4096, decodePool: 8192 } });
    const stream = await harness.post(TEXT, body('x'.repeat(100), { stream: true }));
    harness.engine.hold = 'decode';
    const whole = harness.post(TEXT, body('abc'), { key: GLOBEX_KEY });
    await until(harness.clock, 'two run', () => harness.gateway.room.running === 2);
    const waiting = harness.post(TEXT, body('abc'));
    await until(harness.clock, 'one waits', () => harness.gateway.room.waiting === 1);
    const startMs = harness.clock.nowMs();
    const [wholeAnswer, waitingAnswer, streamText] = await Promise.all([
      whole,
      waiting,
      stream.text(),
      harness.gateway.close(),
    ]);
    assert.ok(harness.clock.nowMs() - startMs < 2000);
    for (const answer of [wholeAnswer, waitingAnswer]) {
      assert.equal(answer.status, 503);
      assert.match(await answer.text(), /"code":"shutting_down"/);
    }
    assert.match(streamText, /"code":"shutting_down"/);
    assert.ok(!streamText.includes('[DONE]'));
    await until(harness.clock, 'all back', () => idle(harness));
  });
});

test('a client that sends its head or body too slowly is answered 408 and closed', async () => {
  const harness = await start({ socketBounds: { headMsMax: 100, requestMsMax: 200, socketCheckMs: 50 } });
  const head = await rawClient(harness.port);
  head.socket.write('POST / HTTP/1.1\r\nHost:');
  await head.closed;
  assert.match(head.received(), /^HTTP\/1\.1 408 /);
  const slow = await rawClient(harness.port);
  slow.socket.write(rawRequest(TEXT, '{"mo', [AUTH, 'Content-Length: 100']));
  await slow.closed;
  assert.match(slow.received(), /^HTTP\/1\.1 408 /);
  await until(harness.clock, 'all back', () => idle(harness));
});

const STORM_SEED = 20_260_719;
test(`300 requests of which half leave at random points give everything back (seed ${STORM_SEED})`, async () => {
  const prng = new Prng(STORM_SEED);
  const harness = await start({ engine: { runningMax: 6 }, tenantOpenMax: 400 });
  const one = async (i: number): Promise<void> => {
    const prompt = `request ${i} ${'w'.repeat(prng.below(100))}`;
    const stream = prng.chance(0.5);
    const leaves = i % 2 === 0;
    const controller = new AbortController();
    const delayMs = prng.below(40);
    if (leaves) harness.clock.after(delayMs, () => controller.abort());
    const key = prng.chance(0.5) ? {} : { key: GLOBEX_KEY };
    try {
      const response = await harness.post(TEXT, body(prompt, { stream }), { ...key, signal: controller.signal });
      const text = stream
        ? (await streamed(response)).text
        : ((await response.json()) as { choices: { text: string }[] }).choices[0]!.text;
      assert.equal(text, prompt);
    } catch (thrown) {
      if (!leaves || !(thrown instanceof Error) || thrown.name !== 'AbortError') throw thrown;
    }
  };
  await Promise.all(Array.from({ length: 300 }, (_, i) => one(i)));
  await until(harness.clock, 'all back', () => idle(harness));
  assert.ok(harness.engine.runs.every((run) => run.aborts <= 1 && run.released));
  assert.ok(harness.engine.runningPeak <= 6, `${harness.engine.runningPeak} ran at once`);
  assert.ok(harness.engine.leasedPeakTokens <= 1024, `${harness.engine.leasedPeakTokens} tokens were leased`);
});
