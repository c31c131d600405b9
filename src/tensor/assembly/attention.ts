// Attention over pages; the rules of kernels.ts hold.
import { EXP_MIN, exp4, fold, lanesSum, word } from './simd';

/** Queries that share one walk over the pages. */
const TILE: i32 = 8;
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
