/** Goal: one node answers SGLang's routes in SGLang's shapes. Method: real HTTP to a real engine in two threads. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { framesOf, Served, until } from './harness.test.help.js';

const CUE = ' the password of the day: ';
const WORD = 'KVC-abcdefghijklmnopqrstuvwxyz';
const RECALL = `Remember this.${CUE}${WORD} and some other words that follow it.${CUE}`;
const GREEDY = { temperature: 0 } as const;

describe('a single node', () => {
  let served: Served;
  before(async () => {
    served = await Served.start('single', { context: 1024, prefillPool: 1024, decodePool: 1024 });
  });
  after(async () => {
    await served.close();
  });

  test('completes a text, whole and streamed, with usage and reason', async () => {
    const body = { model: 'lab', prompt: RECALL, max_tokens: WORD.length, ...GREEDY };
    const whole = await served.postJson('/v1/completions', body);
    assert.equal(whole.choices[0].text, WORD);
    assert.equal(whole.choices[0].finish_reason, 'length');
    assert.deepEqual(
      [whole.usage.prompt_tokens, whole.usage.completion_tokens, whole.usage.total_tokens],
      [RECALL.length, WORD.length, RECALL.length + WORD.length],
    );
    const streamed = await served.post('/v1/completions', {
      ...body,
      stream: true,
      stream_options: { include_usage: true },
    });
    assert.equal(streamed.headers['content-type'], 'text/event-stream; charset=utf-8');
    const frames = framesOf(streamed.text);
    assert.equal(frames.at(-1), '[DONE]');
    assert.deepEqual(frames.at(-2).usage, whole.usage);
    assert.deepEqual(frames.at(-2).choices, []);
    const choices = frames.slice(0, -2).map((frame) => frame.choices[0]);
    assert.equal(choices.map((choice) => choice.text).join(''), WORD);
    assert.equal(choices.at(-1).finish_reason, 'length');
  });

  test('chats, whole and streamed', async () => {
    const messages = [{ role: 'user', content: [{ type: 'text', text: RECALL }] }];
    const body = { model: 'lab', messages, max_completion_tokens: 12, ...GREEDY };
    const whole = await served.postJson('/v1/chat/completions', body);
    assert.equal(whole.object, 'chat.completion');
    assert.equal(whole.usage.completion_tokens, 12);
    const frames = framesOf((await served.post('/v1/chat/completions', { ...body, stream: true })).text);
    assert.equal(frames[0].choices[0].delta.role, 'assistant');
    const text = frames.slice(0, -1).map((frame) => frame.choices[0].delta.content ?? '');
    assert.equal(text.join(''), whole.choices[0].message.content);
    assert.equal(frames.at(-2).choices[0].finish_reason, 'length');
  });

  test('generates from a text and from ids, whole and with all of the text in every frame', async () => {
    const sampling_params = { max_new_tokens: WORD.length, ...GREEDY };
    const whole = await served.postJson('/generate', { text: RECALL, sampling_params, rid: 'mine' });
    assert.equal(whole.text, WORD);
    assert.equal(whole.meta_info.id, 'mine');
    assert.deepEqual(whole.meta_info.finish_reason, { type: 'length', length: WORD.length });
    assert.deepEqual(whole.output_ids, [...Buffer.from(WORD)]);
    const { tokens, count } = await served.postJson('/tokenize', { model: 'lab', prompt: RECALL });
    assert.equal(count, RECALL.length);
    const fromIds = await served.post('/generate', { input_ids: tokens, sampling_params, stream: true });
    const frames = framesOf(fromIds.text).slice(0, -1);
    assert.equal(frames.at(-1).text, WORD);
    for (const [i, { text }] of frames.entries()) assert.ok(i === 0 || text.startsWith(frames[i - 1].text));
  });

  test('stops before a stop text, says which, and lets the engine go', async () => {
    const sampling_params = { max_new_tokens: 200, stop: ['nothing', 'lmn'], ...GREEDY };
    const { text, meta_info } = await served.postJson('/generate', { text: RECALL, sampling_params });
    assert.equal(text, 'KVC-abcdefghijk');
    assert.deepEqual(meta_info.finish_reason, { type: 'stop', matched: 'lmn' });
    assert.equal(meta_info.completion_tokens, 'KVC-abcdefghijklmn'.length);
    await served.idle();
  });

  test('gives the same text for the same seed, and characters of several bytes whole', async () => {
    const body = { prompt: `${'ü漢字😀 '.repeat(8)}`, max_tokens: 40, temperature: 1, seed: 7 };
    const one = await served.postJson('/v1/completions', body);
    const other = framesOf((await served.post('/v1/completions', { ...body, stream: true })).text);
    const text = other.slice(0, -1).map((frame) => frame.choices[0].text);
    assert.equal(text.join(''), one.choices[0].text);
  });

  test('says what it is, with the context where SGLang gives the context', async () => {
    for (const path of ['/server_info', '/get_server_info']) {
      const info = await served.getJson(path);
      assert.equal(info.max_total_num_tokens, 1024);
      assert.equal(info.max_req_input_len, 1024);
      assert.equal(info.disaggregation_mode, 'null');
      assert.match(info.version, /^cofferdam-\d+\.\d+\.\d+$/);
      assert.equal(info.internal_states[0].memory_usage.token_capacity, 1024);
      assert.deepEqual(info.cofferdam.guards_off, []);
    }
    assert.equal((await served.getJson('/v1/models')).data[0].max_model_len, 1024);
    for (const path of ['/model_info', '/get_model_info']) {
      assert.equal((await served.getJson(path)).model_type, 'llama');
    }
    const { loads } = await served.getJson('/v1/loads?include=core');
    assert.equal(loads[0].max_total_num_tokens, 1024);
  });

  test('is healthy without and with a token, and counts what it did', async () => {
    for (const path of ['/health', '/health_generate']) {
      const { status, text } = await served.get(path);
      assert.deepEqual([status, text], [200, '']);
    }
    const { text } = await served.get('/metrics');
    const value = (pattern: RegExp): number => Number(pattern.exec(text)?.[1]);
    assert.equal(value(/^sglang:max_total_num_tokens\{.*engine_type="unified".*\} (\d+)$/m), 1024);
    assert.equal(value(/^sglang:context_len\{.*\} (\d+)$/m), 1024);
    assert.ok(value(/^sglang:generation_tokens_total\{.*\} (\d+)$/m) > 0);
    assert.ok(value(/^cofferdam_pages_verified_total (\d+)$/m) > 0);
    const pages = (state: string): number =>
      value(new RegExp(`^cofferdam_pages\\{role="decode",state="${state}"\\} (\\d+)$`, 'm'));
    assert.equal(pages('free') + pages('sealed'), 64);
  });

  test('refuses what is too long for the context before the engine sees it, in the dialect of each route', async () => {
    const prompt = 'x'.repeat(1024);
    for (const stream of [false, true]) {
      const { status, text } = await served.post('/v1/completions', { prompt, stream });
      assert.equal(status, 400);
      const error = JSON.parse(text);
      assert.deepEqual([error.object, error.type, error.param, error.code], ['error', 'BadRequestError', null, 400]);
      assert.match(error.message, /1024 tokens/);
    }
    const whole = await served.post('/generate', { text: prompt });
    assert.deepEqual([whole.status, Object.keys(JSON.parse(whole.text))], [400, ['error']]);
    const streamed = await served.post('/generate', { text: prompt, stream: true });
    assert.equal(streamed.status, 200);
    const [frame, done] = framesOf(streamed.text);
    assert.deepEqual([frame.error.code, frame.error.type, done], [400, 'invalid_request_error', '[DONE]']);
    const total = await served.post('/v1/completions', { prompt: 'x'.repeat(1000), max_tokens: 25 });
    assert.equal(total.status, 400);
    assert.equal((await served.post('/v1/completions', { prompt: 'x'.repeat(1000), max_tokens: 24 })).status, 200);
    assert.equal((await served.post('/v1/completions', { prompt: 'x'.repeat(1023), max_tokens: 1 })).status, 200);
  });

  const BAD: readonly (readonly [string, string, unknown, number])[] = [
    ['malformed JSON', '/generate', '{"text":', 400],
    ['a list instead of an object', '/generate', '[]', 400],
    ['no prompt', '/generate', {}, 400],
    ['an empty prompt', '/v1/completions', { prompt: '' }, 400],
    ['a batch of texts', '/generate', { text: ['a', 'b'] }, 400],
    ['a batch of ids', '/generate', { input_ids: [[1], [2]] }, 400],
    ['an id outside the vocabulary', '/generate', { input_ids: [1, 259] }, 400],
    ['two answers', '/v1/completions', { prompt: 'a', n: 2 }, 400],
    ['two samples', '/generate', { text: 'a', sampling_params: { n: 2 } }, 400],
    ['log probabilities', '/generate', { text: 'a', return_logprob: true }, 400],
    ['max_tokens 0', '/v1/completions', { prompt: 'a', max_tokens: 0 }, 400],
    ['a negative temperature', '/v1/completions', { prompt: 'a', temperature: -1 }, 400],
    ['a stream that is no boolean', '/v1/completions', { prompt: 'a', stream: 'yes' }, 400],
    ['messages that are none', '/v1/chat/completions', { messages: 'hi' }, 400],
    ['an empty stop', '/v1/completions', { prompt: 'a', stop: '' }, 400],
    ['nesting without end', '/generate', `{"text":${'['.repeat(500)}`, 400],
    ['a path that is not there', '/v1/embeddings', {}, 404],
  ];
  for (const [what, path, body, status] of BAD) {
    test(`answers ${what} with ${status}`, async () => {
      const answer = await served.post(path, body);
      assert.equal(answer.status, status, answer.text);
      const error = JSON.parse(answer.text);
      assert.ok((error.message ?? error.error.message).length > 10);
    });
  }

  test('refuses another Host, another method and a compressed body', async () => {
    assert.equal(
      (await served.send('single', 'GET', '/health', undefined, { host: 'evil.example' }).answer).status,
      421,
    );
    assert.equal((await served.get('/generate')).status, 405);
    const encoded = served.send('single', 'POST', '/generate', { text: 'a' }, { 'content-encoding': 'gzip' });
    assert.equal((await encoded.answer).status, 415);
  });

  test('aborts a request whose client leaves while it decodes, and its pages come back', async () => {
    const sent = served.send('single', 'POST', '/generate', {
      text: 'tell me a story',
      stream: true,
      sampling_params: { max_new_tokens: 900, ignore_eos: true, temperature: 1 },
    });
    await until(() => sent.soFar().includes('data: '), 'the text begins');
    sent.leave();
    const stats = await served.idle();
    assert.equal(stats.decodePages.leased, 0);
  });
});

describe('a single node whose prefill pool is below its context', () => {
  let served: Served;
  before(async () => {
    served = await Served.start('single', { context: 1024, prefillPool: 512, decodePool: 1024 });
  });
  after(async () => {
    await served.close();
  });

  test('says both numbers: the context to clients, the pool to who asks the server', async () => {
    assert.equal((await served.getJson('/v1/models')).data[0].max_model_len, 1024);
    const info = await served.getJson('/server_info');
    assert.deepEqual([info.max_total_num_tokens, info.max_req_input_len], [512, 513]);
    assert.deepEqual([info.cofferdam.effective_limit, info.cofferdam.limited_by], [512, 'prefill pool']);
    assert.equal((await served.post('/v1/completions', { prompt: 'x'.repeat(512), max_tokens: 2 })).status, 200);
  });

  test('the engine refuses one token more: a status, or a frame of a stream that has begun', async () => {
    const prompt = 'x'.repeat(513);
    const whole = await served.post('/v1/completions', { prompt });
    assert.equal(whole.status, 400);
    assert.match(JSON.parse(whole.text).message, /(?=.*513 tokens)(?=.*512 tokens)(?=.*prefill pool)/);
    const streamed = await served.post('/v1/completions', { prompt, stream: true });
    assert.equal(streamed.status, 200);
    const [frame, done] = framesOf(streamed.text);
    assert.deepEqual(
      [frame.error.object, frame.error.type, frame.error.code, done],
      ['error', 'BAD_REQUEST', 400, '[DONE]'],
    );
    const generated = framesOf((await served.post('/generate', { text: prompt, stream: true })).text);
    assert.equal(generated[0].error, undefined);
    const { type, status_code, err_type } = generated[0].meta_info.finish_reason;
    assert.deepEqual([type, status_code, err_type], ['abort', 400, 'BadRequestError']);
    assert.ok(((await served.idle()).guardHits.admission ?? 0) >= 3);
  });
});
