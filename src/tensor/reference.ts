import type { SharedMemory } from '../base/shared-memory.js';
import type { Address, AttentionHead, AttentionPlan, Kernels, PackedMatrix } from './contract.js';

/**
 * The kernels in plain TypeScript: slow, short, summed in float64, and kept forever, so that the fast ones have something to be
 * held to.
 */
export function createReferenceKernels(memory: SharedMemory): Kernels {
  const f = new Float32Array(memory.buffer);
  const u = new Uint32Array(memory.buffer);
  return {
    name: 'reference',
    embed: (out, table, ids, tokens, dim) => {
      for (let t = 0; t < tokens; t++) {
        const row = table / 4 + u[ids / 4 + t] * dim;
        for (let d = 0; d < dim; d++) f[out / 4 + t * dim + d] = f[row + d];
      }
    },
    rmsnorm: (out, x, weight, tokens, dim, eps) => {
      for (let t = 0; t < tokens; t++) rmsnormRow(f, out / 4 + t * dim, x / 4 + t * dim, weight / 4, dim, eps);
    },
    add: (x, y, count) => {
      for (let i = 0; i < count; i++) f[x / 4 + i] += f[y / 4 + i];
    },
    matmul: (out, x, matrix, tokens, xRowBytes, outRowBytes) => {
      for (let t = 0; t < tokens; t++) matmulRow(f, u, (out + t * outRowBytes) / 4, (x + t * xRowBytes) / 4, matrix);
    },
    rope: (x, rotation, tokens, heads, headDim, rowBytes) => {
      for (let t = 0; t < tokens; t++) {
        for (let h = 0; h < heads; h++) {
          ropeHead(f, (x + t * rowBytes) / 4 + h * headDim, rotation / 4 + t * headDim, headDim / 2);
        }
      }
    },
    storeKv: (plan, k, v, tokens, position, pages) => {
      const floats = plan.kvRowBytes / 4;
      for (let t = 0; t < tokens; t++) {
        const row = kvRow(u, plan, position + t, pages);
        for (let d = 0; d < floats; d++) {
          f[(row + plan.kOffset) / 4 + d] = f[k / 4 + t * floats + d];
          f[(row + plan.vOffset) / 4 + d] = f[v / 4 + t * floats + d];
        }
      }
    },
    attention: (plan, out, q, tokens, position, pages) => {
      for (let t = 0; t < tokens; t++) {
        for (const head of plan.heads) {
          attendHead(f, u, plan, head, out + t * plan.qRowBytes, q + t * plan.qRowBytes, position + t, pages);
        }
      }
    },
    swiglu: (gate, up, count) => {
      for (let i = 0; i < count; i++) {
        const g = f[gate / 4 + i];
        f[gate / 4 + i] = (g / (1 + Math.exp(-g))) * f[up / 4 + i];
      }
    },
    argmax: (x, count) => {
      let best = 0;
      for (let i = 1; i < count; i++) if (f[x / 4 + i] > f[x / 4 + best]) best = i;
      return best;
    },
  };
}

/** Bytes from the memory's start to the row of `position` within its page, without the layer's offset. */
function kvRow(u: Uint32Array, plan: AttentionPlan, position: number, pages: Address): number {
  const page = u[pages / 4 + Math.floor(position / plan.pageTokens)];
  return plan.poolBase + page * plan.pageBytes + (position % plan.pageTokens) * plan.kvRowBytes;
}

function rmsnormRow(f: Float32Array, out: number, x: number, weight: number, dim: number, eps: number): void {
  let sum = 0;
  for (let d = 0; d < dim; d++) sum += f[x + d] * f[x + d];
  const factor = 1 / Math.sqrt(sum / dim + eps);
  for (let d = 0; d < dim; d++) f[out + d] = f[x + d] * factor * f[weight + d];
}

function matmulRow(f: Float32Array, u: Uint32Array, out: number, x: number, matrix: PackedMatrix): void {
  for (let row = 0; row < matrix.groups * 4; row++) {
    const group = row >> 2;
    let sum = 0;
    for (let block = u[matrix.starts / 4 + group]; block < u[matrix.starts / 4 + group + 1]; block++) {
      const column = x + u[matrix.offsets / 4 + block] / 4;
      const value = matrix.values / 4 + block * 16 + (row & 3) * 4;
      for (let i = 0; i < 4; i++) sum += f[column + i] * f[value + i];
    }
    f[out + row] = sum;
  }
}

function ropeHead(f: Float32Array, x: number, rotation: number, half: number): void {
  for (let i = 0; i < half; i++) {
    const a = f[x + i];
    const b = f[x + half + i];
    const cosine = f[rotation + i];
    const sine = f[rotation + half + i];
    f[x + i] = a * cosine - b * sine;
    f[x + half + i] = b * cosine + a * sine;
  }
}

/** One query of one head over every key up to its own position: scores, softmax, weighted sum of V. */
function attendHead(
  f: Float32Array,
  u: Uint32Array,
  plan: AttentionPlan,
  head: AttentionHead,
  out: Address,
  q: Address,
  position: number,
  pages: Address,
): void {
  const scores = new Float64Array(position + 1);
  let maximum = Number.NEGATIVE_INFINITY;
  for (let key = 0; key <= position; key++) {
    const k = kvRow(u, plan, key, pages) + plan.kOffset + head.kv;
    let score = 0;
    for (const { start, end } of head.dots) {
      for (let d = start; d < end; d += 4) score += f[(q + head.q + d) / 4] * f[(k + d) / 4];
    }
    scores[key] = score * plan.scale;
    maximum = Math.max(maximum, scores[key]);
  }
  let sum = 0;
  for (let key = 0; key <= position; key++) {
    scores[key] = Math.exp(scores[key] - maximum);
    sum += scores[key];
  }
  const gathered = new Float64Array(plan.headDim);
  for (let key = 0; key <= position; key++) {
    const v = kvRow(u, plan, key, pages) + plan.vOffset + head.kv;
    for (const { start, end } of head.values) {
      for (let d = start; d < end; d += 4) gathered[d / 4] += scores[key] * f[(v + d) / 4];
    }
  }
  for (const { start, end } of head.values) {
    for (let d = start; d < end; d += 4) f[(out + head.q + d) / 4] = gathered[d / 4] / sum;
  }
}
