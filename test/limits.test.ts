/**
 * Goal: the largest prompt that is served, and not one token more, whichever of the three numbers sets it; and what becomes of
 * the output. Method: the whole program with small sizes; one byte is one token, so lengths are exact.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { countTokens, renderChat } from '../src/tokenizer/bytes.js';
import { type Served, startServe } from './support/program.js';

const KEY = 'limits-key';
const CONTEXT = 512;
/** Bytes of the template around one message of a user. */
const TEMPLATE_TOKENS = countTokens(renderChat([{ role: 'user', content: '' }]));

interface Answer {
  readonly status: number;
  /** Of an answer. */
  readonly finishReason: string | undefined;
  readonly promptTokens: number | undefined;
  readonly completionTokens: number | undefined;
  /** Of an error. */
  readonly code: string | undefined;
  readonly param: string | null | undefined;
  readonly message: string;
}

interface Body {
  readonly choices?: { readonly finish_reason: string }[];
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number };
  readonly error?: { readonly code: string; readonly param: string | null; readonly message: string };
}

type Route = 'completions' | 'chat/completions';

/** Asks with a prompt of exactly `tokens` tokens, template included; words of letters, so that nothing repeats. */
async function ask(served: Served, route: Route, tokens: number, maxTokens: unknown): Promise<Answer> {
  const length = route === 'completions' ? tokens : tokens - TEMPLATE_TOKENS;
  const text = Array.from({ length }, (_, at) => 'abcdefghijklmnopqrstuvwxyz'[(at * at + (at >> 3)) % 26]).join('');
  const prompt = route === 'completions' ? { prompt: text } : { messages: [{ role: 'user', content: text }] };
  const limit = maxTokens === undefined ? {} : { max_tokens: maxTokens };
  const response = await served.post(`/v1/${route}`, KEY, { model: 'lab', ...prompt, ...limit });
  const body = (await response.json()) as Body;
  return {
    status: response.status,
    finishReason: body.choices?.[0]?.finish_reason,
    promptTokens: body.usage?.prompt_tokens,
    completionTokens: body.usage?.completion_tokens,
    code: body.error?.code,
    param: body.error?.param,
    message: body.error?.message ?? '',
  };
}

const ROUTES: readonly Route[] = ['completions', 'chat/completions'];

const CASES = [
  { by: 'advertised context', limit: CONTEXT - 1, flags: [] },
  { by: 'prefill pool', limit: 256, flags: ['--prefill-pool', '256'] },
  { by: 'decode pool', limit: 256, flags: ['--decode-pool', '256'] },
  // Both pools below the context: the smaller one counts, and is named.
  { by: 'decode pool', limit: 240, flags: ['--prefill-pool', '256', '--decode-pool', '240'] },
] as const;

for (const { by, limit, flags } of CASES) {
  describe(`where the ${by} sets the limit (${[...flags].join(' ') || 'defaults'})`, () => {
    let served: Served;
    before(async () => {
      served = await startServe(['--context', String(CONTEXT), '--tenant', `acme=${KEY}`, ...flags]);
    });
    after(() => served.stop());

    test('the limit is advertised, and what sets it is said', () => {
      assert.deepEqual([served.facts.effectiveLimit, served.facts.limitedBy], [limit, by]);
    });

    for (const route of ROUTES) {
      test(`${route}: prompts below and at the limit get one token, one above is refused with both numbers`, async () => {
        for (const tokens of [limit - 1, limit]) {
          const answer = await ask(served, route, tokens, 1);
          assert.equal(answer.status, 200, answer.message);
          assert.deepEqual([answer.promptTokens, answer.completionTokens], [tokens, 1]);
          assert.equal(answer.finishReason, 'length');
        }
        const refused = await ask(served, route, limit + 1, 1);
        assert.deepEqual([refused.status, refused.code], [400, 'context_length_exceeded']);
        assert.equal(refused.param, route === 'completions' ? 'prompt' : 'messages');
        assert.equal(
          refused.message,
          `Expected a prompt of at most ${limit} tokens (set by the ${by}), got ${limit + 1} tokens with max_tokens 1.`,
        );
      });
    }

    test('without max_tokens a prompt at the limit gets what is left', async () => {
      const answer = await ask(served, 'completions', limit, undefined);
      assert.equal(answer.status, 200, answer.message);
      const left = CONTEXT - limit;
      const room = served.facts.decodePool - limit + 1;
      // The lab model may end by itself before.
      assert.ok(answer.completionTokens! <= Math.min(left, room));
      const refused = await ask(served, 'completions', limit + 1, undefined);
      assert.match(
        refused.message,
        new RegExp(`at most ${limit} tokens .*got ${limit + 1} tokens with no max_tokens\\.$`),
      );
    });
  });
}

describe('output', () => {
  let served: Served;
  before(async () => {
    served = await startServe(['--context', String(CONTEXT), '--decode-pool', '256', '--tenant', `acme=${KEY}`]);
  });
  after(() => served.stop());

  for (const maxTokens of [0, -1, 1.5, 'five', true, [5], Number.MAX_SAFE_INTEGER + 1]) {
    test(`max_tokens ${JSON.stringify(maxTokens)} is refused as what it is`, async () => {
      const answer = await ask(served, 'completions', 10, maxTokens);
      assert.deepEqual([answer.status, answer.code, answer.param], [400, 'invalid_request', 'max_tokens']);
      assert.match(answer.message, /^Expected `max_tokens` to be a whole number of at least 1, got /);
    });
  }

  test('max_tokens 1000000000 is refused with the counted tokens, itself and the context, in plain digits', async () => {
    const answer = await ask(served, 'completions', 10, 1e9);
    assert.deepEqual([answer.status, answer.code, answer.param], [400, 'context_length_exceeded', 'max_tokens']);
    assert.equal(
      answer.message,
      'Expected prompt and output of at most 512 tokens together (set by the advertised context), got a prompt of 10 tokens with max_tokens 1000000000.',
    );
  });

  test('prompt and output fill the context to the token, and not beyond', async () => {
    assert.equal((await ask(served, 'completions', 10, CONTEXT - 10)).status, 200);
    const above = await ask(served, 'completions', 10, CONTEXT - 9);
    assert.deepEqual([above.status, above.code], [400, 'context_length_exceeded']);
    assert.match(above.message, /at most 512 tokens together .* prompt of 10 tokens with max_tokens 503\.$/);
  });

  test('only an output too large for the decode pool is cut to it, and says length', async () => {
    const answer = await ask(served, 'completions', 200, 300);
    assert.equal(answer.status, 200);
    // The last token's KV is never stored: 256 - 200 + 1.
    assert.deepEqual([answer.finishReason, answer.completionTokens], ['length', 57]);
  });

  test('max_tokens null counts as absent', async () => {
    const answer = await ask(served, 'completions', 250, null);
    assert.deepEqual([answer.status, answer.finishReason, answer.completionTokens], [200, 'length', 7]);
  });

  for (const [what, body] of [
    ['an empty prompt', { prompt: '' }],
    ['an empty list', { prompt: [] }],
    ['no prompt', {}],
    ['no messages', { messages: [] }],
  ] as const) {
    test(`${what} is refused`, async () => {
      const route = 'messages' in body ? 'chat/completions' : 'completions';
      const response = await served.post(`/v1/${route}`, KEY, { model: 'lab', max_tokens: 1, ...body });
      assert.equal(response.status, 400);
      assert.equal(((await response.json()) as Body).error?.code, 'invalid_request');
    });
  }
});

test('with the sizes that nobody sets, 4,095 tokens are served and 4,096 are not', async () => {
  const served = await startServe(['--tenant', `acme=${KEY}`]);
  try {
    const served200 = await ask(served, 'completions', 4095, 1);
    assert.deepEqual([served200.status, served200.promptTokens], [200, 4095]);
    const refused = await ask(served, 'completions', 4096, 1);
    assert.deepEqual([refused.status, refused.code], [400, 'context_length_exceeded']);
    assert.match(refused.message, /at most 4095 tokens \(set by the advertised context\), got 4096 tokens/);
  } finally {
    await served.stop();
  }
});
