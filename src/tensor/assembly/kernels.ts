// The kernels in AssemblyScript: plain 128-bit SIMD over the role's shared memory. Built by tools/wasm.ts.
//
// One rule holds everywhere: what is computed for one token never depends on which other tokens are in the same call. Every
// product is summed by one accumulator of four lanes in ascending order and folded as (0 + 2) + (1 + 3); tiles only decide how
// many such sums are under way at once. There are no static data, so instantiation writes nothing into the memory.

/** Queries that share one walk over the pages. */
const TILE: i32 = 8;
/** exp is exactly zero below this, so a page whose best score is further behind the maximum adds exactly nothing. */
const EXP_MIN: f32 = -87.0;
const MINUS_INFINITY: f32 = -f32.MAX_VALUE;

// The words of an attention plan; the same order as `planAttention` writes them.
const PLAN_PAGE_TOKENS: usize = 0;
const PLAN_POOL_BASE: usize = 4;
const PLAN_PAGE_BYTES: usize = 8;
const PLAN_K_OFFSET: usize = 12;
const PLAN_V_OFFSET: usize = 16;
const PLAN_KV_ROW_BYTES: usize = 20;
const PLAN_Q_ROW_BYTES: usize = 24;
const PLAN_HEADS: usize = 28;
const PLAN_HEAD_TABLE: usize = 32;
const PLAN_SCRATCH: usize = 36;
const PLAN_SCALE: usize = 40;
// A head of it.
const HEAD_BYTES: usize = 24;
const HEAD_Q: usize = 0;
const HEAD_KV: usize = 4;
const HEAD_DOT_COUNT: usize = 8;
const HEAD_DOT: usize = 12;
const HEAD_VALUE_COUNT: usize = 16;
const HEAD_VALUE: usize = 20;

// @ts-expect-error: decorator
@inline
function word(address: usize): usize {
  return <usize>load<u32>(address);
}

/** The sums of four accumulators as four lanes, each (0 + 2) + (1 + 3). */
// @ts-expect-error: decorator
@inline
function fold(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab = f32x4.add(v128.shuffle<i32>(a, b, 0, 4, 1, 5), v128.shuffle<i32>(a, b, 2, 6, 3, 7));
  const cd = f32x4.add(v128.shuffle<i32>(c, d, 0, 4, 1, 5), v128.shuffle<i32>(c, d, 2, 6, 3, 7));
  return f32x4.add(v128.shuffle<i32>(ab, cd, 0, 1, 4, 5), v128.shuffle<i32>(ab, cd, 2, 3, 6, 7));
}

// @ts-expect-error: decorator
@inline
function lanesSum(a: v128): f32 {
  return f32x4.extract_lane(a, 0) + f32x4.extract_lane(a, 2) + (f32x4.extract_lane(a, 1) + f32x4.extract_lane(a, 3));
}

/** e^x for any x up to 88, about 2 units in the last place; exactly 1 at 0, exactly 0 below EXP_MIN. */
// @ts-expect-error: decorator
@inline
function exp4(x: v128): v128 {
  const live = f32x4.ge(x, f32x4.splat(EXP_MIN));
  const bounded = f32x4.max(x, f32x4.splat(EXP_MIN));
  const n = f32x4.nearest(f32x4.mul(bounded, f32x4.splat(1.44269504088896341)));
  let r = f32x4.sub(bounded, f32x4.mul(n, f32x4.splat(0.693359375)));
  r = f32x4.sub(r, f32x4.mul(n, f32x4.splat(-2.12194440e-4)));
  let p = f32x4.splat(1.9875691500e-4);
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(1.3981999507e-3));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(8.3334519073e-3));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(4.1665795894e-2));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(1.6666665459e-1));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(0.5));
  p = f32x4.add(f32x4.add(f32x4.mul(p, f32x4.mul(r, r)), r), f32x4.splat(1.0));
  const power = i32x4.shl(i32x4.add(i32x4.trunc_sat_f32x4_s(n), i32x4.splat(127)), 23);
  return v128.and(f32x4.mul(p, power), live);
}

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
      let t = base;
      for (; t + 1 < end; t += 2) {
        const x0 = x + <usize>t * xRowBytes;
        let a0 = f32x4.splat(0);
        let a1 = f32x4.splat(0);
        let a2 = f32x4.splat(0);
        let a3 = f32x4.splat(0);
        let b0 = f32x4.splat(0);
        let b1 = f32x4.splat(0);
        let b2 = f32x4.splat(0);
        let b3 = f32x4.splat(0);
        let w = values + (first << 6);
        for (let c = columns + (first << 2); c < columns + (last << 2); c += 4) {
          const at = x0 + word(c);
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
        const o = out + <usize>t * outRowBytes + ((<usize>g) << 4);
        v128.store(o, fold(a0, a1, a2, a3));
        v128.store(o + outRowBytes, fold(b0, b1, b2, b3));
      }
      if (t < end) {
        const x0 = x + <usize>t * xRowBytes;
        let a0 = f32x4.splat(0);
        let a1 = f32x4.splat(0);
        let a2 = f32x4.splat(0);
        let a3 = f32x4.splat(0);
        let w = values + (first << 6);
        for (let c = columns + (first << 2); c < columns + (last << 2); c += 4) {
          const u = v128.load(x0 + word(c));
          a0 = f32x4.add(a0, f32x4.mul(u, v128.load(w)));
          a1 = f32x4.add(a1, f32x4.mul(u, v128.load(w, 16)));
          a2 = f32x4.add(a2, f32x4.mul(u, v128.load(w, 32)));
          a3 = f32x4.add(a3, f32x4.mul(u, v128.load(w, 48)));
          w += 64;
        }
        v128.store(out + <usize>t * outRowBytes + ((<usize>g) << 4), fold(a0, a1, a2, a3));
      }
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

/** Writes the K and V rows (tokens, kvDim) of one sequence into its pages, from `position` on. */
export function storeKv(plan: usize, k: usize, v: usize, tokens: i32, position: i32, pages: usize): void {
  const pageTokens = <i32>word(plan + PLAN_PAGE_TOKENS);
  const rowBytes = word(plan + PLAN_KV_ROW_BYTES);
  for (let t = 0; t < tokens; t++) {
    const at = position + t;
    const page = word(pages + ((<usize>(at / pageTokens)) << 2));
    const row = word(plan + PLAN_POOL_BASE) + page * word(plan + PLAN_PAGE_BYTES) + <usize>(at % pageTokens) * rowBytes;
    memory.copy(row + word(plan + PLAN_K_OFFSET), k + <usize>t * rowBytes, rowBytes);
    memory.copy(row + word(plan + PLAN_V_OFFSET), v + <usize>t * rowBytes, rowBytes);
  }
}

/** scores (keys) = q · K for one query, four keys at a time. */
function dotOne(scores: usize, q: usize, k: usize, keys: i32, rowBytes: usize, spans: usize, spanCount: usize): void {
  const spansEnd = spans + (spanCount << 3);
  for (let j = 0; j < keys; j += 4) {
    let a0 = f32x4.splat(0);
    let a1 = f32x4.splat(0);
    let a2 = f32x4.splat(0);
    let a3 = f32x4.splat(0);
    for (let s = spans; s < spansEnd; s += 8) {
      const end = q + word(s + 4);
      let k0 = k + word(s);
      for (let at = q + word(s); at < end; at += 16) {
        const u = v128.load(at);
        const k2 = k0 + (rowBytes << 1);
        a0 = f32x4.add(a0, f32x4.mul(u, v128.load(k0)));
        a1 = f32x4.add(a1, f32x4.mul(u, v128.load(k0 + rowBytes)));
        a2 = f32x4.add(a2, f32x4.mul(u, v128.load(k2)));
        a3 = f32x4.add(a3, f32x4.mul(u, v128.load(k2 + rowBytes)));
        k0 += 16;
      }
    }
    v128.store(scores, fold(a0, a1, a2, a3));
    scores += 16;
    k += rowBytes << 2;
  }
}

/** The same for two neighbouring queries, whose scores lie `scoresBytes` apart. */
function dotTwo(
  scores: usize,
  scoresBytes: usize,
  q: usize,
  qRowBytes: usize,
  k: usize,
  keys: i32,
  rowBytes: usize,
  spans: usize,
  spanCount: usize,
): void {
  const spansEnd = spans + (spanCount << 3);
  for (let j = 0; j < keys; j += 4) {
    let a0 = f32x4.splat(0);
    let a1 = f32x4.splat(0);
    let a2 = f32x4.splat(0);
    let a3 = f32x4.splat(0);
    let b0 = f32x4.splat(0);
    let b1 = f32x4.splat(0);
    let b2 = f32x4.splat(0);
    let b3 = f32x4.splat(0);
    for (let s = spans; s < spansEnd; s += 8) {
      const end = q + word(s + 4);
      let k0 = k + word(s);
      for (let at = q + word(s); at < end; at += 16) {
        const u = v128.load(at);
        const v = v128.load(at + qRowBytes);
        const k2 = k0 + (rowBytes << 1);
        const r0 = v128.load(k0);
        const r1 = v128.load(k0 + rowBytes);
        const r2 = v128.load(k2);
        const r3 = v128.load(k2 + rowBytes);
        a0 = f32x4.add(a0, f32x4.mul(u, r0));
        a1 = f32x4.add(a1, f32x4.mul(u, r1));
        a2 = f32x4.add(a2, f32x4.mul(u, r2));
        a3 = f32x4.add(a3, f32x4.mul(u, r3));
        b0 = f32x4.add(b0, f32x4.mul(v, r0));
        b1 = f32x4.add(b1, f32x4.mul(v, r1));
        b2 = f32x4.add(b2, f32x4.mul(v, r2));
        b3 = f32x4.add(b3, f32x4.mul(v, r3));
        k0 += 16;
      }
    }
    v128.store(scores, fold(a0, a1, a2, a3));
    v128.store(scores + scoresBytes, fold(b0, b1, b2, b3));
    scores += 16;
    k += rowBytes << 2;
  }
}

/**
 * Turns a page's scores into weights against the running maximum and sum of one query (state: maximum, sum); rescales what was
 * gathered when the maximum rises. False: every weight of the page is exactly zero.
 */
function weigh(
  scores: usize,
  keys: i32,
  scale: f32,
  state: usize,
  out: usize,
  spans: usize,
  spanCount: usize,
): bool {
  const padded = (keys + 3) & ~3;
  const scoresEnd = scores + ((<usize>padded) << 2);
  for (let j = keys; j < padded; j++) store<f32>(scores + ((<usize>j) << 2), MINUS_INFINITY);
  let best = f32x4.splat(MINUS_INFINITY);
  const scales = f32x4.splat(scale);
  for (let at = scores; at < scoresEnd; at += 16) {
    const s = f32x4.mul(v128.load(at), scales);
    v128.store(at, s);
    best = f32x4.max(best, s);
  }
  const pageMax = max(
    max(f32x4.extract_lane(best, 0), f32x4.extract_lane(best, 2)),
    max(f32x4.extract_lane(best, 1), f32x4.extract_lane(best, 3)),
  );
  let maximum = load<f32>(state);
  let sum = load<f32>(state, 4);
  if (pageMax - maximum < EXP_MIN) return false;
  if (pageMax > maximum) {
    const shrink = exp4(f32x4.splat(maximum - pageMax));
    maximum = pageMax;
    sum *= f32x4.extract_lane(shrink, 0);
    for (let s = spans; s < spans + (spanCount << 3); s += 8) {
      const end = out + word(s + 4);
      for (let at = out + word(s); at < end; at += 16) v128.store(at, f32x4.mul(v128.load(at), shrink));
    }
  }
  const top = f32x4.splat(maximum);
  let total = f32x4.splat(0);
  for (let at = scores; at < scoresEnd; at += 16) {
    const p = exp4(f32x4.sub(v128.load(at), top));
    v128.store(at, p);
    total = f32x4.add(total, p);
  }
  store<f32>(state, maximum);
  store<f32>(state, sum + lanesSum(total), 4);
  return true;
}

/** out += Σ p[key] × V[key] for one query. */
function gatherOne(out: usize, p: usize, v: usize, keys: i32, rowBytes: usize, spans: usize, spanCount: usize): void {
  const pEnd = p + ((<usize>keys) << 2);
  for (let s = spans; s < spans + (spanCount << 3); s += 8) {
    const end = word(s + 4);
    let d = word(s);
    for (; d + 64 <= end; d += 64) {
      let a0 = v128.load(out + d);
      let a1 = v128.load(out + d, 16);
      let a2 = v128.load(out + d, 32);
      let a3 = v128.load(out + d, 48);
      let row = v + d;
      for (let at = p; at < pEnd; at += 4) {
        const w = v128.load32_splat(at);
        a0 = f32x4.add(a0, f32x4.mul(w, v128.load(row)));
        a1 = f32x4.add(a1, f32x4.mul(w, v128.load(row, 16)));
        a2 = f32x4.add(a2, f32x4.mul(w, v128.load(row, 32)));
        a3 = f32x4.add(a3, f32x4.mul(w, v128.load(row, 48)));
        row += rowBytes;
      }
      v128.store(out + d, a0);
      v128.store(out + d, a1, 16);
      v128.store(out + d, a2, 32);
      v128.store(out + d, a3, 48);
    }
    for (; d < end; d += 16) {
      let a0 = v128.load(out + d);
      let row = v + d;
      for (let at = p; at < pEnd; at += 4) {
        a0 = f32x4.add(a0, f32x4.mul(v128.load32_splat(at), v128.load(row)));
        row += rowBytes;
      }
      v128.store(out + d, a0);
    }
  }
}

/** The same for two neighbouring queries. */
function gatherTwo(
  out: usize,
  outRowBytes: usize,
  p: usize,
  pBytes: usize,
  v: usize,
  keys: i32,
  rowBytes: usize,
  spans: usize,
  spanCount: usize,
): void {
  const pEnd = p + ((<usize>keys) << 2);
  const next = out + outRowBytes;
  for (let s = spans; s < spans + (spanCount << 3); s += 8) {
    const end = word(s + 4);
    let d = word(s);
    for (; d + 64 <= end; d += 64) {
      let a0 = v128.load(out + d);
      let a1 = v128.load(out + d, 16);
      let a2 = v128.load(out + d, 32);
      let a3 = v128.load(out + d, 48);
      let b0 = v128.load(next + d);
      let b1 = v128.load(next + d, 16);
      let b2 = v128.load(next + d, 32);
      let b3 = v128.load(next + d, 48);
      let row = v + d;
      for (let at = p; at < pEnd; at += 4) {
        const w = v128.load32_splat(at);
        const u = v128.load32_splat(at + pBytes);
        const r0 = v128.load(row);
        const r1 = v128.load(row, 16);
        const r2 = v128.load(row, 32);
        const r3 = v128.load(row, 48);
        a0 = f32x4.add(a0, f32x4.mul(w, r0));
        a1 = f32x4.add(a1, f32x4.mul(w, r1));
        a2 = f32x4.add(a2, f32x4.mul(w, r2));
        a3 = f32x4.add(a3, f32x4.mul(w, r3));
        b0 = f32x4.add(b0, f32x4.mul(u, r0));
        b1 = f32x4.add(b1, f32x4.mul(u, r1));
        b2 = f32x4.add(b2, f32x4.mul(u, r2));
        b3 = f32x4.add(b3, f32x4.mul(u, r3));
        row += rowBytes;
      }
      v128.store(out + d, a0);
      v128.store(out + d, a1, 16);
      v128.store(out + d, a2, 32);
      v128.store(out + d, a3, 48);
      v128.store(next + d, b0);
      v128.store(next + d, b1, 16);
      v128.store(next + d, b2, 32);
      v128.store(next + d, b3, 48);
    }
    for (; d < end; d += 16) {
      let a0 = v128.load(out + d);
      let b0 = v128.load(next + d);
      let row = v + d;
      for (let at = p; at < pEnd; at += 4) {
        const r0 = v128.load(row);
        a0 = f32x4.add(a0, f32x4.mul(v128.load32_splat(at), r0));
        b0 = f32x4.add(b0, f32x4.mul(v128.load32_splat(at + pBytes), r0));
        row += rowBytes;
      }
      v128.store(out + d, a0);
      v128.store(next + d, b0);
    }
  }
}

/** Keys of page `index` that a query at `position` sees. */
// @ts-expect-error: decorator
@inline
function visible(position: i32, index: i32, pageTokens: i32): i32 {
  return max(0, min(pageTokens, position - index * pageTokens + 1));
}

/**
 * Causal attention of `tokens` queries of one sequence, the first at `position`, over the K and V in its pages; pages is its
 * table (i32 page numbers). q and out: (tokens, heads × headDim). Newest page first: near keys tend to hold the maximum, and
 * pages that are too far behind it then cost no value rows.
 */
export function attention(plan: usize, out: usize, q: usize, tokens: i32, position: i32, pages: usize): void {
  for (let base = 0; base < tokens; base += TILE) {
    const at = <usize>base * word(plan + PLAN_Q_ROW_BYTES);
    attendTile(plan, out + at, q + at, min(TILE, tokens - base), position + base, pages);
  }
}

function attendTile(plan: usize, out: usize, q: usize, queries: i32, position: i32, pages: usize): void {
  const pageTokens = <i32>word(plan + PLAN_PAGE_TOKENS);
  const heads = <i32>word(plan + PLAN_HEADS);
  const table = word(plan + PLAN_HEAD_TABLE);
  // Scratch: weights (TILE, pageTokens), then maximum and sum (heads, TILE, 2).
  const scratch = word(plan + PLAN_SCRATCH);
  const states = scratch + (<usize>(TILE * pageTokens) << 2);
  open(plan, states, out, queries);
  for (let index = (position + queries - 1) / pageTokens; index >= 0; index--) {
    const page =
      word(plan + PLAN_POOL_BASE) + word(pages + ((<usize>index) << 2)) * word(plan + PLAN_PAGE_BYTES);
    for (let h = 0; h < heads; h++) {
      const head = table + <usize>h * HEAD_BYTES;
      const state = states + ((<usize>(h * TILE)) << 3);
      for (let i = 0; i < queries; i += 2) {
        attendPair(plan, head, state + ((<usize>i) << 3), scratch, out, q, i, min(2, queries - i), position, index, page);
      }
    }
  }
  close(plan, states, out, queries);
}

/** One or two neighbouring queries of one head over one page. */
function attendPair(
  plan: usize,
  head: usize,
  state: usize,
  scratch: usize,
  out: usize,
  q: usize,
  query: i32,
  count: i32,
  position: i32,
  index: i32,
  page: usize,
): void {
  const pageTokens = <i32>word(plan + PLAN_PAGE_TOKENS);
  const rowBytes = word(plan + PLAN_KV_ROW_BYTES);
  const qRowBytes = word(plan + PLAN_Q_ROW_BYTES);
  const scale = load<f32>(plan + PLAN_SCALE);
  const pBytes = (<usize>pageTokens) << 2;
  const k = page + word(plan + PLAN_K_OFFSET) + word(head + HEAD_KV);
  const v = page + word(plan + PLAN_V_OFFSET) + word(head + HEAD_KV);
  const dots = word(head + HEAD_DOT);
  const dotCount = word(head + HEAD_DOT_COUNT);
  const spans = word(head + HEAD_VALUE);
  const spanCount = word(head + HEAD_VALUE_COUNT);
  const row = <usize>query * qRowBytes + word(head + HEAD_Q);
  const seen = visible(position + query, index, pageTokens);
  const seenNext = count == 2 ? visible(position + query + 1, index, pageTokens) : 0;
  if (seen > 0 && seenNext > 0) dotTwo(scratch, pBytes, q + row, qRowBytes, k, seenNext, rowBytes, dots, dotCount);
  else if (seen > 0) dotOne(scratch, q + row, k, seen, rowBytes, dots, dotCount);
  else if (seenNext > 0) dotOne(scratch + pBytes, q + row + qRowBytes, k, seenNext, rowBytes, dots, dotCount);
  const live = seen > 0 && weigh(scratch, seen, scale, state, out + row, spans, spanCount);
  const next = out + row + qRowBytes;
  const liveNext = seenNext > 0 && weigh(scratch + pBytes, seenNext, scale, state + 8, next, spans, spanCount);
  if (live && liveNext && seen == seenNext) {
    gatherTwo(out + row, qRowBytes, scratch, pBytes, v, seen, rowBytes, spans, spanCount);
    return;
  }
  if (live) gatherOne(out + row, scratch, v, seen, rowBytes, spans, spanCount);
  if (liveNext) gatherOne(next, scratch + pBytes, v, seenNext, rowBytes, spans, spanCount);
}

function open(plan: usize, states: usize, out: usize, queries: i32): void {
  const heads = <i32>word(plan + PLAN_HEADS);
  for (let h = 0; h < heads; h++) {
    const head = word(plan + PLAN_HEAD_TABLE) + <usize>h * HEAD_BYTES;
    const spans = word(head + HEAD_VALUE);
    for (let i = 0; i < queries; i++) {
      const state = states + ((<usize>(h * TILE + i)) << 3);
      store<f32>(state, MINUS_INFINITY);
      store<f32>(state, 0, 4);
      const row = out + <usize>i * word(plan + PLAN_Q_ROW_BYTES) + word(head + HEAD_Q);
      for (let s = spans; s < spans + (word(head + HEAD_VALUE_COUNT) << 3); s += 8) {
        memory.fill(row + word(s), 0, word(s + 4) - word(s));
      }
    }
  }
}

function close(plan: usize, states: usize, out: usize, queries: i32): void {
  const heads = <i32>word(plan + PLAN_HEADS);
  for (let h = 0; h < heads; h++) {
    const head = word(plan + PLAN_HEAD_TABLE) + <usize>h * HEAD_BYTES;
    const spans = word(head + HEAD_VALUE);
    for (let i = 0; i < queries; i++) {
      const sum = f32x4.splat(load<f32>(states + ((<usize>(h * TILE + i)) << 3), 4));
      const row = out + <usize>i * word(plan + PLAN_Q_ROW_BYTES) + word(head + HEAD_Q);
      for (let s = spans; s < spans + (word(head + HEAD_VALUE_COUNT) << 3); s += 8) {
        const end = row + word(s + 4);
        for (let at = row + word(s); at < end; at += 16) v128.store(at, f32x4.div(v128.load(at), sum));
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
