// The kernels in AssemblyScript: plain 128-bit SIMD over the role's shared memory. Built by tools/wasm.ts.
//
// One rule holds everywhere: what is computed for one token never depends on which other tokens are in the same call. Every
// product is summed by one accumulator of four lanes in ascending order and folded as (0 + 2) + (1 + 3); tiles only decide how
// many such sums are under way at once. There are no static data, so instantiation writes nothing into the memory.

import { exp4, fold, lanesSum, word } from './simd';

export { attention, storeKv } from './attention';

/** out (tokens, dim) = the rows of table (ids, dim). */
export function embed(out: usize, table: usize, ids: usize, tokens: i32, dim: i32): void {
  const bytes = (<usize>dim) << 2;
  for (let t = 0; t < tokens; t++) {
    memory.copy(out + <usize>t * bytes, table + word(ids + ((<usize>t) << 2)) * bytes, bytes);
  }
}

/** out (tokens, dim) = x / rms(x) × weight (dim); dim is a multiple of 4. */
export function rmsnorm(out: usize, x: usize, weight: usize, tokens: i32, dim: i32, eps: f32): void {
  const bytes = (<usize>dim) << 2;
  for (let t = 0; t < tokens; t++) {
    let sum = f32x4.splat(0);
    for (let d: usize = 0; d < bytes; d += 16) {
      const v = v128.load(x + d);
      sum = f32x4.add(sum, f32x4.mul(v, v));
    }
    const factor = f32x4.splat(<f32>1.0 / sqrt<f32>(lanesSum(sum) / <f32>dim + eps));
    for (let d: usize = 0; d < bytes; d += 16) {
      v128.store(out + d, f32x4.mul(f32x4.mul(v128.load(x + d), factor), v128.load(weight + d)));
    }
    x += bytes;
    out += bytes;
  }
}

/** x (count) += y (count); count is a multiple of 4. */
export function add(x: usize, y: usize, count: i32): void {
  const end = x + ((<usize>count) << 2);
  while (x < end) {
    v128.store(x, f32x4.add(v128.load(x), v128.load(y)));
    x += 16;
    y += 16;
  }
}

/** Two neighbouring rows of x times one group of rows. */
function multiplyTwo(
  out: usize,
  outRowBytes: usize,
  x: usize,
  xRowBytes: usize,
  columns: usize,
  columnsEnd: usize,
  w: usize,
): void {
  let a0 = f32x4.splat(0);
  let a1 = f32x4.splat(0);
  let a2 = f32x4.splat(0);
  let a3 = f32x4.splat(0);
  let b0 = f32x4.splat(0);
  let b1 = f32x4.splat(0);
  let b2 = f32x4.splat(0);
  let b3 = f32x4.splat(0);
  for (let c = columns; c < columnsEnd; c += 4) {
    const at = x + word(c);
    const u = v128.load(at);
    const v = v128.load(at + xRowBytes);
    const w0 = v128.load(w);
    const w1 = v128.load(w, 16);
    const w2 = v128.load(w, 32);
    const w3 = v128.load(w, 48);
    a0 = f32x4.add(a0, f32x4.mul(u, w0));
    a1 = f32x4.add(a1, f32x4.mul(u, w1));
    a2 = f32x4.add(a2, f32x4.mul(u, w2));
    a3 = f32x4.add(a3, f32x4.mul(u, w3));
    b0 = f32x4.add(b0, f32x4.mul(v, w0));
    b1 = f32x4.add(b1, f32x4.mul(v, w1));
    b2 = f32x4.add(b2, f32x4.mul(v, w2));
    b3 = f32x4.add(b3, f32x4.mul(v, w3));
    w += 64;
  }
  v128.store(out, fold(a0, a1, a2, a3));
  v128.store(out + outRowBytes, fold(b0, b1, b2, b3));
}

/** One row of x times one group of rows. */
function multiplyOne(out: usize, x: usize, columns: usize, columnsEnd: usize, w: usize): void {
  let a0 = f32x4.splat(0);
  let a1 = f32x4.splat(0);
  let a2 = f32x4.splat(0);
  let a3 = f32x4.splat(0);
  for (let c = columns; c < columnsEnd; c += 4) {
    const u = v128.load(x + word(c));
    a0 = f32x4.add(a0, f32x4.mul(u, v128.load(w)));
    a1 = f32x4.add(a1, f32x4.mul(u, v128.load(w, 16)));
    a2 = f32x4.add(a2, f32x4.mul(u, v128.load(w, 32)));
    a3 = f32x4.add(a3, f32x4.mul(u, v128.load(w, 48)));
    w += 64;
  }
  v128.store(out, fold(a0, a1, a2, a3));
}

/**
 * out[t, row] = Σ x[t, column] × w[row, column] over the blocks that hold anything. A block is 4 rows × 4 columns; group g of
 * rows has the blocks starts[g]…starts[g + 1]; columns holds a block's offset in bytes into a row of x.
 */
export function matmul(
  out: usize,
  x: usize,
  starts: usize,
  columns: usize,
  values: usize,
  groups: i32,
  tokens: i32,
  xRowBytes: usize,
  outRowBytes: usize,
): void {
  // Sixteen rows of x stay near while the weights pass by.
  for (let base = 0; base < tokens; base += 16) {
    const end = min(tokens, base + 16);
    for (let g = 0; g < groups; g++) {
      const first = word(starts + ((<usize>g) << 2));
      const last = word(starts + ((<usize>g) << 2) + 4);
      const blocks = columns + (first << 2);
      const blocksEnd = columns + (last << 2);
      const w = values + (first << 6);
      const o = out + ((<usize>g) << 4);
      let t = base;
      for (; t + 1 < end; t += 2) {
        const row = <usize>t;
        multiplyTwo(o + row * outRowBytes, outRowBytes, x + row * xRowBytes, xRowBytes, blocks, blocksEnd, w);
      }
      if (t < end) multiplyOne(o + <usize>t * outRowBytes, x + <usize>t * xRowBytes, blocks, blocksEnd, w);
    }
  }
}

/** Turns the heads of x in place, "halves" layout: (i, i + headDim / 2). rotation is (tokens, cosines then sines). */
export function rope(x: usize, rotation: usize, tokens: i32, heads: i32, headDim: i32, rowBytes: usize): void {
  const half = (<usize>headDim) << 1;
  for (let t = 0; t < tokens; t++) {
    const turn = rotation + <usize>t * (half << 1);
    for (let h = 0; h < heads; h++) {
      const at = x + <usize>t * rowBytes + <usize>h * (half << 1);
      for (let i: usize = 0; i < half; i += 16) {
        const a = v128.load(at + i);
        const b = v128.load(at + half + i);
        const c = v128.load(turn + i);
        const s = v128.load(turn + half + i);
        v128.store(at + i, f32x4.sub(f32x4.mul(a, c), f32x4.mul(b, s)));
        v128.store(at + half + i, f32x4.add(f32x4.mul(b, c), f32x4.mul(a, s)));
      }
    }
  }
}

/** gate (count) = silu(gate) × up; count is a multiple of 4. */
export function swiglu(gate: usize, up: usize, count: i32): void {
  const end = gate + ((<usize>count) << 2);
  const one = f32x4.splat(1);
  while (gate < end) {
    const g = v128.load(gate);
    // silu(g) = g / (1 + e^-g), by e^-|g| so that the exponential never overflows.
    const e = exp4(f32x4.neg(f32x4.abs(g)));
    const numerator = v128.bitselect(e, one, f32x4.lt(g, f32x4.splat(0)));
    const silu = f32x4.div(f32x4.mul(g, numerator), f32x4.add(one, e));
    v128.store(gate, f32x4.mul(silu, v128.load(up)));
    gate += 16;
    up += 16;
  }
}

/** The index of the first largest value. */
export function argmax(x: usize, count: i32): i32 {
  let best = 0;
  let most = load<f32>(x);
  for (let i = 1; i < count; i++) {
    const value = load<f32>(x + ((<usize>i) << 2));
    if (value > most) {
      most = value;
      best = i;
    }
  }
  return best;
}
