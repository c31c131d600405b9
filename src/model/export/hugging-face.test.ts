/**
 * Goal: the folder holds the weights bit for bit, and its JSON says what `transformers` wants to read. Method: a reader of
 * safetensors of its own, which knows the format and the names of a Llama checkpoint, and nothing of the writer.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { encode, renderChat } from '../../tokenizer/bytes.js';
import type { ModelConfig, ModelWeights } from '../config.js';
import { LAB_CONFIG, loadLabWeights } from '../lab-weights.js';
import { PromptCounter } from '../../tokenizer/prompt-counter.js';
import { CHAT_TEMPLATE } from './byte-vocabulary.js';
import { bits, contents, floats, MODELS } from './fixture.test.help.js';
import { huggingFaceFiles } from './hugging-face.js';

const SEED = Number(process.env.SEED ?? 31);

interface Entry {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data_offsets: readonly [number, number];
}

interface Folder {
  readonly text: (name: string) => string;
  readonly json: (name: string) => Record<string, unknown>;
  readonly safetensors: Buffer;
}

function folderOf(config: ModelConfig, weights: ModelWeights, contextTokens = 8192): Folder {
  const files = new Map(huggingFaceFiles({ config, contextTokens }, weights).map((file) => [file.name, file]));
  for (const file of files.values())
    assert.equal(contents(file).length, file.bytes, `${file.name} is as long as it says`);
  const text = (name: string): string => contents(files.get(name)!).toString('utf8');
  return {
    text,
    json: (name) => JSON.parse(text(name)) as Record<string, unknown>,
    safetensors: contents(files.get('model.safetensors')!),
  };
}

/** Everything that the format demands is checked on the way. */
function readSafetensors(bytes: Buffer): Map<string, { shape: readonly number[]; data: Float32Array }> {
  const headerBytes = Number(bytes.readBigUInt64LE(0));
  assert.equal((8 + headerBytes) % 8, 0, 'the data begin at a multiple of 8');
  const text = bytes.toString('utf8', 8, 8 + headerBytes);
  assert.ok(text.startsWith('{'), 'the header begins with {');
  const header = JSON.parse(text) as Record<string, Entry>;
  const { __metadata__: metadata, ...entries } = header;
  assert.deepEqual(metadata, { format: 'pt' });
  const data = bytes.subarray(8 + headerBytes);
  const found = new Map<string, { shape: readonly number[]; data: Float32Array }>();
  let end = 0;
  for (const [name, { dtype, shape, data_offsets: offsets }] of Object.entries(entries)) {
    assert.equal(dtype, 'F32', name);
    assert.equal(offsets[0], end, `${name} begins where the one before ends`);
    end = offsets[1];
    assert.equal(end - offsets[0], 4 * shape.reduce((a, b) => a * b, 1), `${name} is as large as its shape`);
    found.set(name, { shape, data: floats(data.subarray(offsets[0], end)) });
  }
  assert.equal(end, data.length, 'nothing lies behind the last tensor');
  return found;
}

for (const [title, config, weights] of MODELS) {
  test(`every tensor of ${title} is in model.safetensors, bit for bit`, () => {
    const { vocab, hidden, heads, kvHeads, headDim, intermediate } = config;
    const expected: [string, number[], Float32Array][] = [
      ['model.embed_tokens.weight', [vocab, hidden], weights.embed],
      ['model.norm.weight', [hidden], weights.norm],
      ['lm_head.weight', [vocab, hidden], weights.head],
    ];
    for (const [i, layer] of weights.layers.entries()) {
      expected.push(
        [`model.layers.${i}.self_attn.q_proj.weight`, [heads * headDim, hidden], layer.q],
        [`model.layers.${i}.self_attn.k_proj.weight`, [kvHeads * headDim, hidden], layer.k],
        [`model.layers.${i}.self_attn.v_proj.weight`, [kvHeads * headDim, hidden], layer.v],
        [`model.layers.${i}.self_attn.o_proj.weight`, [hidden, heads * headDim], layer.o],
        [`model.layers.${i}.mlp.gate_proj.weight`, [intermediate, hidden], layer.gate],
        [`model.layers.${i}.mlp.up_proj.weight`, [intermediate, hidden], layer.up],
        [`model.layers.${i}.mlp.down_proj.weight`, [hidden, intermediate], layer.down],
        [`model.layers.${i}.input_layernorm.weight`, [hidden], layer.attentionNorm],
        [`model.layers.${i}.post_attention_layernorm.weight`, [hidden], layer.mlpNorm],
      );
    }
    const found = readSafetensors(folderOf(config, weights).safetensors);
    assert.deepEqual([...found.keys()].sort(), expected.map(([name]) => name).sort());
    for (const [name, shape, data] of expected) {
      assert.deepEqual(found.get(name)!.shape, shape, name);
      assert.ok(Buffer.from(bits(found.get(name)!.data).buffer).equals(Buffer.from(bits(data).buffer)), name);
    }
  });
}

const lab = folderOf(LAB_CONFIG, loadLabWeights(), 4096);

test('config.json gives the shape, the context, and a rope base that Python reads as a float', () => {
  const config = lab.json('config.json');
  assert.deepEqual(config, {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    vocab_size: 259,
    hidden_size: 768,
    intermediate_size: 64,
    num_hidden_layers: 2,
    num_attention_heads: 8,
    num_key_value_heads: 1,
    head_dim: 256,
    max_position_embeddings: 4096,
    rms_norm_eps: 1e-6,
    rope_theta: 1e20,
    rope_parameters: { rope_type: 'default', rope_theta: 1e20 },
    hidden_act: 'silu',
    attention_bias: false,
    mlp_bias: false,
    tie_word_embeddings: false,
    bos_token_id: 256,
    eos_token_id: 257,
    pad_token_id: 258,
    torch_dtype: 'float32',
    dtype: 'float32',
  });
  // Digits alone would be an integer above 2^63.
  assert.equal(lab.text('config.json').match(/"rope_theta": 1e\+20/g)?.length, 2);
});

test('tokenizer.json has 256 bytes in the alphabet of GPT-2, no merges, and three specials', () => {
  const { model, added_tokens: added, pre_tokenizer: pre, decoder, post_processor: post } = lab.json('tokenizer.json');
  const { type, vocab, merges } = model as { type: string; vocab: Record<string, number>; merges: unknown[] };
  assert.deepEqual([type, merges, post], ['BPE', [], null]);
  assert.deepEqual(
    Object.values(vocab).sort((a, b) => a - b),
    Array.from({ length: 256 }, (_, id) => id),
  );
  // Known from GPT-2's own vocabulary.
  for (const [text, byte] of [
    ['Ā', 0],
    ['Ċ', 10],
    ['Ġ', 32],
    ['!', 33],
    ['~', 126],
    ['ġ', 127],
    ['¡', 161],
    ['Ń', 173],
    ['ÿ', 255],
  ] as const)
    assert.equal(vocab[text], byte, text);
  assert.deepEqual(
    (added as { id: number; content: string; special: boolean }[]).map(({ id, content, special }) => [
      id,
      content,
      special,
    ]),
    [
      [256, '<s>', true],
      [257, '</s>', true],
      [258, '<pad>', true],
    ],
  );
  for (const part of [pre, decoder] as { type: string; add_prefix_space: boolean; use_regex: boolean }[])
    assert.deepEqual([part.type, part.add_prefix_space, part.use_regex], ['ByteLevel', false, false]);
});

test(`by tokenizer.json, every text has the tokens that the engine gives it (seed ${SEED})`, () => {
  const { vocab } = lab.json('tokenizer.json').model as { vocab: Record<string, number> };
  const texts = new Map(Object.entries(vocab).map(([text, id]) => [id, text]));
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => {
      const ids = [...Buffer.from(text, 'utf8')];
      assert.deepEqual([...encode(text)], ids);
      // One character a byte, each with an id of its own: that is what BPE without merges gives.
      assert.deepEqual(
        ids.map((id) => vocab[texts.get(id)!]),
        ids,
      );
    }),
    { seed: SEED, numRuns: 200 },
  );
});

test('the template is of lines and ends with the beginning of the answer, as the engine renders it', () => {
  const { chat_template: template, model_max_length: length } = lab.json('tokenizer_config.json');
  assert.equal(template, CHAT_TEMPLATE);
  assert.equal(length, 4096);
  // The one loop and the one condition, replaced by hand.
  const loop =
    /^\{% for message in messages %\}\{\{ (.+) \}\}\{% endfor %\}\{% if add_generation_prompt %\}\{\{ '(.+)' \}\}\{% endif %\}$/;
  const [, line, end] = loop.exec(CHAT_TEMPLATE) ?? [];
  assert.equal(line, "message['role'] + ': ' + message['content'] + '\\n'");
  const messages = [
    { role: 'system', content: 'be brief' },
    { role: 'user', content: 'hi\nthere' },
  ];
  assert.equal(messages.map(({ role, content }) => `${role}: ${content}\n`).join('') + end, renderChat(messages));
});

test('prompts of the lab model are counted by its files as its engine counts them', async () => {
  const [tokenizer, config] = [lab.text('tokenizer.json'), lab.text('tokenizer_config.json')];
  const templates = { plain: CHAT_TEMPLATE, withTools: null };
  const counter = new PromptCounter({ tokenizer, config, templates });
  const messages = [
    { role: 'system', content: 'be brief' },
    { role: 'user', content: 'what is </s> and <pad>, é, 世界, \u{18dc9}?' },
  ];
  assert.equal(await counter.exact({ kind: 'chat', messages }), encode(renderChat(messages)).length);
  const text = 'KVC-<s>é'.repeat(1_000);
  assert.equal(await counter.exact({ kind: 'text', text }), encode(text).length);
  assert.deepEqual(counter.bounds({ kind: 'text', text }), { kind: 'bounds', least: 9_000, most: 9_000 });
});
