/**
 * Goal: an answer's JSON is read by an allow-list, whatever stands beside it. Method: parts as engines write them, each with what must
 * not pass, and the captured answers of a real pair.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { SseReader } from '../../wire/index.js';
import { type AnswerPart, readAnswer, readChunk, type Wanted } from './read.js';

const ALL: Wanted = { models: null, tools: true, logprobs: true, reasoning: true };
const PLAIN: Wanted = { models: null, tools: false, logprobs: false, reasoning: false };

const delta = (inner: unknown, choice: Record<string, unknown> = {}): string =>
  JSON.stringify({ id: 'x', secret: 'field', choices: [{ index: 0, delta: inner, secret: 'field', ...choice }] });

function part(json: string, wanted: Wanted = ALL): Extract<AnswerPart, { kind: 'part' }> {
  const read = readChunk(json, wanted);
  assert.ok(read.kind === 'part', read.kind === 'failure' ? read.failure : '');
  assert.ok(!JSON.stringify(read).includes('secret'), 'a field that is not on the list passed');
  return read;
}

function failure(json: string, wanted: Wanted = ALL): string {
  const read = readChunk(json, wanted);
  assert.ok(read.kind === 'failure', 'expected a failure');
  assert.ok(!read.failure.includes('secret'), read.failure);
  return read.failure;
}

const CALL = { index: 1, id: 'c', type: 'function', secret: 1, function: { name: 'f', arguments: '{"a', secret: 1 } };
const ROW = { token: 'a', logprob: -0.5, bytes: [115, 101], top_logprobs: [{ token: 'b', logprob: -1, bytes: null }] };

describe('a part of an answer', () => {
  test('of plain text is no piece, and its empty fields say nothing', () => {
    const read = part(
      delta({ content: 'hi', reasoning_content: null, tool_calls: null, refusal: null, role: 'assistant' }),
    );
    assert.deepEqual(read, { kind: 'part', text: 'hi', pieces: [], finishReason: null, usage: null });
  });

  test('with everything in it is read in order, and no further', () => {
    const read = part(
      delta(
        { content: 'hi', reasoning_content: 'hm', refusal: 'no', tool_calls: [CALL], secret: 1 },
        { logprobs: { content: [ROW], secret: 1 } },
      ),
    );
    assert.equal(read.text, '');
    assert.deepEqual(read.pieces, [
      { kind: 'reasoning', text: 'hm' },
      { kind: 'text', text: 'hi', logprobs: [{ token: 'a', logprob: -0.5, top: [{ token: 'b', logprob: -1 }] }] },
      { kind: 'refusal', text: 'no' },
      { kind: 'tool-call', index: 1, id: 'c', name: 'f', arguments: '{"a' },
    ]);
  });

  test('that nobody asked for is left out, or is an error where it can not be left out', () => {
    const quiet = delta(
      { content: 'hi', reasoning_content: 'secret' },
      { logprobs: { content: [{ token: 'secret' }] } },
    );
    assert.equal(part(quiet, PLAIN).text, 'hi');
    assert.match(failure(delta({ tool_calls: [CALL] }), PLAIN), /not asked for/);
    assert.match(failure(delta({}, { finish_reason: 'tool_calls' }), PLAIN), /finish reason tool_calls/);
    assert.equal(part(delta({}, { finish_reason: 'tool_calls' })).finishReason, 'tool_calls');
    assert.equal(part(delta({}, { finish_reason: 'content_filter' }), PLAIN).finishReason, 'content_filter');
  });

  test('takes reasoning under either name', () => {
    assert.deepEqual(part(delta({ reasoning: 'hm' })).pieces, [{ kind: 'reasoning', text: 'hm' }]);
  });

  test('of a whole answer numbers its calls by their place', () => {
    const read = readAnswer(
      JSON.stringify({
        choices: [
          {
            message: {
              content: null,
              tool_calls: [
                { ...CALL, index: undefined },
                { ...CALL, index: undefined, id: 'd' },
              ],
            },
          },
        ],
      }),
      ALL,
    );
    assert.ok(read.kind === 'part');
    assert.deepEqual(
      read.pieces.map((piece) => piece.kind === 'tool-call' && [piece.index, piece.id]),
      [
        [0, 'c'],
        [1, 'd'],
      ],
    );
  });

  test('of the older route has its probabilities in columns', () => {
    const read = part(
      JSON.stringify({
        choices: [
          {
            text: 'ab',
            logprobs: {
              tokens: ['a', 'b'],
              token_logprobs: [null, -2],
              top_logprobs: [null, { b: -2, c: -3 }],
              text_offset: [0, 1],
            },
          },
        ],
      }),
    );
    assert.deepEqual(read.pieces, [
      {
        kind: 'text',
        text: 'ab',
        logprobs: [
          { token: 'a', logprob: -9999, top: [] },
          {
            token: 'b',
            logprob: -2,
            top: [
              { token: 'b', logprob: -2 },
              { token: 'c', logprob: -3 },
            ],
          },
        ],
      },
    ]);
  });

  test('under another model is an error, without its name', () => {
    const models = new Set(['lab']);
    const named = (model: unknown): string => JSON.stringify({ model, choices: [] });
    assert.match(failure(named('secret'), { ...ALL, models }), /another model/);
    assert.equal(part(named('lab'), { ...ALL, models }).text, '');
    assert.equal(part(JSON.stringify({ choices: [] }), { ...ALL, models }).text, '');
  });

  const nonsense: [string, string, RegExp][] = [
    ['null', 'null', /no object|not an object/],
    ['a list', '[]', /not an object/],
    ['half a JSON', '{"choices":[{', /not JSON/],
    ['no choices', '{}', /no choices/],
    ['two choices', '{"choices":[{},{}]}', /2 choices/],
    ['a choice of another place', '{"choices":[{"index":1,"delta":{"content":"secret"}}]}', /not asked for/],
    ['a delta that is text', '{"choices":[{"delta":"secret"}]}', /no object/],
    ['content that is a list', delta({ content: ['secret'] }), /something else than text/],
    ['reasoning that is a number', delta({ reasoning_content: 7 }), /something else than text/],
    ['a refusal that is a list', delta({ refusal: ['secret'] }), /something else than text/],
    ['a call that is null', delta({ tool_calls: [null] }), /tool call/],
    ['calls that are no list', delta({ tool_calls: { secret: 1 } }), /tool call/],
    ['a call at place −1', delta({ tool_calls: [{ ...CALL, index: -1 }] }), /tool call/],
    ['a call at place 1e9', delta({ tool_calls: [{ ...CALL, index: 1e9 }] }), /tool call/],
    ['a call of another type', delta({ tool_calls: [{ ...CALL, type: 'custom' }] }), /tool call/],
    ['arguments that are an object', delta({ tool_calls: [{ ...CALL, function: { arguments: {} } }] }), /tool call/],
    [
      'a name of 300 characters',
      delta({ tool_calls: [{ ...CALL, function: { name: 'x'.repeat(300) } }] }),
      /tool call/,
    ],
    ['a probability above 1', delta({}, { logprobs: { content: [{ token: 'a', logprob: 1 }] } }), /probabilities/],
    [
      'a probability of a word',
      delta({}, { logprobs: { content: [{ token: 'a', logprob: 'secret' }] } }),
      /probabilities/,
    ],
    ['a token that is none', delta({}, { logprobs: { content: [{ logprob: -1 }] } }), /probabilities/],
    ['probabilities that are a list', delta({}, { logprobs: ['secret'] }), /probabilities/],
    ['columns of unequal length', delta({}, { logprobs: { tokens: ['a'], token_logprobs: [] } }), /probabilities/],
    ['a finish reason in words', delta({}, { finish_reason: 'a secret word' }), /finish reason unknown/],
    ['an abort', delta({}, { finish_reason: 'abort' }), /finish reason abort/],
    ['a usage of −1', '{"choices":[],"usage":{"prompt_tokens":-1,"completion_tokens":0}}', /usage/],
  ];
  for (const [title, json, words] of nonsense) {
    test(`that is ${title} is an error, told without a word of the engine's`, () => assert.match(failure(json), words));
  }

  const SEED = 613_001;
  test(`is read or refused, never thrown at, whatever JSON it is (seed ${SEED})`, () => {
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { maxDepth: 5 },
        fc.constantFrom(null, 0, -1, 1.5, '', 'a', true, 1e308),
        fc.array(tie('any'), { maxLength: 3 }),
        fc.dictionary(
          fc.constantFrom(
            'choices',
            'delta',
            'message',
            'content',
            'tool_calls',
            'function',
            'arguments',
            'name',
            'logprobs',
            'tokens',
            'token_logprobs',
            'top_logprobs',
            'token',
            'logprob',
            'usage',
            'error',
            'text',
            'index',
            'model',
            'finish_reason',
            'reasoning_content',
            'refusal',
            '__proto__',
          ),
          tie('any'),
          { maxKeys: 5 },
        ),
      ),
    })).any;
    fc.assert(
      fc.property(value, (any) => {
        for (const json of [
          JSON.stringify(any),
          JSON.stringify({ choices: [any] }),
          JSON.stringify({ choices: [{ delta: any, logprobs: any }] }),
        ]) {
          assert.ok(['part', 'failure'].includes(readChunk(json, ALL).kind));
          assert.ok(['part', 'failure'].includes(readAnswer(json, ALL).kind));
        }
      }),
      { seed: SEED, numRuns: 2000 },
    );
  });
});

describe('a captured answer of SGLang 0.5.18 as a pair', () => {
  interface Captured {
    readonly body: string;
  }
  const captured = JSON.parse(
    readFileSync(new URL('../../../../test/fixtures/engines/sglang-0.5.18-pd.json', import.meta.url), 'utf8'),
  ) as Record<'chatStream' | 'chatWhole' | 'textStream' | 'errorInStream', { prefill: Captured; decode: Captured }>;
  const events = (body: string): string[] => {
    const data: string[] = [];
    new SseReader((each) => data.push(each)).push(Buffer.from(body));
    return data.filter((each) => each !== '[DONE]');
  };

  for (const route of ['chatStream', 'textStream'] as const) {
    test(`is read from its ${route}: eight dashes, cut at the length`, () => {
      const parts = events(captured[route].decode.body).map((data) => part(data, PLAIN));
      assert.equal(parts.map(({ text }) => text).join(''), '--------');
      assert.equal(parts.at(-1)!.finishReason, 'length');
    });
  }

  test('is read whole, with the count of each leg', () => {
    const prefill = readAnswer(captured.chatWhole.prefill.body);
    const decode = readAnswer(captured.chatWhole.decode.body);
    assert.ok(prefill.kind === 'part' && decode!.kind === 'part');
    assert.deepEqual([prefill.usage?.promptTokens, decode.usage?.promptTokens], [1, 3000]);
  });

  test('is an error where the error stands inside a 200', () => {
    const read = events(captured.errorInStream.decode.body).map((data) => readChunk(data));
    assert.deepEqual(
      read.map(({ kind }) => kind),
      ['failure'],
    );
  });
});
