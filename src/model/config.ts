import { assert } from '../base/assert.js';

/** The shape of a `LlamaForCausalLM`, by the names of its config.json. */
export interface ModelConfig {
  readonly vocab: number;
  readonly hidden: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly intermediate: number;
  readonly ropeTheta: number;
  readonly rmsEps: number;
}

/** Throws where the forward pass cannot run the shape. */
export function assertConfig(config: ModelConfig): void {
  const { vocab, hidden, layers, heads, kvHeads, headDim, intermediate } = config;
  for (const size of [vocab, hidden, layers, heads, kvHeads, headDim, intermediate]) {
    assert(Number.isInteger(size) && size > 0, 'every size of a model is a whole number above zero');
  }
  assert(hidden % 4 === 0 && intermediate % 4 === 0, 'rows come in whole SIMD vectors');
  assert(headDim % 8 === 0, 'each half of a head has whole SIMD vectors');
  assert(heads % kvHeads === 0, 'query heads share KV heads evenly');
}

/** Weights as a checkpoint holds them, float32, (out, in), row after row. */
export interface ModelWeights {
  /** (vocab, hidden). */
  readonly embed: Float32Array;
  readonly layers: readonly LayerWeights[];
  /** (hidden). */
  readonly norm: Float32Array;
  /** (vocab, hidden). */
  readonly head: Float32Array;
}

export interface LayerWeights {
  /** (hidden), before attention. */
  readonly attentionNorm: Float32Array;
  /** (heads × headDim, hidden), rows of a head in halves layout. */
  readonly q: Float32Array;
  /** (kvHeads × headDim, hidden). */
  readonly k: Float32Array;
  readonly v: Float32Array;
  /** (hidden, heads × headDim). */
  readonly o: Float32Array;
  /** (hidden), before the MLP. */
  readonly mlpNorm: Float32Array;
  /** (intermediate, hidden). */
  readonly gate: Float32Array;
  readonly up: Float32Array;
  /** (hidden, intermediate). */
  readonly down: Float32Array;
}
