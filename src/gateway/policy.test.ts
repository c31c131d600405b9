/**
 * Goal: only known fields pass, and engine-internal ones are named wherever they hide. Method: one request a field, over real
 * HTTP, and a look at what the engine was given.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Harness, startHarness } from '../../test/support/gateway-harness.js';

const CHAT = '/v1/chat/completions';
const TEXT = '/v1/completions';

interface ErrorBody {
  error: { message: string; type: string; param: string | null; code: string };
}

async function refused(response: Response, status: number, code: string): Promise<ErrorBody['error']> {
  const text = await response.text();
  assert.equal(response.status, status, text);
  const { error } = JSON.parse(text) as ErrorBody;
  assert.equal(error.code, code, text);
  assert.deepEqual(Object.keys(error), ['message', 'type', 'param', 'code']);
  return error;
}

const chat = (extra: Record<string, unknown> = {}, content: unknown = 'hi'): Record<string, unknown> => ({
  model: 'lab',
  messages: [{ role: 'user', content }],
  ...extra,
});
const text = (prompt: unknown, extra: Record<string, unknown> = {}): Record<string, unknown> => ({
  model: 'lab',
  prompt,
  ...extra,
});

describe('the request policy', () => {
  let harness: Harness;
  before(async () => {
    harness = await startHarness();
  });
  after(() => harness.close());

  describe('refuses a request', () => {
    const wrong: [string, string, Record<string, unknown>, string | null][] = [
      ['with no model', CHAT, { messages: [{ role: 'user', content: 'x' }] }, 'model'],
      ['with a model that is a number', CHAT, chat({ model: 3 }), 'model'],
      ['with no messages', CHAT, { model: 'lab' }, 'messages'],
      ['with empty messages', CHAT, chat({ messages: [] }), 'messages'],
      ['with messages that are no array', CHAT, chat({ messages: 'hi' }), 'messages'],
      ['with a message that is null', CHAT, chat({ messages: [null] }), 'messages[0]'],
      ['with an unknown role', CHAT, chat({ messages: [{ role: 'tool', content: 'x' }] }), 'messages[0].role'],
      ['with null content', CHAT, chat({}, null), 'messages[0].content'],
      ['with an image', CHAT, chat({}, [{ type: 'image_url', image_url: {} }]), 'messages[0].content[0].type'],
      ['with a field in a part', CHAT, chat({}, [{ type: 'text', text: 'x', x: 1 }]), 'messages[0].content[0].x'],
      ['with a field in a message', CHAT, chat({ messages: [{ role: 'user', content: 'x', y: 1 }] }), 'messages[0].y'],
      ['with an unknown field', CHAT, chat({ top_k: 3 }), 'top_k'],
      ['with __proto__', CHAT, JSON.parse('{"model":"lab","__proto__":{}}') as Record<string, unknown>, '__proto__'],
      ['with n 2', CHAT, chat({ n: 2 }), 'n'],
      ['with tools', CHAT, chat({ tools: [{ type: 'function' }] }), 'tools'],
      ['with logprobs', CHAT, chat({ logprobs: true }), 'logprobs'],
      ['with response_format json_object', CHAT, chat({ response_format: { type: 'json_object' } }), 'response_format'],
      ['with store', CHAT, chat({ store: true }), 'store'],
      ['with top_p', CHAT, chat({ top_p: 0.5 }), 'top_p'],
      ['with max_tokens 0', CHAT, chat({ max_tokens: 0 }), 'max_tokens'],
      ['with max_tokens -1', CHAT, chat({ max_tokens: -1 }), 'max_tokens'],
      ['with max_tokens 1.5', CHAT, chat({ max_tokens: 1.5 }), 'max_tokens'],
      ['with max_tokens as a string', CHAT, chat({ max_tokens: '5' }), 'max_tokens'],
      ['with max_completion_tokens 0', CHAT, chat({ max_completion_tokens: 0 }), 'max_completion_tokens'],
      ['with both limits, unequal', CHAT, chat({ max_tokens: 1, max_completion_tokens: 2 }), 'max_tokens'],
      ['with temperature 3', CHAT, chat({ temperature: 3 }), 'temperature'],
      ['with a fractional seed', CHAT, chat({ seed: 0.5 }), 'seed'],
      ['with stream as a string', CHAT, chat({ stream: 'yes' }), 'stream'],
      ['with stream_options alone', CHAT, chat({ stream_options: {} }), 'stream_options'],
      ['with five stops', CHAT, chat({ stop: ['a', 'b', 'c', 'd', 'e'] }), 'stop'],
      ['with an empty stop', CHAT, chat({ stop: '' }), 'stop'],
      ['with half a character as stop', CHAT, chat({ stop: '\ud83d' }), 'stop'],
      ['with an empty prompt', TEXT, text(''), 'prompt'],
      ['with token ids as prompt', TEXT, text([1, 2]), 'prompt'],
      ['with two prompts', TEXT, text(['a', 'b']), 'prompt'],
      ['with echo', TEXT, text('a', { echo: true }), 'echo'],
      ['with best_of 2', TEXT, text('a', { best_of: 2 }), 'best_of'],
      ['with messages on the text route', TEXT, text('a', { messages: [] }), 'messages'],
    ];
    for (const [title, path, body, param] of wrong) {
      test(`${title}, naming ${param}`, async () => {
        const error = await refused(await harness.post(path, body), 400, 'invalid_request');
        assert.equal(error.type, 'invalid_request_error');
        assert.equal(error.param, param);
      });
    }

    test('with an unknown model, and does not repeat it', async () => {
      const error = await refused(await harness.post(CHAT, chat({ model: 'secret-name' })), 400, 'model_not_found');
      assert.equal(error.type, 'invalid_request_error');
      assert.ok(!error.message.includes('secret-name'));
    });

    const internal: [string, Record<string, unknown>, string][] = [
      ['rid', { rid: 'a' }, 'rid'],
      ['request_id', { request_id: 'a' }, 'request_id'],
      ['cache_salt', { cache_salt: 'a' }, 'cache_salt'],
      ['extra_key', { extra_key: 'a' }, 'extra_key'],
      ['priority', { priority: 1 }, 'priority'],
      ['bootstrap_host', { bootstrap_host: 'x' }, 'bootstrap_host'],
      ['bootstrap_room that is null', { bootstrap_room: null }, 'bootstrap_room'],
      ['kv_transfer_params', { kv_transfer_params: {} }, 'kv_transfer_params'],
      ['truncate_prompt_tokens', { truncate_prompt_tokens: 1 }, 'truncate_prompt_tokens'],
      ['session_params', { session_params: {} }, 'session_params'],
      ['lora_path', { lora_path: 'x' }, 'lora_path'],
      ['custom_logit_processor', { custom_logit_processor: 'x' }, 'custom_logit_processor'],
      ['routed_dp_rank', { routed_dp_rank: 1 }, 'routed_dp_rank'],
      ['data_parallel_rank', { data_parallel_rank: 1 }, 'data_parallel_rank'],
      ['input_ids', { input_ids: [1] }, 'input_ids'],
      ['id_slot', { id_slot: 1 }, 'id_slot'],
      ['cache_prompt', { cache_prompt: true }, 'cache_prompt'],
      ['prompt_logprobs', { prompt_logprobs: 1 }, 'prompt_logprobs'],
      ['return_hidden_states', { return_hidden_states: true }, 'return_hidden_states'],
      [
        'kv_transfer_params in vllm_xargs',
        { vllm_xargs: { kv_transfer_params: { a: 1 } } },
        'vllm_xargs.kv_transfer_params',
      ],
      ...['a text', 7, ['do_remote_prefill'], null].map((value): [string, Record<string, unknown>, string] => [
        `kv_transfer_params in vllm_xargs as ${JSON.stringify(value)}`,
        { vllm_xargs: { kv_transfer_params: value } },
        'vllm_xargs.kv_transfer_params',
      ]),
      [
        'ec_transfer_params in vllm_xargs',
        { vllm_xargs: { ec_transfer_params: 'x' } },
        'vllm_xargs.ec_transfer_params',
      ],
      ['do_remote_prefill in vllm_xargs', { vllm_xargs: { do_remote_prefill: true } }, 'vllm_xargs.do_remote_prefill'],
      ['rid in extra_body', { extra_body: { a: [{ rid: 1 }] } }, 'extra_body.a[0].rid'],
      ['extra_key in sampling_params', { sampling_params: { extra_key: 1 } }, 'sampling_params.extra_key'],
      ['vllm_xargs with nothing worse in it', { vllm_xargs: { foo: 1 } }, 'vllm_xargs'],
      [
        'cache_salt in a message',
        { messages: [{ role: 'user', content: 'x', cache_salt: 'a' }] },
        'messages[0].cache_salt',
      ],
      ['priority in stream_options', { stream: true, stream_options: { priority: 1 } }, 'stream_options.priority'],
    ];
    for (const [title, fields, param] of internal) {
      test(`with the engine-internal field ${title}`, async () => {
        const error = await refused(await harness.post(CHAT, chat(fields)), 400, 'field_not_allowed');
        assert.deepEqual([error.param, error.type], [param, 'invalid_request_error']);
      });
    }

    test('and none of these reached the engine', () => {
      assert.ok(harness.engine.runs.every((run) => run.request.room === null && run.request.handle === null));
    });
  });
});
