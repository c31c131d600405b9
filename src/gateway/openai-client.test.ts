/** Goal: the official client works as it is, streamed and whole, and so do its error classes. Method: the client itself. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import OpenAI from 'openai';
import { ACME_KEY, type Harness, startHarness, TEMPLATE_TOKENS, until } from '../../test/support/gateway-harness.js';

describe('the official openai client', () => {
  let harness: Harness;
  let client: OpenAI;
  before(async () => {
    harness = await startHarness({ tenantOpenMax: 2 });
    client = connectAs(ACME_KEY);
  });
  after(() => harness.close());

  const connectAs = (apiKey: string): OpenAI =>
    new OpenAI({ apiKey, baseURL: `${harness.url}/v1`, maxRetries: 0, timeout: 5000 });
  const messages = [{ role: 'user' as const, content: 'hello there' }];

  test('chats, whole', async () => {
    const answer = await client.chat.completions.create({ model: 'lab', messages, max_completion_tokens: 10 });
    assert.equal(answer.choices[0]!.message.content, 'user: hell');
    assert.equal(answer.choices[0]!.finish_reason, 'length');
    assert.equal(answer.usage!.prompt_tokens, TEMPLATE_TOKENS + 11);
    assert.match(answer._request_id!, /^[0-9a-f]{32}$/);
  });

  test('chats, streamed, with usage', async () => {
    const stream = await client.chat.completions.create({
      model: 'lab',
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = '';
    let usage: OpenAI.CompletionUsage | null = null;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, 'user: hello there\nassistant: ');
    assert.equal(usage!.completion_tokens, text.length);
  });

  test('gathers a stream with its own helper', async () => {
    const runner = client.chat.completions.stream({ model: 'lab', messages, max_tokens: 6 });
    const final = await runner.finalChatCompletion();
    assert.equal(final.choices[0]!.message.content, 'user: ');
  });

  test('sends an answer of ours back as a message of the next turn', async () => {
    const first = await client.chat.completions.create({ model: 'lab', messages, max_tokens: 4 });
    const next = [...messages, first.choices[0]!.message, { role: 'user' as const, content: 'more' }];
    const answer = await client.chat.completions.create({ model: 'lab', messages: next });
    assert.ok(answer.choices[0]!.message.content!.includes('assistant: user'));
  });

  test('completes text, whole and streamed', async () => {
    const whole = await client.completions.create({ model: 'lab', prompt: 'abc def', stop: ' ' });
    assert.deepEqual([whole.choices[0]!.text, whole.choices[0]!.finish_reason], ['abc', 'stop']);
    let text = '';
    for await (const chunk of await client.completions.create({ model: 'lab', prompt: 'xyz', stream: true })) {
      text += chunk.choices[0]!.text;
    }
    assert.equal(text, 'xyz');
  });

  test('lists models', async () => {
    const ids = (await client.models.list()).data.map((model) => model.id);
    assert.deepEqual(ids, ['lab']);
    assert.equal((await client.models.retrieve('lab')).id, 'lab');
  });

  test('throws AuthenticationError for a wrong key', async () => {
    await assert.rejects(
      connectAs('wrong').models.list(),
      (thrown) => thrown instanceof OpenAI.AuthenticationError && thrown.code === 'invalid_api_key',
    );
  });

  test('throws BadRequestError with code and param', async () => {
    await assert.rejects(
      client.completions.create({ model: 'lab', prompt: 'x'.repeat(300) }),
      (thrown) =>
        thrown instanceof OpenAI.BadRequestError &&
        thrown.code === 'context_length_exceeded' &&
        thrown.param === 'prompt' &&
        thrown.type === 'invalid_request_error',
    );
  });

  test('throws RateLimitError at the tenant’s own bound', async () => {
    harness.engine.hold = 'decode';
    const running = [1, 2].map(() => client.completions.create({ model: 'lab', prompt: 'abc' }));
    await until(harness.clock, 'two run', () => harness.gateway.room.running === 2);
    await assert.rejects(
      client.completions.create({ model: 'lab', prompt: 'abc' }),
      (thrown) => thrown instanceof OpenAI.RateLimitError && thrown.headers?.get('retry-after') === '1',
    );
    harness.engine.hold = 'nothing';
    harness.engine.wake();
    await Promise.all(running);
  });

  test('throws an APIError out of a stream that fails in its middle', async () => {
    const stream = await client.completions.create({ model: 'lab', prompt: 'x'.repeat(120), stream: true });
    await assert.rejects(
      async () => {
        for await (const _ of stream) harness.engine.failWith = { guard: 'tag', message: 'A page was not its own.' };
      },
      (thrown) =>
        thrown instanceof OpenAI.APIError && thrown.message.includes('The engine could not finish this request.'),
    );
    harness.engine.failWith = null;
  });

  test('aborts a stream, and the engine hears of it once', async () => {
    const stream = await client.completions.create({ model: 'lab', prompt: 'x'.repeat(120), stream: true });
    harness.engine.hold = 'decode';
    stream.controller.abort();
    await until(harness.clock, 'it ended', () => harness.engine.runs.at(-1)!.released);
    assert.equal(harness.engine.runs.at(-1)!.aborts, 1);
    harness.engine.hold = 'nothing';
  });
});
