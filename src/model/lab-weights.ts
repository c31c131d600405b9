/**
 * The lab model: an ordinary Llama checkpoint whose weights are constructed, not trained, so that its attention copies the
 * continuation of the longest match (up to five tokens) in its context. Whatever its pages hold, it says.
 *
 * Residual: token codes | output | constant | slots 1…5. Layer 1 writes what stood k tokens back into slot k; layer 2 finds where
 * the last five tokens stood before, and copies what followed them into the output. RoPE's base is so large that only the first
 * 32 of 128 rotation pairs turn: these tell positions apart, the others carry codes that distance must not disturb.
 */
import { assert } from '../base/assert.js';
import { Prng } from '../base/prng.js';
import { VOCAB_SIZE } from '../tokenizer/bytes.js';
import type { LayerWeights, ModelConfig, ModelWeights } from './config.js';
import { CODE_DIM, CODES, labCodes } from './lab-codes.js';
import { ropeAngles } from './model.js';

export const LAB_CONFIG: ModelConfig = {
  vocab: VOCAB_SIZE,
  hidden: 768,
  layers: 2,
  heads: 8,
  kvHeads: 1,
  headDim: 256,
  intermediate: 64,
  ropeTheta: 1e20,
  rmsEps: 1e-6,
};

/** Tokens that a context length may hold; the construction is tried up to here. */
export const LAB_CONTEXT_MAX = 8192;

/** What can be turned in the construction; the defaults were found by trying. */
export interface LabTuning {
  /** Nats a turning pair of a previous-token head: a token one place off stays 0.92 of it behind. */
  readonly previous: number;
  /**
   * Nats by which a sink (NUL or `-`) stays behind a predecessor that is there. It stays ahead of all others, so that a token
   * whose predecessors are not in its pages sees the sink's empty code rather than copies of itself.
   */
  readonly sinkBehind: number;
  /** Nats a matching token, times its weight. */
  readonly match: number;
  /** Weight of the token itself and of those 1 to 4 before it. */
  readonly matchWeights: readonly number[];
  /** Nats that a token stays behind as a match for itself. */
  readonly selfBehind: number;
  /**
   * How much of each code `-` keeps, from 0 to 1. As a sink it should be empty in all but the first; a little of the second and
   * the last tells a marker's first characters from other text, and is not enough to make it a match for itself.
   */
  readonly dashKept: readonly number[];
  /** Scale of the logits. */
  readonly output: number;
}

export const LAB_TUNING: LabTuning = {
  previous: 40,
  sinkBehind: 18,
  match: 40,
  matchWeights: [1.4, 1.2, 1.1, 1.0, 0.9],
  selfBehind: 20,
  dashKept: [1, 0.35, 0, 0, 0.4],
  output: 30,
};

const NUL = 0;
const DASH = 0x2d;
/** An angle a position below this does not show within LAB_CONTEXT_MAX. */
const ANGLE_MIN = 1e-5;
/** A code and one dimension that has norm and no meaning. */
const WIDE = CODE_DIM + 1;
const TOKEN = CODES * WIDE;
const OUT = 128;
const CONSTANT = TOKEN + OUT;
/** Size of what layer 2 writes, against the token's own 1; the output must outshout the rest after the last RMSNorm. */
const OUT_SIZE = 4;
const PROJECTION_SEED = 5;
/** Nats by which NUL stays behind every other token as something to copy; five matches are 224. */
const NUL_BEHIND = 500;

/** First column of slot k: code k of the token k + 1 back (for keys), then its code k + 1 (for queries). */
function slot(k: number): number {
  return CONSTANT + 1 + 2 * WIDE * k;
}

/** Marks NUL, in place of its second code: a placeholder is looked at by layer 1, and never copied by layer 2. */
const NUL_FLAG = slot(CODES - 1) + WIDE;

/** Builds the weights; about a tenth of a second. */
export function loadLabWeights(tuning: LabTuning = LAB_TUNING): ModelWeights {
  const { hidden } = LAB_CONFIG;
  assert(NUL_FLAG < hidden && TOKEN <= LAB_CONFIG.headDim, 'the slots fit the residual, a token fits V');
  const tokens = tokenCodes(tuning);
  const embed = new Float32Array(VOCAB_SIZE * hidden);
  for (let id = 0; id < VOCAB_SIZE; id++) {
    embed.set(tokens.subarray(id * TOKEN, (id + 1) * TOKEN), id * hidden);
    embed[id * hidden + CONSTANT] = 1;
  }
  embed[NUL * hidden + NUL_FLAG] = 1 / Math.sqrt(CODES);
  const { projection, outputs } = outputCodes(tokens);
  return {
    embed,
    layers: [previousTokenLayer(tuning), inductionLayer(tuning, projection)],
    norm: ones(hidden),
    head: outputHead(outputs, tuning),
  };
}

/** (VOCAB_SIZE, TOKEN), unit rows but for NUL: the five codes of each token side by side. */
function tokenCodes(tuning: LabTuning): Float64Array {
  const tokens = new Float64Array(VOCAB_SIZE * TOKEN);
  const share = 1 / Math.sqrt(CODES);
  labCodes().forEach((code, k) => {
    for (let id = 0; id < VOCAB_SIZE; id++) {
      // NUL reads like a dash, but its second code gives way to the flag.
      if (id === NUL && k === 1) continue;
      const source = id === NUL ? DASH : id;
      const kept = source === DASH ? tuning.dashKept[k] : 1;
      const at = id * TOKEN + k * WIDE;
      for (let d = 0; d < CODE_DIM; d++) tokens[at + d] = code[source * CODE_DIM + d] * kept * share;
      tokens[at + CODE_DIM] = Math.sqrt(1 - kept * kept) * share;
    }
  });
  return tokens;
}

interface OutputCodes {
  /** (OUT, TOKEN). */
  readonly projection: Float64Array;
  /** (VOCAB_SIZE, OUT): the projection of each token. */
  readonly outputs: Float64Array;
}

/** A random projection of the tokens to fewer dimensions, of mean squared size 1. */
function outputCodes(tokens: Float64Array): OutputCodes {
  const chance = new Prng(PROJECTION_SEED);
  const projection = Float64Array.from({ length: OUT * TOKEN }, () => chance.normal());
  const outputs = new Float64Array(VOCAB_SIZE * OUT);
  let squares = 0;
  for (let id = 0; id < VOCAB_SIZE; id++) {
    for (let o = 0; o < OUT; o++) {
      let sum = 0;
      for (let d = 0; d < TOKEN; d++) sum += tokens[id * TOKEN + d] * projection[o * TOKEN + d];
      outputs[id * OUT + o] = sum;
      squares += sum * sum;
    }
  }
  const factor = 1 / Math.sqrt(squares / VOCAB_SIZE);
  for (let i = 0; i < projection.length; i++) projection[i] *= factor;
  for (let i = 0; i < outputs.length; i++) outputs[i] *= factor;
  return { projection, outputs };
}

/** The residual's size is the same for all tokens, so each RMSNorm is a known factor: √(squares / hidden). */
function rms(squares: number): number {
  return Math.sqrt(squares / LAB_CONFIG.hidden + LAB_CONFIG.rmsEps);
}

const SQUARES_EMBED = 2;
const SQUARES_SLOTS = SQUARES_EMBED + 2 * CODES - 1;
const SQUARES_OUT = SQUARES_SLOTS + OUT_SIZE * OUT_SIZE;

interface Turning {
  readonly angles: Float64Array;
  /** Rotation pairs that tell positions apart: 0 to this. */
  readonly pairs: number;
  /** Dimensions of a head in which distance does not show. */
  readonly still: readonly number[];
}

function turning(): Turning {
  const angles = ropeAngles(LAB_CONFIG);
  const half = angles.length;
  const pairs = angles.findIndex((angle) => angle <= ANGLE_MIN);
  const still: number[] = [];
  for (const base of [0, half]) for (let i = pairs; i < half; i++) still.push(base + i);
  assert(still.length > CODES * CODE_DIM, 'the codes and the sink fit the dimensions that stand still');
  return { angles, pairs, still };
}

/** A layer of zeros with norms of one. */
function emptyLayer(): LayerWeights {
  const { hidden, heads, kvHeads, headDim, intermediate } = LAB_CONFIG;
  return {
    attentionNorm: ones(hidden),
    q: new Float32Array(heads * headDim * hidden),
    k: new Float32Array(kvHeads * headDim * hidden),
    v: new Float32Array(kvHeads * headDim * hidden),
    o: new Float32Array(hidden * heads * headDim),
    mlpNorm: ones(hidden),
    gate: new Float32Array(intermediate * hidden),
    up: new Float32Array(intermediate * hidden),
    down: new Float32Array(hidden * intermediate),
  };
}

function ones(count: number): Float32Array {
  return new Float32Array(count).fill(1);
}

/**
 * Layer 1: head h looks h + 1 tokens back. Key and query are made of the constant alone: the key is (1, 0) in each turning pair,
 * the query the same turned back by h + 1 positions, so that their product, Σ cos(angle × (distance − h − 1)), is largest there.
 */
function previousTokenLayer(tuning: LabTuning): LayerWeights {
  const { hidden, heads, headDim } = LAB_CONFIG;
  const layer = emptyLayer();
  const { angles, pairs, still } = turning();
  const norm = rms(SQUARES_EMBED);
  // The square root of a product's nats, before attention divides by √headDim, in units of the normed residual.
  const size = (nats: number): number => Math.sqrt(nats * Math.sqrt(headDim)) * norm;
  const sink = still[CODES * CODE_DIM];
  const sinkSize = size(tuning.previous * pairs - tuning.sinkBehind);
  // The empty dimensions of codes 3 and 4 are 1 / √CODES each for a sink, and 0 for any other token: a sink has the same product
  // at every distance, all others turn.
  const empty = [2, 3].map((k) => k * WIDE + CODE_DIM);
  for (const column of empty) layer.k[sink * hidden + column] = (sinkSize * Math.sqrt(CODES)) / empty.length;
  for (let i = 0; i < pairs; i++) {
    layer.k[i * hidden + CONSTANT] = size(tuning.previous);
    for (const column of empty)
      layer.k[i * hidden + column] = (-size(tuning.previous) * Math.sqrt(CODES)) / empty.length;
  }
  for (let h = 0; h < CODES; h++) {
    const row = h * headDim;
    for (let i = 0; i < pairs; i++) {
      layer.q[(row + i) * hidden + CONSTANT] = size(tuning.previous) * Math.cos(angles[i] * (h + 1));
      layer.q[(row + headDim / 2 + i) * hidden + CONSTANT] = -size(tuning.previous) * Math.sin(angles[i] * (h + 1));
    }
    layer.q[(row + sink) * hidden + CONSTANT] = sinkSize;
    for (let d = 0; d < 2 * WIDE && h * WIDE + d < TOKEN; d++) {
      layer.o[(slot(h) + d) * heads * headDim + row + h * WIDE + d] = Math.sqrt(CODES);
    }
  }
  for (let d = 0; d < TOKEN; d++) layer.v[d * hidden + d] = norm;
  return layer;
}

/**
 * Layer 2, one head: key j holds code k of the token k before j; the query, code 1 of the token itself and code k + 1 of the
 * token k before it. The product counts how many of the five tokens before j equal the last five; the value is the token at j.
 */
function inductionLayer(tuning: LabTuning, projection: Float64Array): LayerWeights {
  const { hidden, heads, headDim } = LAB_CONFIG;
  const layer = emptyLayer();
  const { pairs, still } = turning();
  const norm = rms(SQUARES_SLOTS);
  const size = (nats: number): number => Math.sqrt(nats * Math.sqrt(headDim)) * norm;
  for (let k = 0; k < CODES; k++) {
    const weight = size(tuning.match * tuning.matchWeights[k]);
    for (let d = 0; d < CODE_DIM; d++) {
      const row = still[k * CODE_DIM + d] * hidden;
      layer.k[row + slot(k) + d] = weight;
      if (k === 0) layer.q[row + d] = weight * Math.sqrt(CODES);
      else layer.q[row + slot(k - 1) + WIDE + d] = weight;
    }
  }
  const never = still[CODES * CODE_DIM] * hidden;
  layer.k[never + NUL_FLAG] = -size(NUL_BEHIND) * Math.sqrt(CODES);
  layer.q[never + CONSTANT] = size(NUL_BEHIND);
  const self = size(tuning.selfBehind / pairs);
  for (let i = 0; i < pairs; i++) {
    layer.k[i * hidden + CONSTANT] = self;
    layer.q[i * hidden + CONSTANT] = -self;
  }
  for (let d = 0; d < TOKEN; d++) layer.v[d * hidden + d] = norm;
  for (let o = 0; o < OUT; o++) {
    for (let d = 0; d < TOKEN; d++) layer.o[(TOKEN + o) * heads * headDim + d] = projection[o * TOKEN + d] * OUT_SIZE;
  }
  return layer;
}

/** Unit rows of the same projection. NUL's is zero: as an answer it means that nothing was seen. */
function outputHead(outputs: Float64Array, tuning: LabTuning): Float32Array {
  const { hidden } = LAB_CONFIG;
  const head = new Float32Array(VOCAB_SIZE * hidden);
  const factor = (tuning.output / OUT_SIZE) * rms(SQUARES_OUT);
  for (let id = 1; id < VOCAB_SIZE; id++) {
    const row = outputs.subarray(id * OUT, (id + 1) * OUT);
    const length = Math.hypot(...row);
    for (let o = 0; o < OUT; o++) head[id * hidden + TOKEN + o] = (row[o] / length) * factor;
  }
  return head;
}
