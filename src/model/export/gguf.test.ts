/**
 * Goal: the GGUF file holds what llama.cpp wants. Method: a reader of the format of its own (values, table, alignment), and Q and
 * K turned back from neighbouring rows to halves.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { ModelConfig } from '../config.js';
import { LAB_CONFIG, loadLabWeights } from '../lab-weights.js';
import { CHAT_TEMPLATE } from './byte-vocabulary.js';
import { bits, contents, floats, MODELS } from './fixture.test.help.js';
import { ggufFile } from './gguf.js';

interface Table {
  readonly values: ReadonlyMap<string, unknown>;
  readonly tensors: ReadonlyMap<string, { readonly dims: readonly number[]; readonly data: Float32Array }>;
}

class Reader {
  at = 0;
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  take(length: number): Buffer {
    assert.ok(this.at + length <= this.#bytes.length, 'the file goes on');
    this.at += length;
    return this.#bytes.subarray(this.at - length, this.at);
  }

  u32(): number {
    return this.take(4).readUInt32LE();
  }

  u64(): number {
    return Number(this.take(8).readBigUInt64LE());
  }

  string(): string {
    return this.take(this.u64()).toString('utf8');
  }

  value(type: number): unknown {
    switch (type) {
      case 4:
        return this.u32();
      case 5:
        return this.take(4).readInt32LE();
      case 6:
        return this.take(4).readFloatLE();
      case 7:
        return this.take(1).readUInt8() === 1;
      case 8:
        return this.string();
      case 9: {
        const item = this.u32();
        return Array.from({ length: this.u64() }, () => this.value(item));
      }
      default:
        return assert.fail(`unknown type ${type}`);
    }
  }
}

function readGguf(bytes: Buffer): Table {
  const reader = new Reader(bytes);
  assert.equal(reader.take(4).toString('latin1'), 'GGUF');
  assert.equal(reader.u32(), 3);
  const tensorCount = reader.u64();
  const valueCount = reader.u64();
  const values = new Map<string, unknown>();
  for (let i = 0; i < valueCount; i++) values.set(reader.string(), reader.value(reader.u32()));
  assert.equal(values.size, valueCount, 'every key stands once');
  const alignment = values.get('general.alignment') as number;
  assert.equal(alignment, 32, 'what readers assume where they do not look');
  const infos = Array.from({ length: tensorCount }, () => {
    const name = reader.string();
    const dims = Array.from({ length: reader.u32() }, () => reader.u64());
    assert.equal(reader.u32(), 0, `${name} is float32`);
    return { name, dims, place: reader.u64() };
  });
  const base = Math.ceil(reader.at / alignment) * alignment;
  assert.ok(
    bytes.subarray(reader.at, base).every((byte) => byte === 0),
    'the gap before the data is zero',
  );
  const tensors = new Map<string, { dims: readonly number[]; data: Float32Array }>();
  let end = 0;
  for (const { name, dims, place } of infos) {
    assert.equal(place % alignment, 0, `${name} begins at a multiple of the alignment`);
    assert.equal(place, Math.ceil(end / alignment) * alignment, `${name} begins right behind the one before`);
    end = place + 4 * dims.reduce((a, b) => a * b, 1);
    tensors.set(name, { dims, data: floats(bytes.subarray(base + place, base + end)) });
  }
  assert.equal(
    bytes.length,
    base + Math.ceil(end / alignment) * alignment,
    'the file ends with the last tensor, padded',
  );
  return { values, tensors };
}

/** Row 2i of a head goes to row i, row 2i + 1 to row i + half. */
function inHalves(data: Float32Array, heads: number, { headDim, hidden }: ModelConfig): Float32Array {
  const out = new Float32Array(data.length);
  const half = headDim / 2;
  for (let head = 0; head < heads; head++) {
    for (let i = 0; i < half; i++) {
      for (const odd of [0, 1]) {
        const from = (head * headDim + 2 * i + odd) * hidden;
        out.set(data.subarray(from, from + hidden), (head * headDim + i + odd * half) * hidden);
      }
    }
  }
  return out;
}

for (const [title, config, weights] of MODELS) {
  test(`every tensor of ${title} is in the GGUF file, bit for bit, Q and K in pairs`, () => {
    const { vocab, hidden, heads, kvHeads, headDim, intermediate } = config;
    const file = ggufFile('lab.gguf', { config, contextTokens: 8192 }, weights);
    const bytes = contents(file);
    assert.equal(bytes.length, file.bytes);
    const { tensors } = readGguf(bytes);
    const expected: [string, number[], Float32Array, number?][] = [
      ['token_embd.weight', [hidden, vocab], weights.embed],
      ['output_norm.weight', [hidden], weights.norm],
      ['output.weight', [hidden, vocab], weights.head],
    ];
    for (const [i, layer] of weights.layers.entries()) {
      expected.push(
        [`blk.${i}.attn_norm.weight`, [hidden], layer.attentionNorm],
        [`blk.${i}.attn_q.weight`, [hidden, heads * headDim], layer.q, heads],
        [`blk.${i}.attn_k.weight`, [hidden, kvHeads * headDim], layer.k, kvHeads],
        [`blk.${i}.attn_v.weight`, [hidden, kvHeads * headDim], layer.v],
        [`blk.${i}.attn_output.weight`, [heads * headDim, hidden], layer.o],
        [`blk.${i}.ffn_norm.weight`, [hidden], layer.mlpNorm],
        [`blk.${i}.ffn_gate.weight`, [hidden, intermediate], layer.gate],
        [`blk.${i}.ffn_up.weight`, [hidden, intermediate], layer.up],
        [`blk.${i}.ffn_down.weight`, [intermediate, hidden], layer.down],
      );
    }
    assert.deepEqual([...tensors.keys()].sort(), expected.map(([name]) => name).sort());
    for (const [name, dims, data, turned] of expected) {
      const found = tensors.get(name)!;
      assert.deepEqual(found.dims, dims, name);
      const halves = turned === undefined ? found.data : inHalves(found.data, turned, config);
      assert.ok(Buffer.from(bits(halves).buffer).equals(Buffer.from(bits(data).buffer)), name);
    }
  });
}

test('the values say what the llama architecture and its tokenizer want', () => {
  const { values } = readGguf(contents(ggufFile('x', { config: LAB_CONFIG, contextTokens: 4096 }, loadLabWeights())));
  const tokens = values.get('tokenizer.ggml.tokens') as string[];
  assert.deepEqual([tokens.length, tokens[0], tokens[32], tokens[65], tokens[258]], [259, 'Ā', 'Ġ', 'A', '<pad>']);
  assert.equal(new Set(tokens).size, 259);
  const kinds = values.get('tokenizer.ggml.token_type') as number[];
  assert.deepEqual(kinds, [...Array.from({ length: 256 }, () => 1), 3, 3, 3]);
  const rest = Object.fromEntries([...values].filter(([, value]) => !Array.isArray(value) || value.length === 0));
  assert.deepEqual(rest, {
    'general.architecture': 'llama',
    'general.name': 'Cofferdam lab model',
    'general.alignment': 32,
    'general.file_type': 0,
    'llama.vocab_size': 259,
    'llama.context_length': 4096,
    'llama.embedding_length': 768,
    'llama.block_count': 2,
    'llama.feed_forward_length': 64,
    'llama.attention.head_count': 8,
    'llama.attention.head_count_kv': 1,
    'llama.attention.key_length': 256,
    'llama.attention.value_length': 256,
    'llama.attention.layer_norm_rms_epsilon': Math.fround(1e-6),
    'llama.rope.dimension_count': 256,
    'llama.rope.freq_base': Math.fround(1e20),
    'tokenizer.ggml.model': 'gpt2',
    'tokenizer.ggml.pre': 'default',
    'tokenizer.ggml.merges': [],
    'tokenizer.ggml.bos_token_id': 256,
    'tokenizer.ggml.eos_token_id': 257,
    'tokenizer.ggml.padding_token_id': 258,
    'tokenizer.ggml.add_bos_token': false,
    'tokenizer.ggml.add_eos_token': false,
    'tokenizer.chat_template': CHAT_TEMPLATE,
  });
});
