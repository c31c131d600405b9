/** A model's tensors as the formats of checkpoints name them. */
import { assert } from '../../base/assert.js';
import type { ModelConfig, ModelWeights } from '../config.js';

export interface CheckpointTensor {
  /** As `transformers` names it, without `.weight`. */
  readonly hfName: string;
  /** As llama.cpp names it, without `.weight`. */
  readonly ggufName: string;
  /** (rows, columns), or (size). */
  readonly shape: readonly number[];
  /** Row after row; Q and K in halves: pair i of a head is its rows i and i + headDim / 2. */
  readonly data: Float32Array;
  /** Heads whose rows RoPE turns; 0 where it turns none. */
  readonly turnedHeads: number;
}

/** One file of a checkpoint. */
export interface CheckpointFile {
  readonly name: string;
  readonly bytes: number;
  /** The contents, in order; made when they are asked for. */
  chunks(): Iterable<Uint8Array>;
}

/** What a checkpoint says of a model, beside its tensors. */
export interface CheckpointFacts {
  readonly config: ModelConfig;
  /** Tokens; the context that the checkpoint declares. */
  readonly contextTokens: number;
}

/** Every tensor, in the order in which the forward pass meets them. */
export function checkpointTensors(config: ModelConfig, weights: ModelWeights): CheckpointTensor[] {
  const { vocab, hidden, heads, kvHeads, headDim, intermediate } = config;
  const tensors: CheckpointTensor[] = [];
  const add = (hfName: string, ggufName: string, shape: number[], data: Float32Array, turnedHeads = 0): void => {
    const size = shape.reduce((product, length) => product * length, 1);
    assert(data.length === size, `the tensor ${hfName} has the size of its shape`);
    tensors.push({ hfName, ggufName, shape, data, turnedHeads });
  };
  add('model.embed_tokens', 'token_embd', [vocab, hidden], weights.embed);
  weights.layers.forEach((layer, index) => {
    const hf = `model.layers.${index}`;
    const gguf = `blk.${index}`;
    const q = heads * headDim;
    const kv = kvHeads * headDim;
    add(`${hf}.input_layernorm`, `${gguf}.attn_norm`, [hidden], layer.attentionNorm);
    add(`${hf}.self_attn.q_proj`, `${gguf}.attn_q`, [q, hidden], layer.q, heads);
    add(`${hf}.self_attn.k_proj`, `${gguf}.attn_k`, [kv, hidden], layer.k, kvHeads);
    add(`${hf}.self_attn.v_proj`, `${gguf}.attn_v`, [kv, hidden], layer.v);
    add(`${hf}.self_attn.o_proj`, `${gguf}.attn_output`, [hidden, q], layer.o);
    add(`${hf}.post_attention_layernorm`, `${gguf}.ffn_norm`, [hidden], layer.mlpNorm);
    add(`${hf}.mlp.gate_proj`, `${gguf}.ffn_gate`, [intermediate, hidden], layer.gate);
    add(`${hf}.mlp.up_proj`, `${gguf}.ffn_up`, [intermediate, hidden], layer.up);
    add(`${hf}.mlp.down_proj`, `${gguf}.ffn_down`, [hidden, intermediate], layer.down);
  });
  add('model.norm', 'output_norm', [hidden], weights.norm);
  add('lm_head', 'output', [vocab, hidden], weights.head);
  return tensors;
}

/** The bytes of a tensor as both formats want them: little-endian. */
export function tensorBytes(data: Float32Array): Uint8Array {
  assert(new Uint8Array(new Uint16Array([1]).buffer)[0] === 1, 'this machine keeps numbers in little-endian order');
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

export function textFile(name: string, text: string): CheckpointFile {
  const contents = new TextEncoder().encode(text);
  return { name, bytes: contents.length, chunks: () => [contents] };
}
