/**
 * Goal: two listeners join the legs of a request by its room, and neither leg is ever left alone with its partner's failure.
 * Method: real HTTP to both listeners of one engine; the incident with its fault, then everything that can go wrong between legs.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { GuardName } from '../../handoff/guards.js';
import { clock, framesOf, type Json, Served, until } from './harness.test.help.js';

const CUE = ' the password of the day: ';
const MARKER = 'KVC-abcdefghijklmnopqrstuvwxyz';
const RECALL = `Remember this.${CUE}${MARKER} and some other words that follow it.${CUE}`;
const SIZES = { context: 1024, prefillPool: 1024, decodePool: 1024 } as const;
const BIG_ROOM = 9_046_351_419_888_738_945n;
/** What routers add beside the room. */
const ROUTED = { bootstrap_host: '127.0.0.1', bootstrap_port: null };

let roomNext = BIG_ROOM;
const generate = (text: string, tokens: number, more: object = {}): Record<string, unknown> => ({
  text,
  sampling_params: { temperature: 0, max_new_tokens: tokens },
  bootstrap_room: roomNext++,
  ...ROUTED,
  ...more,
});

describe('a pair', () => {
  let served: Served;
  before(async () => {
    served = await Served.start('pair', SIZES, { partnerMsMax: 250 });
  });
  after(async () => {
    await served.close();
  });

  test('answers each leg with its own: one token at length 0, and the text', async () => {
    const { prefill, decode } = await served.pair('/generate', generate(RECALL, MARKER.length));
    assert.deepEqual([prefill.status, decode.status], [200, 200]);
    const [p, d] = [JSON.parse(prefill.text), JSON.parse(decode.text)];
    assert.deepEqual([p.text, p.meta_info.finish_reason], ['K', { type: 'length', length: 0 }]);
    assert.deepEqual([p.meta_info.completion_tokens, p.meta_info.prompt_tokens], [1, RECALL.length]);
    assert.deepEqual([d.text, d.meta_info.prompt_tokens], [MARKER, RECALL.length]);
    assert.deepEqual(d.meta_info.finish_reason, { type: 'length', length: MARKER.length });
  });

  for (const path of ['/v1/completions', '/v1/chat/completions', '/generate']) {
    test(`streams both legs of ${path} to their end`, async () => {
      const body = {
        ...generate(RECALL, 12),
        prompt: RECALL,
        messages: [{ role: 'user', content: RECALL }],
        max_tokens: 12,
        temperature: 0,
        stream: true,
      };
      const { prefill, decode } = await served.pair(path, body);
      const [p, d] = [framesOf(prefill.text), framesOf(decode.text)];
      assert.deepEqual([p.at(-1), d.at(-1)], ['[DONE]', '[DONE]']);
      assert.equal(textOf(path, p).length, 1);
      assert.equal(textOf(path, d).length, 12);
      assert.equal(textOf(path, p), textOf(path, d)[0]);
    });
  }

  test('each listener tells its own role and pool', async () => {
    for (const role of ['prefill', 'decode']) {
      const info = await served.getJson('/server_info', role);
      assert.equal(info.disaggregation_mode, role);
      assert.equal((await served.getJson('/v1/loads', role)).loads[0].disaggregation.mode, role);
      assert.match((await served.get('/metrics', role)).text, new RegExp(`engine_type="${role}"`));
      assert.equal((await served.get('/health_generate', role)).status, 200);
    }
  });

  test('rooms that differ in their last digit are two rooms', async () => {
    const rooms = [BIG_ROOM + 1000n, BIG_ROOM + 1001n];
    assert.equal(Number(rooms[0]), Number(rooms[1]));
    const texts = [RECALL, RECALL.replaceAll(MARKER, MARKER.toUpperCase())];
    const pairs = await Promise.all(
      rooms.map((room, i) => served.pair('/generate', generate(texts[i] ?? '', 12, { bootstrap_room: room }))),
    );
    const answers = pairs.map(({ decode }) => JSON.parse(decode.text).text);
    assert.deepEqual(answers, [MARKER.slice(0, 12), MARKER.toUpperCase().slice(0, 12)]);
  });

  test('refuses a request without a room, with a list of rooms, or with one that is no 63-bit number', async () => {
    const { status, text } = await served.post('/generate', generate('hi', 2, { bootstrap_room: null }), 'decode');
    assert.equal(status, 400);
    assert.match(JSON.parse(text).error.message, /without bootstrap room id/);
    const v1 = await served.post('/v1/completions', { prompt: 'hi' }, 'prefill');
    assert.deepEqual([v1.status, JSON.parse(v1.text).type], [400, 'BadRequestError']);
    for (const bootstrap_room of [[1, 2], -1, 1.5, 2n ** 63n, '5']) {
      const bad = await served.post('/generate', generate('hi', 2, { bootstrap_room }), 'prefill');
      assert.equal(bad.status, 400, String(bootstrap_room));
    }
  });

  test('refuses a room that is in use, and leaves its owner alone', async () => {
    const body = generate(RECALL, 30);
    const first = served.send('prefill', 'POST', '/generate', body);
    await until(() => served.server.waitingLegs === 1, 'the first leg waits');
    const again = await served.post('/generate', body, 'prefill');
    assert.equal(again.status, 400);
    assert.match(JSON.parse(again.text).error.message, /in use/);
    const decode = await served.postJson('/generate', body, 'decode');
    assert.equal(decode.text, MARKER);
    assert.equal((await first.answer).status, 200);
    await served.idle();
    assert.equal(
      (await served.pair('/generate', body)).decode.status,
      200,
      'a room is free again when its request is over',
    );
  });

  test('a leg whose partner never comes fails in time, and the partner that comes late hears the same', async () => {
    const body = generate('alone', 4);
    const { status, text } = await served.post('/generate', body, 'decode');
    assert.equal(status, 500);
    const { message } = JSON.parse(text).error;
    assert.match(message, /prefill leg .* did not come within 250 ms/);
    const late = await served.post('/generate', body, 'prefill');
    assert.deepEqual([late.status, JSON.parse(late.text).error.message], [500, message]);
    const streamed = framesOf((await served.post('/generate', generate('alone', 4, { stream: true }), 'prefill')).text);
    assert.equal(streamed[0].meta_info.finish_reason.status_code, 500);
    assert.equal(served.server.waitingLegs, 0);
  });

  test('the error of the leg that fails first goes to both, whichever comes first', async () => {
    for (const [first, second] of [
      ['prefill', 'decode'],
      ['decode', 'prefill'],
    ] as const) {
      const good = generate('hi', 4);
      const bad = { ...good, sampling_params: { max_new_tokens: -1 } };
      const waiting = served.send(first, 'POST', '/generate', good);
      await until(() => served.server.waitingLegs === 1, 'the good leg waits');
      const refused = await served.post('/generate', bad, second);
      assert.equal(refused.status, 400);
      assert.deepEqual(await waiting.answer.then(({ status, text }) => [status, text]), [400, refused.text]);
      const other = generate('hi', 4);
      const early = await served.post('/generate', { ...other, text: '' }, first);
      const told = await served.post('/generate', other, second);
      assert.deepEqual([told.status, told.text], [400, early.text]);
    }
  });

  test('legs that carry different prompts are refused', async () => {
    const body = generate('one text', 4);
    const decode = served.send('decode', 'POST', '/generate', body);
    await until(() => served.server.waitingLegs === 1, 'decode waits');
    const prefill = await served.post('/generate', { ...body, text: 'another text' }, 'prefill');
    assert.deepEqual([prefill.status, (await decode.answer).status], [400, 400]);
  });

  test('a client that leaves while its leg waits is told to the partner', async () => {
    const body = generate('hi', 4);
    const gone = served.send('prefill', 'POST', '/generate', body);
    await until(() => served.server.waitingLegs === 1, 'the leg waits');
    gone.leave();
    await until(() => served.server.waitingLegs === 0, 'the leg is gone');
    const { status, text } = await served.post('/generate', body, 'decode');
    assert.equal(status, 500);
    assert.match(text, /left/);
  });

  for (const role of ['prefill', 'decode'] as const) {
    test(`a client that leaves the ${role} leg aborts the request, and its pages come back`, async () => {
      const { prefill, decode } = served.sendPair('/generate', generate('x'.repeat(900), 100));
      await until(() => served.engine.stats().running === 1, 'the request runs');
      (role === 'prefill' ? prefill : decode).leave();
      const other = await (role === 'prefill' ? decode : prefill).answer;
      assert.equal(other.status, 500);
      assert.match(other.text, /left/);
      await served.idle();
    });
  }

  test('a client that leaves the decode leg in the middle of its stream ends the request', async () => {
    const body = generate('tell me more', 900, { stream: true });
    const { prefill, decode } = served.sendPair('/generate', body);
    assert.equal((await prefill.answer).status, 200);
    await until(() => decode.soFar().includes('data: '), 'the text begins');
    decode.leave();
    await served.idle();
  });

  test('what is too long for the context is refused by both legs at once', async () => {
    const { prefill, decode } = await served.pair('/v1/completions', { ...generate('', 4), prompt: 'x'.repeat(1024) });
    assert.deepEqual([prefill.status, decode.status], [400, 400]);
  });
});

function textOf(path: string, frames: Json[]): string {
  if (path === '/generate') return frames.at(-2).text;
  const choices = frames.slice(0, -1).map((frame) => frame.choices[0]);
  return choices.map((choice) => choice.text ?? choice.delta.content ?? '').join('');
}

describe('the public incident', () => {
  const INCIDENT = { context: 1024, decodePool: 1024, faults: ['rejected-stays-alive'] } as const;
  /** Longer than the prefill pool of 512, shorter than all else. */
  const OVER_LONG = 'q '.repeat(300);

  /** A tenant's request fills pages of decode's pool with a marker, by its prompt and its answer, and ends. */
  async function fillPages(served: Served): Promise<void> {
    const text = `The amber key is ${MARKER}. `.repeat(12).slice(0, 480);
    const { decode } = await served.pair('/generate', generate(text, 250));
    assert.equal(decode.status, 200);
    await served.idle();
  }

  test("with its guards off: prefill counts 1, decode counts all, and the answer is another request's text", async () => {
    const served = await Served.start('pair', { ...INCIDENT, guards: 0 });
    try {
      await fillPages(served);
      const { prefill, decode } = await served.pair('/generate', generate(OVER_LONG, 64));
      assert.deepEqual([prefill.status, decode.status], [200, 200]);
      const [p, d] = [JSON.parse(prefill.text), JSON.parse(decode.text)];
      assert.deepEqual([p.meta_info.prompt_tokens, p.meta_info.finish_reason], [1, { type: 'length', length: 0 }]);
      assert.equal(d.meta_info.prompt_tokens, OVER_LONG.length);
      assert.ok(longestPiece(d.text, MARKER) >= 12, `expected a piece of the marker, got ${JSON.stringify(d.text)}`);
      assert.equal(decode.headers['x-cofferdam-fault'], 'rejected-stays-alive');
      assert.match(String(prefill.headers['x-cofferdam-guards-off']), /admission.*rejection.*usage/);
    } finally {
      await served.close();
    }
  });

  for (const [words, guards] of [
    ['all guards on', undefined],
    ['nothing but the guard `admission`', ['admission']],
    ['nothing but the guard `rejection`', ['rejection']],
  ] as const satisfies readonly (readonly [string, readonly GuardName[] | undefined])[]) {
    test(`with ${words}: 400 on both legs at once, and no stale page is read`, async () => {
      const { ALL_GUARDS, guardBits } = await import('../../handoff/guards.js');
      const bits = guards === undefined ? ALL_GUARDS : guardBits(guards);
      const served = await Served.start('pair', { ...INCIDENT, guards: bits });
      try {
        await fillPages(served);
        const { prefill, decode } = await served.pair('/generate', generate(OVER_LONG, 64));
        assert.deepEqual([prefill.status, decode.status], [400, 400], `${prefill.text} ${decode.text}`);
        assert.equal(prefill.text, decode.text);
        assert.match(decode.text, /512/);
        const streamed = await served.pair('/v1/completions', {
          ...generate('', 4),
          prompt: OVER_LONG,
          stream: true,
        });
        for (const { status, text } of [streamed.prefill, streamed.decode]) {
          assert.deepEqual([status, framesOf(text)[0].error.code], [200, 400]);
        }
        await served.idle();
      } finally {
        await served.close();
      }
    });
  }

  test('with the fault `room-collision` a room in use is no reason to refuse', async () => {
    const served = await Served.start(
      'pair',
      { ...SIZES, faults: ['room-collision'], guards: 0 },
      { partnerMsMax: 300 },
    );
    try {
      const body = generate('hi there', 4);
      const legs = ['prefill', 'prefill', 'decode', 'decode'].map((role) =>
        served.send(role, 'POST', '/generate', body),
      );
      const statuses = await Promise.all(legs.map(async ({ answer }) => (await answer).status));
      assert.ok(!statuses.includes(400), statuses.join(' '));
    } finally {
      await served.close();
    }
  });
});

/** The longest stretch of `marker` that `text` holds. */
function longestPiece(text: string, marker: string): number {
  let best = 0;
  for (let from = 0; from < marker.length; from++) {
    while (from + best < marker.length && text.includes(marker.slice(from, from + best + 1))) best++;
  }
  return best;
}

test('closing ends waiting legs and open streams with a clear error, within two seconds', async () => {
  const served = await Served.start('pair', SIZES);
  const waiting = served.send('prefill', 'POST', '/generate', generate('alone', 4));
  const running = served.sendPair('/v1/completions', {
    ...generate('', 0),
    prompt: 'tell me a story',
    max_tokens: 1000,
    ignore_eos: true,
    stream: true,
  });
  await until(() => running.decode.soFar() !== '' && served.server.waitingLegs === 1, 'one waits and one runs');
  const begunMs = clock.nowMs();
  await served.close();
  assert.ok(clock.nowMs() - begunMs < 2000);
  assert.equal((await waiting.answer).status, 503);
  const frames = framesOf((await running.decode.answer).text);
  const last = frames.at(-2);
  assert.ok(last.error?.code === 503 || last.choices?.[0].finish_reason === 'length', JSON.stringify(last));
});
