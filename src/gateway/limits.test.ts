/**
 * Goal: what fits is served and what does not is refused with its numbers. Method: three gateways, each limited by another
 * number, asked at the limit and one above it, over real HTTP.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Harness, startHarness, TEMPLATE_TOKENS } from '../../test/support/gateway-harness.js';

const TEXT = '/v1/completions';
const prompt = (tokens: number): string => 'x'.repeat(tokens);

interface Answer {
  choices: { text: string; finish_reason: string }[];
  usage: { prompt_tokens: number; completion_tokens: number };
}

const worlds = [
  { limitedBy: 'advertised context', limit: 99, engine: { context: 100, prefillPool: 128, decodePool: 256 } },
  { limitedBy: 'prefill pool', limit: 64, engine: { context: 100, prefillPool: 64, decodePool: 256 } },
  { limitedBy: 'decode pool', limit: 48, engine: { context: 100, prefillPool: 128, decodePool: 48 } },
];

for (const { limitedBy, limit, engine } of worlds) {
  describe(`limited by the ${limitedBy}`, () => {
    let harness: Harness;
    before(async () => {
      harness = await startHarness({ engine });
    });
    after(() => harness.close());

    const ask = (tokens: number, extra: Record<string, unknown> = {}): Promise<Response> =>
      harness.post(TEXT, { model: 'lab', prompt: prompt(tokens), ...extra });

    for (const tokens of [limit - 1, limit]) {
      test(`a prompt of ${tokens} tokens is served with one token of output`, async () => {
        const response = await ask(tokens, { max_tokens: 1 });
        assert.equal(response.status, 200);
        const { usage } = (await response.json()) as Answer;
        assert.deepEqual([usage.prompt_tokens, usage.completion_tokens], [tokens, 1]);
      });
    }

    test(`a prompt of ${limit + 1} tokens is refused with the numbers and the words of what set the limit`, async () => {
      const before = harness.engine.runs.length;
      const response = await ask(limit + 1, { max_tokens: 7 });
      assert.equal(response.status, 400);
      const { error } = (await response.json()) as { error: { message: string; code: string; param: string } };
      assert.equal(error.code, 'context_length_exceeded');
      assert.equal(error.param, 'prompt');
      for (const part of [String(limit + 1), 'max_tokens 7', `at most ${limit} tokens`, limitedBy]) {
        assert.ok(error.message.includes(part), `${part} in: ${error.message}`);
      }
      assert.equal(harness.engine.runs.length, before, 'a refused request never reaches the engine');
    });
  });
}

describe('output', () => {
  let harness: Harness;
  before(async () => {
    harness = await startHarness({ engine: { context: 100, prefillPool: 128, decodePool: 64 } });
  });
  after(() => harness.close());

  const ask = (tokens: number, extra: Record<string, unknown> = {}): Promise<Response> =>
    harness.post(TEXT, { model: 'lab', prompt: prompt(tokens), ...extra });
  const lastMaxTokens = (): number => harness.engine.runs.at(-1)!.request.maxTokens;

  test('prompt and max_tokens exactly at the context are admitted, and clamped to the decode pool', async () => {
    const response = await ask(40, { max_tokens: 60 });
    assert.equal(response.status, 200);
    // 64 stored tokens: 40 of the prompt and all of 25 but the last.
    assert.equal(lastMaxTokens(), 25);
    const { choices } = (await response.json()) as Answer;
    assert.equal(choices[0]!.finish_reason, 'length');
    assert.equal(choices[0]!.text.length, 25);
  });

  test('one token above the context is refused, naming max_tokens and the advertised context', async () => {
    const response = await ask(40, { max_tokens: 61 });
    assert.equal(response.status, 400);
    const { error } = (await response.json()) as { error: { message: string; code: string; param: string } };
    assert.deepEqual([error.code, error.param], ['context_length_exceeded', 'max_tokens']);
    for (const part of ['40 tokens', 'max_tokens 61', '100', 'advertised context']) {
      assert.ok(error.message.includes(part), error.message);
    }
  });

  test('max_tokens of a thousand million is context_length_exceeded', async () => {
    const response = await ask(5, { max_tokens: 1_000_000_000 });
    assert.equal(response.status, 400);
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    assert.equal(error.code, 'context_length_exceeded');
    assert.match(error.message, /max_tokens 1000000000\b/);
  });

  test('without max_tokens the rest of the context is granted', async () => {
    assert.equal((await ask(60)).status, 200);
    assert.equal(lastMaxTokens(), 5);
    const wide = await startHarness({ engine: { context: 100, prefillPool: 128, decodePool: 256 } });
    await wide.post(TEXT, { model: 'lab', prompt: prompt(60) });
    assert.equal(wide.engine.runs.at(-1)!.request.maxTokens, 40);
    await wide.close();
  });

  test('a chat is counted with its template', async () => {
    const response = await harness.post('/v1/chat/completions', {
      model: 'lab',
      messages: [{ role: 'user', content: prompt(64 - TEMPLATE_TOKENS + 1) }],
      max_tokens: 1,
    });
    assert.equal(response.status, 400);
    const { error } = (await response.json()) as { error: { message: string; param: string } };
    assert.match(error.message, /got 65 tokens/);
    assert.equal(error.param, 'messages');
  });
});
