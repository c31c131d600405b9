/**
 * The Llama forward pass over paged KV. It knows nothing of the lab model: any `ModelWeights` of a `ModelConfig` run through it.
 * Every buffer lies in the role's memory and is taken once; a step allocates nothing but the view that it returns.
 */
import { assert } from '../base/assert.js';
import type { SharedMemory } from '../base/shared-memory.js';
import type { PageGeometry } from '../kv/geometry.js';
import { Arena, aligned } from '../tensor/arena.js';
import type { Address, Kernels, KernelsName, PackedMatrix } from '../tensor/contract.js';
import { createReferenceKernels } from '../tensor/reference.js';
import { createWasmKernels } from '../tensor/wasm.js';
import type { ModelConfig, ModelWeights } from './config.js';
import { logitsRow, type RoleMemoryPlan, rowsMax, type ScratchName, scratchSizes } from './memory.js';
import { type PackedLayer, type PackedMlp, type PackedWeights, packWeights } from './packed-weights.js';

export interface DecodeItem {
  /** The newest token, whose KV this step appends. */
  readonly token: number;
  /** Its position; positions 0 to this are attended over. */
  readonly position: number;
  /** Page numbers of the sequence, in order; more than needed are ignored. */
  readonly pages: Int32Array;
}

export interface ModelOptions {
  readonly config: ModelConfig;
  readonly weights: ModelWeights;
  readonly memory: SharedMemory;
  readonly plan: RoleMemoryPlan;
  readonly geometry: PageGeometry;
  readonly kernels: KernelsName;
}

export interface Model {
  readonly config: ModelConfig;
  /**
   * One chunk of one sequence: writes the K and V of `tokens`, the first at position `start`, into its pages; positions before
   * `start` are read from them. The logits (vocab) of the last token where they are wanted, valid until the next call.
   */
  prefill(tokens: Int32Array, start: number, pages: Int32Array, wantLogits: boolean): Float32Array | null;
  /** One token of each of up to `runningMax` sequences. Logits (count, vocab), valid until the next call. */
  decode(batch: readonly DecodeItem[]): Float32Array;
}

export function createModel(options: ModelOptions): Model {
  return new LlamaModel(options);
}

class LlamaModel implements Model {
  readonly config: ModelConfig;
  readonly #plan: RoleMemoryPlan;
  readonly #geometry: PageGeometry;
  readonly #kernels: Kernels;
  readonly #weights: PackedWeights;
  readonly #at: Readonly<Record<ScratchName, Address>>;
  readonly #floats: Float32Array;
  readonly #words: Uint32Array;
  /** Radians a position, in float64 (headDim / 2). */
  readonly #angles: Float64Array;
  /** (runningMax, vocab), a copy of what the kernels left in memory. */
  readonly #logits: Float32Array;
  readonly #logitsViews: readonly Float32Array[];
  /** Position of each row of the call. */
  readonly #positions: Int32Array;

  constructor(options: ModelOptions) {
    const { config, memory, plan, geometry } = options;
    this.config = config;
    this.#plan = plan;
    this.#geometry = geometry;
    this.#kernels = options.kernels === 'wasm' ? createWasmKernels(memory) : createReferenceKernels(memory);
    assert(memory.buffer.byteLength >= plan.bytes, 'the memory is as large as planned');
    const scratch = new Arena(plan.scratchBase, plan.poolBase);
    const sizes = scratchSizes({ ...plan, config, geometry });
    const at: Partial<Record<ScratchName, Address>> = {};
    for (const [name, bytes] of Object.entries(sizes)) at[name as ScratchName] = scratch.take(aligned(bytes));
    this.#at = at as Record<ScratchName, Address>;
    this.#weights = packWeights(options.weights, {
      config,
      geometry,
      memory: memory.buffer,
      arena: new Arena(plan.weightsBase, plan.scratchBase),
      poolBase: plan.poolBase,
      attentionScratch: this.#at.attention,
    });
    this.#floats = new Float32Array(memory.buffer);
    this.#words = new Uint32Array(memory.buffer);
    this.#angles = ropeAngles(config);
    this.#logits = new Float32Array(plan.runningMax * config.vocab);
    this.#logitsViews = Array.from({ length: plan.runningMax + 1 }, (_, count) =>
      this.#logits.subarray(0, count * config.vocab),
    );
    this.#positions = new Int32Array(rowsMax(plan));
  }

  prefill(tokens: Int32Array, start: number, pages: Int32Array, wantLogits: boolean): Float32Array | null {
    const count = tokens.length;
    assert(count >= 1 && count <= this.#plan.chunkTokensMax, 'a chunk has at least one token and fits the scratch');
    this.#placeTable(0, pages, start + count);
    for (let row = 0; row < count; row++) this.#placeToken(row, tokens[row], start + row);
    this.#layers(count, 1, count - 1, wantLogits ? 1 : 0);
    return wantLogits ? this.#head(count - 1, 1) : null;
  }

  decode(batch: readonly DecodeItem[]): Float32Array {
    const count = batch.length;
    assert(count >= 1 && count <= this.#plan.runningMax, 'a batch has at least one sequence and fits the scratch');
    for (let row = 0; row < count; row++) {
      const item = batch[row];
      this.#placeTable(row, item.pages, item.position + 1);
      this.#placeToken(row, item.token, item.position);
    }
    this.#layers(count, count, 0, count);
    return this.#head(0, count);
  }

  /** Copies a sequence's page table into memory, as far as `tokens` tokens need it. */
  #placeTable(sequence: number, pages: Int32Array, tokens: number): void {
    const needed = Math.ceil(tokens / this.#geometry.pageTokens);
    assert(pages.length >= needed, `a sequence of ${tokens} tokens has ${needed} pages`);
    assert(needed <= this.#plan.pages, 'a sequence has no more pages than the pool');
    const at = this.#at.tables / 4 + sequence * this.#plan.pages;
    for (let i = 0; i < needed; i++) {
      assert(pages[i] >= 0 && pages[i] < this.#plan.pages, 'a page number lies inside the pool');
      this.#words[at + i] = pages[i];
    }
  }

  #placeToken(row: number, token: number, position: number): void {
    assert(token >= 0 && token < this.config.vocab, 'a token lies inside the vocabulary');
    this.#words[this.#at.ids / 4 + row] = token;
    this.#positions[row] = position;
    const half = this.#angles.length;
    const at = this.#at.rotation / 4 + row * half * 2;
    for (let i = 0; i < half; i++) {
      const angle = this.#angles[i] * position;
      this.#floats[at + i] = Math.cos(angle);
      this.#floats[at + half + i] = Math.sin(angle);
    }
  }

  /**
   * All layers for `rows` tokens of `sequences` sequences (one, or one a row). Rows outFrom… (outCount of them) leave their
   * final residual in x; the last layer computes only K and V for the others, which nobody reads.
   */
  #layers(rows: number, sequences: number, outFrom: number, outCount: number): void {
    const { layers, embed } = this.#weights;
    this.#kernels.embed(this.#at.x, embed, this.#at.ids, rows, this.config.hidden);
    for (let index = 0; index < layers.length; index++) {
      const layer = layers[index];
      this.#keysAndValues(layer, rows, sequences);
      const last = index === layers.length - 1;
      const from = last ? outFrom : 0;
      const count = last ? outCount : rows;
      if (count === 0) return;
      this.#attend(layer, from, count, sequences);
      if (layer.mlp !== null) this.#mlp(layer.mlp, from, count);
    }
  }

  #keysAndValues(layer: PackedLayer, rows: number, sequences: number): void {
    const { x, normed, k, v, rotation } = this.#at;
    const { hidden, kvHeads, headDim, rmsEps } = this.config;
    const rowBytes = this.#geometry.kvDim * 4;
    this.#kernels.rmsnorm(normed, x, layer.attentionNorm, rows, hidden, rmsEps);
    this.#multiply(k, normed, layer.k, rows);
    this.#multiply(v, normed, layer.v, rows);
    this.#kernels.rope(k, rotation, rows, kvHeads, headDim, rowBytes);
    const each = rows / sequences;
    for (let sequence = 0; sequence < sequences; sequence++) {
      const row = sequence * each;
      const at = row * rowBytes;
      this.#kernels.storeKv(layer.attention, k + at, v + at, each, this.#positions[row], this.#table(sequence));
    }
  }

  #attend(layer: PackedLayer, from: number, count: number, sequences: number): void {
    const { normed, q, attended, delta, rotation, x } = this.#at;
    const { hidden, heads, headDim } = this.config;
    const rowBytes = heads * headDim * 4;
    this.#multiply(q, normed + from * hidden * 4, layer.q, count);
    this.#kernels.rope(q, rotation + from * headDim * 4, count, heads, headDim, rowBytes);
    const each = count / sequences;
    for (let sequence = 0; sequence < sequences; sequence++) {
      const row = sequence * each;
      const at = row * rowBytes;
      const position = this.#positions[from + row];
      this.#kernels.attention(layer.attention, attended + at, q + at, each, position, this.#table(sequence));
    }
    this.#multiply(delta, attended, layer.o, count);
    this.#kernels.add(x + from * hidden * 4, delta, count * hidden);
  }

  #mlp(mlp: PackedMlp, from: number, count: number): void {
    const { x, normed, gate, up, delta } = this.#at;
    const { hidden, intermediate, rmsEps } = this.config;
    const rows = x + from * hidden * 4;
    this.#kernels.rmsnorm(normed, rows, mlp.norm, count, hidden, rmsEps);
    this.#multiply(gate, normed, mlp.gate, count);
    this.#multiply(up, normed, mlp.up, count);
    this.#kernels.swiglu(gate, up, count * intermediate);
    this.#multiply(delta, gate, mlp.down, count);
    this.#kernels.add(rows, delta, count * hidden);
  }

  /** Logits of `count` rows from row `from` on. */
  #head(from: number, count: number): Float32Array {
    const { x, normed, logits } = this.#at;
    const { hidden, vocab, rmsEps } = this.config;
    this.#kernels.rmsnorm(normed, x + from * hidden * 4, this.#weights.norm, count, hidden, rmsEps);
    this.#multiply(logits, normed, this.#weights.head, count);
    const row = logitsRow(this.config);
    for (let i = 0; i < count; i++) {
      const at = logits / 4 + i * row;
      for (let id = 0; id < vocab; id++) this.#logits[i * vocab + id] = this.#floats[at + id];
    }
    return this.#logitsViews[count];
  }

  #multiply(out: Address, x: Address, matrix: PackedMatrix, rows: number): void {
    this.#kernels.matmul(out, x, matrix, rows, matrix.columns * 4, matrix.groups * 16);
  }

  #table(sequence: number): Address {
    return this.#at.tables + sequence * this.#plan.pages * 4;
  }
}

/** Radians a position of each rotation pair; theta may be as large as 1e20. */
export function ropeAngles(config: Pick<ModelConfig, 'headDim' | 'ropeTheta'>): Float64Array {
  const half = config.headDim / 2;
  return Float64Array.from({ length: half }, (_, i) => config.ropeTheta ** (-i / half));
}
