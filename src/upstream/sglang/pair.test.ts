/**
 * Goal: of a prefill and a decode answer, whichever is wrong ends the request before a word of it leaves, and the other leg with it.
 * Method: two servers that answer each leg as written here; real HTTP.
 */
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { SystemClock } from '../../base/clock.js';
import {
  answerJson,
  answerWell,
  beginStream,
  chunkOf,
  endStream,
  type FakeLeg,
  wholeAnswer,
} from '../../../test/support/fake-pair.js';
import { failure, fakePair, Heard, type PairFixture, TOKENS } from '../../../test/support/pair-fixture.js';
import { until } from '../../../test/support/gateway-harness.js';
import type { SglangOptions } from './single.js';

const clock = new SystemClock();
const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((close) => close()));
});
const pair = (prefills = 1, options: Partial<SglangOptions> = {}): Promise<PairFixture> =>
  fakePair(open, prefills, options);

describe('both legs of a request', () => {
  test('carry the same unguessable room as digits, one id and the salt; prefill is asked whole, decode as a stream with usage', async () => {
    const { prefills, decode, upstream } = await pair();
    const engineFields = {
      bootstrap_host: 'evil',
      bootstrap_port: 1,
      bootstrap_room: 5,
      rid: 'a',
      cache_salt: 'theirs',
    };
    for (let i = 0; i < 2; i++) await new Heard(upstream, { engineFields }).released;
    const [p, d] = [prefills[0]!.legs[0]!, decode.legs[0]!];
    const rooms = [...prefills[0]!.legs, ...decode.legs].map(({ text }) => /"bootstrap_room":(\d+)\}$/.exec(text)![1]!);
    assert.deepEqual([rooms[0], rooms[1]], [rooms[2], rooms[3]]);
    assert.notEqual(rooms[0], rooms[1]);
    assert.ok(BigInt(rooms[0]!) < 2n ** 63n);
    for (const { body } of [p, d]) {
      assert.deepEqual([body.bootstrap_host, body.bootstrap_port], ['127.0.0.1', 18998]);
      assert.deepEqual([body.rid, body.cache_salt, body.n], ['a'.repeat(32), 'ab'.repeat(32), 1]);
    }
    assert.equal(p.text.match(/bootstrap_room/g)!.length, 1);
    assert.deepEqual([p.body.stream, p.body.stream_options], [false, undefined]);
    assert.deepEqual(
      [d.body.stream, d.body.stream_options],
      [true, { include_usage: true, continuous_usage_stats: true }],
    );
  });

  test('say their counts before the first text: both, or prefill’s alone where decode says its own at the end', async () => {
    const { decode, upstream } = await pair();
    for (const promptTokens of [TOKENS, null]) {
      decode.play = (leg) => answerWell(leg, 'decode', promptTokens !== null);
      const heard = new Heard(upstream);
      await heard.released;
      assert.deepEqual(heard.counts, { promptTokens, prefillTokens: TOKENS });
      assert.deepEqual(heard.events, ['started', 'text', 'end', 'released']);
      assert.ok(heard.end?.kind === 'finished');
      assert.deepEqual([heard.end.usage.promptTokens, heard.end.usage.prefillTokens], [TOKENS, TOKENS]);
    }
  });

  test('decode’s text waits for prefill’s answer, and prefill’s count of 1 ends the request before a byte of it', async () => {
    const { prefills, decode, upstream } = await pair();
    prefills[0]!.play = () => {};
    const heard = new Heard(upstream, {}, ({ run, counts }) => {
      assert.deepEqual(counts, { promptTokens: TOKENS, prefillTokens: 1 });
      run!.abort();
    });
    await until(clock, 'decode has answered all', () => decode.legs[0]?.response.writableFinished === true);
    assert.deepEqual(heard.events, []);
    const leg = prefills[0]!.legs[0]!;
    answerJson(leg, wholeAnswer(leg, { promptTokens: 1 }));
    await heard.released;
    assert.deepEqual([heard.events, heard.text, heard.end?.kind], [['started', 'end', 'released'], '', 'aborted']);
  });

  test('a whole answer of decode waits too', async () => {
    const { prefills, decode, upstream } = await pair();
    prefills[0]!.play = () => {};
    const heard = new Heard(upstream, { streamed: false });
    await until(clock, 'decode has answered', () => decode.legs[0]?.response.writableFinished === true);
    assert.equal(decode.legs[0]!.body.stream, false);
    assert.deepEqual(heard.events, []);
    answerWell(prefills[0]!.legs[0]!, 'prefill');
    await heard.released;
    assert.deepEqual(heard.counts, { promptTokens: TOKENS, prefillTokens: TOKENS });
    assert.equal(heard.text, 'x');
  });
});

const OVER_LENGTH = {
  object: 'error',
  message: 'Input length (2042 tokens) exceeds the maximum allowed length (2042 tokens). Use a shorter input.',
  type: 'BadRequestError',
  param: null,
  code: 400,
};

describe('a prefill that fails while decode would answer', () => {
  const ways: Record<string, [string, (leg: FakeLeg) => void]> = {
    'refuses the length': ['context_length_exceeded', (leg) => answerJson(leg, JSON.stringify(OVER_LENGTH), 400)],
    'refuses a field': [
      'invalid_request',
      (leg) => answerJson(leg, JSON.stringify({ ...OVER_LENGTH, message: 'Invalid grammar' }), 400),
    ],
    'refuses inside a 200': [
      'context_length_exceeded',
      (leg) => answerJson(leg, JSON.stringify({ error: OVER_LENGTH })),
    ],
    'says an error as its whole 200': [
      'context_length_exceeded',
      (leg) => answerJson(leg, JSON.stringify(OVER_LENGTH)),
    ],
    'ends as aborted': ['engine_failed', (leg) => answerJson(leg, wholeAnswer(leg, { finishReason: 'abort' }))],
    'ends as aborted with an object': [
      'engine_failed',
      (leg) => answerJson(leg, wholeAnswer(leg, { finishReason: { type: 'abort', message: 'x' } })),
    ],
    'ends at length with no token': [
      'engine_failed',
      (leg) => answerJson(leg, wholeAnswer(leg, { completionTokens: 0 })),
    ],
    'says no count': [
      'verification_failed by usage',
      (leg) => answerJson(leg, JSON.stringify({ choices: [{ finish_reason: 'length' }] })),
    ],
    'says a count that is none': [
      'verification_failed by usage',
      (leg) => answerJson(leg, wholeAnswer(leg, { promptTokens: -1 })),
    ],
    'sends nothing': ['engine_failed', (leg) => answerJson(leg, '')],
    'sends no JSON': ['engine_failed', (leg) => answerJson(leg, '<html>')],
    'is full': [
      'no_capacity',
      (leg) => answerJson(leg, JSON.stringify({ ...OVER_LENGTH, message: 'The request queue is full.' }), 503),
    ],
    'found other pages': [
      'verification_failed by checksum',
      (leg) => answerJson(leg, JSON.stringify({ ...OVER_LENGTH, message: 'KV checksum mismatch' }), 500),
    ],
    'is cut': [
      'engine_failed',
      (leg) => {
        leg.response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
        leg.response.write('{"choices":');
        clock.soon(() => leg.response.destroy());
      },
    ],
    'is reset': ['engine_unavailable', (leg) => void leg.response.destroy()],
  };
  for (const [words, [code, play]] of Object.entries(ways)) {
    test(`it ${words}: the request ends with that, and decode is cancelled`, async () => {
      const { prefills, decode, upstream } = await pair();
      // Decode goes on, as one does that waits for its pages.
      decode.play = (leg) => {
        beginStream(leg);
        leg.response.write(chunkOf(leg, 'secret', 1, null));
      };
      prefills[0]!.play = (leg) =>
        void until(clock, 'decode began', () => decode.legs.length === 1).then(() => play(leg));
      const heard = new Heard(upstream);
      await heard.released;
      assert.deepEqual([heard.events, heard.text, failure(heard.end)], [['end', 'released'], '', code]);
      assert.ok(heard.end?.kind === 'failed' && !/Input|grammar|mismatch/.test(heard.end.detail));
      await until(clock, 'decode is cancelled', () => decode.legs[0]!.isGone());
    });
  }

  test('never answers: it ends at the bound of quiet, and decode with it', async () => {
    const { prefills, decode, upstream } = await pair(1, { firstByteMsMax: 150 });
    prefills[0]!.play = () => {};
    decode.play = beginStream;
    const heard = new Heard(upstream);
    await heard.released;
    assert.equal(failure(heard.end), 'engine_unavailable');
    assert.ok(heard.end?.kind === 'failed' && heard.end.isTransport === true);
    await until(clock, 'decode is cancelled', () => decode.legs[0]!.isGone());
  });
});

describe('a decode that fails', () => {
  test('while prefill works: prefill is cancelled at once', async () => {
    const { prefills, decode, upstream } = await pair();
    prefills[0]!.play = () => {};
    const message = 'Decode transfer failed for request';
    decode.play = (leg) =>
      void until(clock, 'prefill began', () => prefills[0]!.legs.length === 1).then(() =>
        answerJson(leg, JSON.stringify({ ...OVER_LENGTH, message, type: '500', code: 500 }), 500),
      );
    const heard = new Heard(upstream);
    await heard.released;
    assert.deepEqual([heard.events, failure(heard.end)], [['end', 'released'], 'engine_failed']);
    await until(clock, 'prefill is cancelled', () => prefills[0]!.legs[0]!.isGone());
  });

  test('after prefill has succeeded: inside its 200, by a checksum, by a cut, by an end of no reason', async () => {
    const { decode, upstream, notices } = await pair();
    const error = { object: 'error', message: 'KV checksum mismatch', type: 'INTERNAL_SERVER_ERROR', code: 500 };
    const ways: [string, (leg: FakeLeg) => void][] = [
      ['verification_failed by checksum', (leg) => leg.response.end(`data: ${JSON.stringify({ error })}\n\n`)],
      [
        'engine_failed',
        (leg) => {
          leg.response.write(chunkOf(leg, 'x', 1, null).slice(0, -2));
          leg.response.end();
        },
      ],
      ['engine_failed', (leg) => leg.response.end(chunkOf(leg, '', 1, 'abort'))],
      ['engine_failed', (leg) => leg.response.end()],
      ['verification_failed by usage', (leg) => leg.response.end(chunkOf(leg, '', 1, 'length', false))],
    ];
    for (const [code, play] of ways) {
      decode.play = (leg) => {
        beginStream(leg);
        play(leg);
      };
      const heard = new Heard(upstream);
      await heard.released;
      assert.deepEqual([failure(heard.end), heard.text], [code, '']);
    }
    assert.deepEqual(
      notices.map(({ kind, severity }) => `${severity} ${kind}`),
      ['critical corruption-said'],
    );
  });

  test('with an answer of no token: the counts are passed on as they are, for the gateway to judge', async () => {
    const { decode, upstream } = await pair();
    decode.play = (leg) => {
      beginStream(leg);
      leg.response.write(chunkOf(leg, '', 0, 'length'));
      endStream(leg, 0);
    };
    const heard = new Heard(upstream);
    await heard.released;
    assert.ok(heard.end?.kind === 'finished' && heard.end.usage.completionTokens === 0);
    assert.deepEqual(heard.events, ['started', 'end', 'released']);
  });
});

describe('an abort', () => {
  test('closes both legs when the transfer is over, and the request is released when both are', async () => {
    const { prefills, decode, upstream } = await pair();
    decode.play = (leg) => {
      beginStream(leg);
      leg.response.write(chunkOf(leg, 'x', 1, null));
    };
    const heard = new Heard(upstream);
    await until(clock, 'it has begun', () => heard.text === 'x');
    assert.deepEqual(heard.run!.nodes, [new URL(prefills[0]!.url).host, new URL(decode.url).host]);
    heard.run!.abort();
    await heard.released;
    assert.deepEqual([heard.events, heard.end?.kind], [['started', 'text', 'end', 'released'], 'aborted']);
    await until(clock, 'decode is closed', () => decode.legs[0]!.isGone());
  });

  const ends: Record<string, (legs: { prefill: FakeLeg; decode: FakeLeg }) => void> = {
    'prefill answers': ({ prefill }) => answerWell(prefill, 'prefill'),
    'prefill refuses': ({ prefill }) => answerJson(prefill, '{"error":{"message":"no"}}', 400),
    'decode has text': ({ decode }) => void decode.response.write(chunkOf(decode, 'x', 1, null)),
    'decode ends': ({ decode }) => decode.response.destroy(),
  };
  for (const [words, play] of Object.entries(ends)) {
    test(`while prefill may still send pages ends the request, and closes its legs only when ${words}`, async () => {
      const { prefills, decode, upstream } = await pair();
      prefills[0]!.play = () => {};
      decode.play = beginStream;
      const heard = new Heard(upstream);
      await until(clock, 'both legs are there', () => prefills[0]!.legs.length + decode.legs.length === 2);
      heard.run!.abort();
      heard.run!.abort();
      assert.deepEqual([heard.events, heard.end?.kind], [['end'], 'aborted']);
      // What is closed at once is seen by the nodes before another request comes to its end.
      const other = new Heard(upstream);
      await until(clock, 'the other is there', () => prefills[0]!.legs.length + decode.legs.length === 4);
      const first = { prefill: prefills[0]!.legs[0]!, decode: decode.legs[0]! };
      assert.deepEqual([first.prefill.isGone(), first.decode.isGone(), heard.isReleased], [false, false, false]);
      play(first);
      await heard.released;
      assert.deepEqual([heard.events, heard.text], [['end', 'released'], '']);
      const isOver = (leg: FakeLeg): boolean => leg.isGone() || leg.response.writableEnded;
      await until(clock, 'both are closed', () => isOver(first.prefill) && first.decode.isGone());
      assert.equal(other.isReleased, false);
    });
  }

  test('of the whole upstream closes what is still settling', async () => {
    const { prefills, decode, upstream } = await pair();
    prefills[0]!.play = () => {};
    decode.play = beginStream;
    const runs = [new Heard(upstream), new Heard(upstream)];
    await until(clock, 'all legs are there', () => prefills[0]!.legs.length + decode.legs.length === 4);
    runs[0]!.run!.abort();
    await upstream.close();
    await Promise.all(runs.map(({ released }) => released));
    await until(clock, 'all are closed', () => [...prefills[0]!.legs, ...decode.legs].every((leg) => leg.isGone()));
  });
});
