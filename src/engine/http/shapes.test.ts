/**
 * Goal: whoever reads SGLang's answers can read ours. Method: the names of fields of captured answers of SGLang 0.5.18
 * (`test/fixtures/sglang-shapes.json`) against what the engine sends: equal where a client reads the shape, a part where SGLang
 * tells of things that this engine does not have.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { framesOf, type Json, Served } from './harness.test.help.js';

const SHAPES = JSON.parse(
  readFileSync(new URL('../../../../test/fixtures/sglang-shapes.json', import.meta.url), 'utf8'),
) as Record<string, string[]> & { readonly chat_deltas: readonly (readonly string[])[] };

function same(value: Json, shape: string): void {
  assert.deepEqual(Object.keys(value).sort(), SHAPES[shape], shape);
}

/** `more`: what the captured version does not have. */
function within(value: Json, shape: string, more: readonly string[] = []): void {
  const known = SHAPES[shape] ?? [];
  const foreign = Object.keys(value).filter((name) => !known.includes(name) && !more.includes(name));
  assert.deepEqual(foreign, [], shape);
}

describe('shapes', () => {
  let served: Served;
  before(async () => {
    served = await Served.start('pair', { context: 512, prefillPool: 256, decodePool: 512 });
  });
  after(async () => {
    await served.close();
  });
  let room = 1;
  const legs = async (path: string, body: object): Promise<Json[]> => {
    const { prefill, decode } = await served.pair(path, { ...body, bootstrap_room: room++ });
    return [prefill, decode];
  };

  test('what a node tells of itself', async () => {
    for (const role of ['prefill', 'decode']) {
      const info = await served.getJson('/server_info', role);
      within(info, 'server_info', ['cofferdam']);
      assert.deepEqual(
        SHAPES.server_info?.filter((name) => !(name in info)),
        [],
      );
      within(info.internal_states[0], 'internal_state', SHAPES.server_info);
      within(await served.getJson('/model_info', role), 'model_info', ['disaggregation_mode']);
      const models = await served.getJson('/v1/models', role);
      same(models, 'models');
      same(models.data[0], 'model_card');
      const loads = await served.getJson('/v1/loads', role);
      same(loads, 'loads');
      within(loads.loads[0], 'load');
      same(loads.loads[0].memory, 'load_memory');
      within(loads.loads[0].disaggregation, 'load_disaggregation');
      within(loads.loads[0].queues, 'load_queues');
    }
  });

  test('answers of both legs, whole', async () => {
    for (const { text } of await legs('/generate', { text: 'hi', sampling_params: { max_new_tokens: 3 } })) {
      const answer = JSON.parse(text) as Json;
      same(answer, 'generate');
      same(answer.meta_info, 'generate_meta');
      same(answer.meta_info.finish_reason, 'generate_finish');
    }
    for (const { text } of await legs('/v1/completions', { prompt: 'hi', max_tokens: 3 })) {
      const answer = JSON.parse(text) as Json;
      same(answer, 'completion');
      same(answer.choices[0], 'completion_choice');
      same(answer.usage, 'usage');
    }
    const messages = [{ role: 'user', content: 'hi' }];
    for (const { text } of await legs('/v1/chat/completions', { messages, max_tokens: 3 })) {
      const answer = JSON.parse(text) as Json;
      same(answer, 'chat');
      same(answer.choices[0], 'chat_choice');
      same(answer.choices[0].message, 'chat_message');
      same(answer.usage, 'usage');
    }
  });

  test('answers of both legs, streamed', async () => {
    const generated = { text: 'hi', sampling_params: { max_new_tokens: 3 }, stream: true };
    const [, decoded] = await legs('/generate', generated);
    const frames = framesOf(decoded.text);
    for (const frame of frames.slice(0, -2)) same(frame.meta_info, 'generate_chunk_meta');
    for (const { text } of await legs('/v1/completions', { prompt: 'hi', max_tokens: 3, stream: true })) {
      for (const frame of framesOf(text).slice(0, -1)) {
        same(frame, 'completion_chunk');
        same(frame.choices[0], 'completion_choice');
      }
    }
    const messages = [{ role: 'user', content: 'hi' }];
    for (const { text } of await legs('/v1/chat/completions', { messages, max_tokens: 3, stream: true })) {
      const chunks = framesOf(text).slice(0, -1);
      const deltas = [chunks[0], chunks[1], chunks.at(-1)].map((chunk) => Object.keys(chunk.choices[0].delta).sort());
      assert.deepEqual(deltas, SHAPES.chat_deltas);
      for (const chunk of chunks) same(chunk, 'chat_chunk');
    }
  });

  test('refusals at the door', async () => {
    const long = 'x'.repeat(600);
    for (const { text } of await legs('/v1/completions', { prompt: long })) same(JSON.parse(text), 'error');
    for (const { text } of await legs('/generate', { text: long })) same(JSON.parse(text).error, 'generate_error');
    for (const { text } of await legs('/generate', { text: long, stream: true })) {
      same(framesOf(text)[0].error, 'generate_door_frame');
    }
  });
});
