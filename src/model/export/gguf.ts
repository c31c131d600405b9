/**
 * The GGUF format, version 3, little-endian: magic, counts, key-value pairs, a table of tensors (their places counted from the
 * beginning of the data), then the tensors, each at a multiple of the alignment.
 */
import { assert } from '../../base/assert.js';
import type { ModelWeights } from '../config.js';
import { CHAT_TEMPLATE, SPECIAL_TOKENS, vocabulary } from './byte-vocabulary.js';
import {
  type CheckpointFacts,
  type CheckpointFile,
  type CheckpointTensor,
  checkpointTensors,
  tensorBytes,
} from './checkpoint.js';

const MAGIC = 'GGUF';
const VERSION = 3;
const ALIGNMENT_BYTES = 32;
/** GGUF's numbers for the types of values. */
const TYPE = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, array: 9 } as const;
const TENSOR_F32 = 0;
/** `general.file_type`: every tensor is float32. */
const FILE_ALL_F32 = 0;
/** llama.cpp's kinds of tokens. */
const TOKEN_NORMAL = 1;
const TOKEN_CONTROL = 3;

type Value =
  | { readonly type: 'u32' | 'f32'; readonly value: number }
  | { readonly type: 'bool'; readonly value: boolean }
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'i32s'; readonly value: readonly number[] }
  | { readonly type: 'strings'; readonly value: readonly string[] };

/** The model as one file for llama.cpp. */
export function ggufFile(name: string, facts: CheckpointFacts, weights: ModelWeights): CheckpointFile {
  const tensors = checkpointTensors(facts.config, weights);
  const header = headerBytes(pairs(facts), tensors);
  const dataBytes = tensors.reduce((sum, { data }) => sum + aligned(data.byteLength), 0);
  return {
    name,
    bytes: header.length + dataBytes,
    *chunks(): Iterable<Uint8Array> {
      yield header;
      for (const tensor of tensors) {
        yield tensorBytes(inPairs(tensor));
        const gap = aligned(tensor.data.byteLength) - tensor.data.byteLength;
        if (gap > 0) yield new Uint8Array(gap);
      }
    },
  };
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / ALIGNMENT_BYTES) * ALIGNMENT_BYTES;
}

/**
 * llama.cpp's `llama` architecture turns neighbouring rows of a head together, a checkpoint the first half with the second:
 * rows i and i + headDim / 2 become rows 2i and 2i + 1.
 */
function inPairs({ shape, data, turnedHeads }: CheckpointTensor): Float32Array {
  if (turnedHeads === 0) return data;
  const [rows, columns] = shape;
  const headDim = rows / turnedHeads;
  const out = new Float32Array(data.length);
  for (let row = 0; row < rows; row++) {
    const inHead = row % headDim;
    const half = headDim / 2;
    const target = row - inHead + (inHead < half ? 2 * inHead : 2 * (inHead - half) + 1);
    out.set(data.subarray(row * columns, (row + 1) * columns), target * columns);
  }
  return out;
}

function pairs({ config, contextTokens }: CheckpointFacts): readonly (readonly [string, Value])[] {
  const { bos, eos, pad } = SPECIAL_TOKENS;
  const u32 = (value: number): Value => ({ type: 'u32', value });
  const f32 = (value: number): Value => ({ type: 'f32', value });
  const string = (value: string): Value => ({ type: 'string', value });
  const texts = vocabulary();
  const kinds = texts.map((_, id) => (id < 256 ? TOKEN_NORMAL : TOKEN_CONTROL));
  return [
    ['general.architecture', string('llama')],
    ['general.name', string('Cofferdam lab model')],
    ['general.alignment', u32(ALIGNMENT_BYTES)],
    ['general.file_type', u32(FILE_ALL_F32)],
    ['llama.vocab_size', u32(config.vocab)],
    ['llama.context_length', u32(contextTokens)],
    ['llama.embedding_length', u32(config.hidden)],
    ['llama.block_count', u32(config.layers)],
    ['llama.feed_forward_length', u32(config.intermediate)],
    ['llama.attention.head_count', u32(config.heads)],
    ['llama.attention.head_count_kv', u32(config.kvHeads)],
    ['llama.attention.key_length', u32(config.headDim)],
    ['llama.attention.value_length', u32(config.headDim)],
    ['llama.attention.layer_norm_rms_epsilon', f32(config.rmsEps)],
    ['llama.rope.dimension_count', u32(config.headDim)],
    ['llama.rope.freq_base', f32(config.ropeTheta)],
    ['tokenizer.ggml.model', string('gpt2')],
    ['tokenizer.ggml.pre', string('default')],
    ['tokenizer.ggml.tokens', { type: 'strings', value: texts }],
    ['tokenizer.ggml.token_type', { type: 'i32s', value: kinds }],
    ['tokenizer.ggml.merges', { type: 'strings', value: [] }],
    ['tokenizer.ggml.bos_token_id', u32(bos.id)],
    ['tokenizer.ggml.eos_token_id', u32(eos.id)],
    ['tokenizer.ggml.padding_token_id', u32(pad.id)],
    ['tokenizer.ggml.add_bos_token', { type: 'bool', value: false }],
    ['tokenizer.ggml.add_eos_token', { type: 'bool', value: false }],
    ['tokenizer.chat_template', string(CHAT_TEMPLATE)],
  ];
}

function headerBytes(values: readonly (readonly [string, Value])[], tensors: readonly CheckpointTensor[]): Uint8Array {
  const writer = new Writer();
  writer.raw(MAGIC);
  writer.u32(VERSION);
  writer.u64(tensors.length);
  writer.u64(values.length);
  for (const [key, value] of values) {
    writer.string(key);
    writer.value(value);
  }
  let place = 0;
  for (const { ggufName, shape, data } of tensors) {
    writer.string(`${ggufName}.weight`);
    writer.u32(shape.length);
    // The dimension that varies fastest comes first.
    for (const length of shape.toReversed()) writer.u64(length);
    writer.u32(TENSOR_F32);
    writer.u64(place);
    place += aligned(data.byteLength);
  }
  return writer.end(ALIGNMENT_BYTES);
}

class Writer {
  readonly #parts: Buffer[] = [];

  raw(text: string): void {
    this.#parts.push(Buffer.from(text, 'utf8'));
  }

  #number(bytes: number, write: (buffer: Buffer) => void): void {
    const buffer = Buffer.alloc(bytes);
    write(buffer);
    this.#parts.push(buffer);
  }

  u32(value: number): void {
    this.#number(4, (buffer) => buffer.writeUInt32LE(value));
  }

  i32(value: number): void {
    this.#number(4, (buffer) => buffer.writeInt32LE(value));
  }

  u64(value: number): void {
    this.#number(8, (buffer) => buffer.writeBigUInt64LE(BigInt(value)));
  }

  string(text: string): void {
    this.u64(Buffer.byteLength(text, 'utf8'));
    this.raw(text);
  }

  value(value: Value): void {
    switch (value.type) {
      case 'u32':
        this.u32(TYPE.u32);
        return this.u32(value.value);
      case 'f32':
        assert(Number.isFinite(Math.fround(value.value)), 'a value fits into float32');
        this.u32(TYPE.f32);
        return this.#number(4, (buffer) => buffer.writeFloatLE(value.value));
      case 'bool':
        this.u32(TYPE.bool);
        return this.#number(1, (buffer) => buffer.writeUInt8(value.value ? 1 : 0));
      case 'string':
        this.u32(TYPE.string);
        return this.string(value.value);
      case 'i32s':
        this.#array(TYPE.i32, value.value.length);
        for (const item of value.value) this.i32(item);
        return;
      case 'strings':
        this.#array(TYPE.string, value.value.length);
        for (const item of value.value) this.string(item);
        return;
    }
  }

  #array(type: number, length: number): void {
    this.u32(TYPE.array);
    this.u32(type);
    this.u64(length);
  }

  /** Everything so far, filled up with zeros to a multiple of `alignment`. */
  end(alignment: number): Buffer {
    const length = this.#parts.reduce((sum, part) => sum + part.length, 0);
    return Buffer.concat(this.#parts, Math.ceil(length / alignment) * alignment);
  }
}
