/**
 * Packs weights by what they hold, whatever model they are of: blocks of zeros are left out of products, a query head that the
 * output matrix ignores is not computed, and attention walks only dimensions that can differ from zero. All of it is exact:
 * what is left out contributes exactly zero. A dense matrix is packed as itself, with one index for sixteen values.
 */
import { assert } from '../base/assert.js';
import { aligned, type Arena } from './arena.js';
import type { Address, AttentionHead, AttentionPlan, PackedMatrix, Span } from './contract.js';

/** Rows, and columns, of a block. */
const BLOCK = 4;

/** Most bytes that a packed matrix can take: no block left out. */
export function packedBytesMax(rows: number, columns: number): number {
  const groups = Math.ceil(rows / BLOCK);
  const blocks = groups * Math.ceil(columns / BLOCK);
  return aligned((groups + 1) * 4) + aligned(blocks * 4) + aligned(blocks * 64);
}

/** Bit c of group g: whether block (g, c) of dense (rows, columns) holds anything. */
function occupied(dense: Float32Array, rows: number, columns: number): Uint8Array {
  const across = columns / BLOCK;
  const map = new Uint8Array(Math.ceil(rows / BLOCK) * across);
  for (let row = 0; row < rows; row++) {
    const line = (row >> 2) * across;
    const start = row * columns;
    for (let column = 0; column < columns; column++) {
      // NaN counts as held: it must show itself.
      if (dense[start + column] !== 0) map[line + (column >> 2)] = 1;
    }
  }
  return map;
}

/** Packs dense (rows, columns), row after row, into the arena. */
export function packMatrix(
  memory: ArrayBufferLike,
  arena: Arena,
  dense: Float32Array,
  rows: number,
  columns: number,
): PackedMatrix {
  assert(dense.length === rows * columns, 'a matrix has rows × columns values');
  assert(columns % BLOCK === 0, 'columns come in whole SIMD vectors');
  const map = occupied(dense, rows, columns);
  const across = columns / BLOCK;
  const groups = Math.ceil(rows / BLOCK);
  let blocks = 0;
  for (let i = 0; i < map.length; i++) blocks += map[i];
  const starts = arena.take((groups + 1) * 4);
  const offsets = arena.take(blocks * 4);
  const values = arena.take(blocks * 64);
  const startWords = new Uint32Array(memory, starts, groups + 1);
  const offsetWords = new Uint32Array(memory, offsets, blocks);
  const floats = new Float32Array(memory, values, blocks * 16);
  let next = 0;
  for (let group = 0; group < groups; group++) {
    startWords[group] = next;
    for (let column = 0; column < across; column++) {
      if (map[group * across + column] === 0) continue;
      offsetWords[next] = column * BLOCK * 4;
      copyBlock(
        floats,
        next * 16,
        dense,
        group * BLOCK,
        Math.min(rows, group * BLOCK + BLOCK),
        column * BLOCK,
        columns,
      );
      next++;
    }
  }
  startWords[groups] = next;
  return { rows, columns, groups, blocks, starts, offsets, values };
}

function copyBlock(
  floats: Float32Array,
  at: number,
  dense: Float32Array,
  rowStart: number,
  rowEnd: number,
  column: number,
  columns: number,
): void {
  for (let row = rowStart; row < rowEnd; row++) {
    for (let i = 0; i < BLOCK; i++) floats[at + (row - rowStart) * BLOCK + i] = dense[row * columns + column + i];
  }
}

/** The shape of one layer's attention and its dense projections, rows × columns as a checkpoint holds them. */
export interface AttentionWeights {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly hidden: number;
  /** (heads × headDim, hidden). */
  readonly q: Float32Array;
  /** (kvHeads × headDim, hidden). */
  readonly k: Float32Array;
  /** (hidden, heads × headDim). */
  readonly o: Float32Array;
}

/** The heads that matter, each with the dimensions that matter. */
export function attentionHeads(weights: AttentionWeights): AttentionHead[] {
  const { heads, kvHeads, headDim, hidden } = weights;
  assert(heads % kvHeads === 0, 'query heads share KV heads evenly');
  assert(headDim % 8 === 0, 'each half of a head has whole SIMD vectors');
  const read = columnsHeld(weights.o, hidden, heads * headDim);
  const found: AttentionHead[] = [];
  for (let head = 0; head < heads; head++) {
    const kvHead = Math.floor(head / (heads / kvHeads));
    const qHeld = pairsHeld(weights.q, head * headDim, headDim, hidden);
    const kHeld = pairsHeld(weights.k, kvHead * headDim, headDim, hidden);
    const values = spans(headDim, (d) => read[head * headDim + d] === 1);
    if (values.length === 0) continue;
    const dots = spans(headDim, (d) => (qHeld[d] & kHeld[d]) === 1);
    found.push({ q: head * headDim * 4, kv: kvHead * headDim * 4, dots, values });
  }
  return found;
}

function columnsHeld(dense: Float32Array, rows: number, columns: number): Uint8Array {
  const held = new Uint8Array(columns);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) if (dense[row * columns + column] !== 0) held[column] = 1;
  }
  return held;
}

/** Which dimensions of a head can differ from zero after rotation, which mixes d with d + headDim / 2. */
function pairsHeld(dense: Float32Array, row: number, headDim: number, columns: number): Uint8Array {
  const half = headDim / 2;
  const held = new Uint8Array(headDim);
  for (let d = 0; d < headDim; d++) {
    const start = (row + d) * columns;
    for (let column = 0; column < columns; column++) {
      if (dense[start + column] === 0) continue;
      held[d % half] = 1;
      held[(d % half) + half] = 1;
      break;
    }
  }
  return held;
}

/** Stretches of whole SIMD vectors in which any dimension is wanted. */
function spans(headDim: number, wanted: (dimension: number) => boolean): Span[] {
  const found: { start: number; end: number }[] = [];
  for (let d = 0; d < headDim; d += 4) {
    if (!(wanted(d) || wanted(d + 1) || wanted(d + 2) || wanted(d + 3))) continue;
    const last = found[found.length - 1];
    if (last !== undefined && last.end === d * 4) last.end += 16;
    else found.push({ start: d * 4, end: d * 4 + 16 });
  }
  return found;
}

export interface AttentionPlace {
  readonly pageTokens: number;
  readonly poolBase: Address;
  readonly pageBytes: number;
  readonly kOffset: number;
  readonly vOffset: number;
  readonly kvRowBytes: number;
  readonly qRowBytes: number;
  readonly headDim: number;
  readonly scratch: Address;
}

const PLAN_WORDS = 11;
const HEAD_WORDS = 6;

/** Most bytes that the plan of one layer takes in memory. */
export function attentionPlanBytesMax(heads: number, headDim: number): number {
  const spansMax = headDim / 8;
  return aligned(PLAN_WORDS * 4) + aligned(heads * HEAD_WORDS * 4) + heads * 2 * aligned(spansMax * 8);
}

/** Writes a layer's plan into memory, where the WebAssembly kernel reads it; `heads` from `attentionHeads`. */
export function planAttention(
  memory: ArrayBufferLike,
  arena: Arena,
  place: AttentionPlace,
  heads: readonly AttentionHead[],
): AttentionPlan {
  assert(place.pageTokens % 4 === 0, 'a page holds a multiple of four tokens, the keys that one step scores');
  const scale = 1 / Math.sqrt(place.headDim);
  const at = arena.take(PLAN_WORDS * 4);
  const table = arena.take(heads.length * HEAD_WORDS * 4);
  const words = new Uint32Array(memory, at, PLAN_WORDS);
  words[0] = place.pageTokens;
  words[1] = place.poolBase;
  words[2] = place.pageBytes;
  words[3] = place.kOffset;
  words[4] = place.vOffset;
  words[5] = place.kvRowBytes;
  words[6] = place.qRowBytes;
  words[7] = heads.length;
  words[8] = table;
  words[9] = place.scratch;
  new Float32Array(memory, at + 40, 1)[0] = scale;
  const rows = new Uint32Array(memory, table, heads.length * HEAD_WORDS);
  heads.forEach((head, index) => {
    const row = index * HEAD_WORDS;
    rows[row] = head.q;
    rows[row + 1] = head.kv;
    rows[row + 2] = head.dots.length;
    rows[row + 3] = writeSpans(memory, arena, head.dots);
    rows[row + 4] = head.values.length;
    rows[row + 5] = writeSpans(memory, arena, head.values);
  });
  return { ...place, heads, scale, at };
}

function writeSpans(memory: ArrayBufferLike, arena: Arena, list: readonly Span[]): Address {
  const at = arena.take(list.length * 8);
  const words = new Uint32Array(memory, at, list.length * 2);
  list.forEach((span, index) => {
    words[index * 2] = span.start;
    words[index * 2 + 1] = span.end;
  });
  return at;
}
