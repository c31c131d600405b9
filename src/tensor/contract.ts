/**
 * The one contract of the kernels. Everything lies in one memory (a role's shared `WebAssembly.Memory`); addresses are bytes
 * from its start, multiples of 16. Output first, sizes last, shapes beside every buffer; all numbers are float32.
 *
 * Every implementation keeps one rule: what is computed for one token does not depend on which other tokens are in the same
 * call, so that a tenant's answer never depends on another's request.
 */
export type Address = number;

/** One matrix (rows, columns), packed by `packMatrix`: blocks of 4 rows × 4 columns that hold anything, all others left out. */
export interface PackedMatrix {
  readonly rows: number;
  readonly columns: number;
  /** Groups of four rows; the last is padded with zero rows, so an output row needs `groups × 4` floats. */
  readonly groups: number;
  readonly blocks: number;
  /** u32 (groups + 1): the first block of each group. */
  readonly starts: Address;
  /** u32 (blocks): bytes from the start of a row of x to the block's columns. */
  readonly offsets: Address;
  /** f32 (blocks, 4 rows, 4 columns). */
  readonly values: Address;
}

/** Bytes within a head, multiples of 16: from `start`, up to and without `end`. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** A query head that has any influence on the result. */
export interface AttentionHead {
  /** Bytes from the start of a row of q (and of out) to this head. */
  readonly q: number;
  /** Bytes from the start of a row of K (and of V) to the head's KV head. */
  readonly kv: number;
  /** Dimensions in which q and k can both differ from zero. */
  readonly dots: readonly Span[];
  /** Dimensions of V that the output matrix reads. */
  readonly values: readonly Span[];
}

/** What attention needs to know of one layer. `at` is its copy in memory, for kernels that read it there. */
export interface AttentionPlan {
  readonly pageTokens: number;
  readonly poolBase: Address;
  readonly pageBytes: number;
  /** Bytes from a page's start to this layer's K rows, and to its V rows. */
  readonly kOffset: number;
  readonly vOffset: number;
  readonly kvRowBytes: number;
  /** Bytes of a row of q and of out: heads × headDim × 4. */
  readonly qRowBytes: number;
  readonly headDim: number;
  readonly heads: readonly AttentionHead[];
  /** `attentionScratchBytes(heads, pageTokens)` bytes. */
  readonly scratch: Address;
  /** What a product is multiplied with before the softmax. */
  readonly scale: number;
  readonly at: Address;
}

export type KernelsName = 'wasm' | 'reference';

export interface Kernels {
  readonly name: KernelsName;
  /** out (tokens, dim) = rows `ids` (tokens, u32) of table (vocab, dim). */
  embed(out: Address, table: Address, ids: Address, tokens: number, dim: number): void;
  /** out (tokens, dim) = x / √(mean x² + eps) × weight (dim). */
  rmsnorm(out: Address, x: Address, weight: Address, tokens: number, dim: number, eps: number): void;
  /** x (count) += y (count). */
  add(x: Address, y: Address, count: number): void;
  /** out (tokens, groups × 4) = x (tokens, columns) × matrix^T; rows of out are `outRowBytes` apart. */
  matmul(out: Address, x: Address, matrix: PackedMatrix, tokens: number, xRowBytes: number, outRowBytes: number): void;
  /** Turns x (tokens, heads, headDim) in place, pairs (i, i + headDim / 2), by rotation (tokens, cosines then sines). */
  rope(x: Address, rotation: Address, tokens: number, heads: number, headDim: number, rowBytes: number): void;
  /** Writes k and v (tokens, kvDim) of one sequence into its pages from `position` on; pages: u32 page numbers. */
  storeKv(plan: AttentionPlan, k: Address, v: Address, tokens: number, position: number, pages: Address): void;
  /** Causal attention of q (tokens, heads × headDim), first at `position`, over the K and V of its pages. */
  attention(plan: AttentionPlan, out: Address, q: Address, tokens: number, position: number, pages: Address): void;
  /** gate (count) = silu(gate) × up (count). */
  swiglu(gate: Address, up: Address, count: number): void;
  /** Index of the first largest of x (count). */
  argmax(x: Address, count: number): number;
}

/** Queries that share one walk over the pages; as in `assembly/kernels.ts`. */
export const ATTENTION_TILE = 8;

/** Bytes of scratch that attention needs: weights (tile, pageTokens), then maximum and sum (heads, tile, 2). */
export function attentionScratchBytes(heads: number, pageTokens: number): number {
  return (ATTENTION_TILE * pageTokens + heads * ATTENTION_TILE * 2) * 4;
}
