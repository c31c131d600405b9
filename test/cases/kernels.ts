/** What every implementation of the kernels must do: each against a plain float64 reading of its definition. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { Prng } from '../../src/base/prng.js';
import { newSharedMemory, type SharedMemory } from '../../src/base/shared-memory.js';
import { Arena } from '../../src/tensor/arena.js';
import { type Address, type AttentionPlan, attentionScratchBytes, type Kernels } from '../../src/tensor/contract.js';
import { attentionHeads, packMatrix, planAttention } from '../../src/tensor/pack.js';

export interface KernelSubject {
  readonly name: string;
  readonly newKernels: (memory: SharedMemory) => Kernels;
}

const MEMORY_BYTES = 8 << 20;
const SEED = Number(process.env.SEED ?? 5);

class Bench {
  readonly memory: SharedMemory = newSharedMemory(MEMORY_BYTES);
  readonly arena: Arena = new Arena(64, MEMORY_BYTES);
  readonly chance: Prng = new Prng(SEED);
  readonly kernels: Kernels;

  constructor(subject: KernelSubject) {
    this.kernels = subject.newKernels(this.memory);
  }

  floats(at: Address, count: number): Float32Array {
    return new Float32Array(this.memory.buffer, at, count);
  }

  place(values: ArrayLike<number>): Address {
    const at = this.arena.take(values.length * 4);
    this.floats(at, values.length).set(values);
    return at;
  }

  placeWords(values: ArrayLike<number>): Address {
    const at = this.arena.take(values.length * 4);
    new Uint32Array(this.memory.buffer, at, values.length).set(values);
    return at;
  }

  random(count: number): Float32Array {
    return Float32Array.from({ length: count }, () => this.chance.normal());
  }

  /** A copy of a fresh result of `count` floats. */
  result(count: number, work: (out: Address) => void): Float32Array {
    const out = this.arena.take(count * 4);
    work(out);
    return Float32Array.from(this.floats(out, count));
  }
}

function close(got: ArrayLike<number>, wanted: ArrayLike<number>, tolerance = 1e-4): void {
  assert.equal(got.length, wanted.length);
  for (let i = 0; i < got.length; i++) {
    const scale = Math.max(1, Math.abs(wanted[i]));
    assert.ok(Math.abs(got[i] - wanted[i]) <= tolerance * scale, `element ${i}: ${got[i]}, wanted ${wanted[i]}`);
  }
}

export function runKernelCases(subject: KernelSubject): void {
  const title = (words: string): string => `${subject.name}: ${words} (seed ${SEED})`;
  runRowCases(subject, title);
  runMatmulCases(subject, title);
  runAttentionCases(subject, title);
}

type Title = (words: string) => string;

function runRowCases(subject: KernelSubject, title: Title): void {
  test(title('embed copies the rows of its ids'), () => {
    const bench = new Bench(subject);
    const table = bench.random(10 * 8);
    const at = bench.place(table);
    const ids = bench.placeWords([3, 0, 9, 3]);
    const got = bench.result(32, (out) => bench.kernels.embed(out, at, ids, 4, 8));
    assert.deepEqual(
      [...got],
      [3, 0, 9, 3].flatMap((id) => [...table.subarray(id * 8, id * 8 + 8)]),
    );
  });

  test(title('rmsnorm divides by the root of the mean square'), () => {
    const bench = new Bench(subject);
    const [x, weight] = [bench.random(3 * 20), bench.random(20)];
    const [xAt, weightAt] = [bench.place(x), bench.place(weight)];
    const got = bench.result(60, (out) => bench.kernels.rmsnorm(out, xAt, weightAt, 3, 20, 1e-5));
    const wanted = Array.from(x, (value, index) => {
      const row = x.subarray(Math.floor(index / 20) * 20, Math.floor(index / 20) * 20 + 20);
      const mean = row.reduce((sum, v) => sum + v * v, 0) / 20;
      return (value / Math.sqrt(mean + 1e-5)) * weight[index % 20];
    });
    close(got, wanted);
  });

  test(title('add adds, swiglu gates, for large and small gates alike'), () => {
    const bench = new Bench(subject);
    const gate = Float32Array.of(-200, -80, -3, -0.001, 0, 0.5, 9, 300);
    const up = bench.random(8);
    const [gateAt, upAt] = [bench.place(gate), bench.place(up)];
    bench.kernels.swiglu(gateAt, upAt, 8);
    close(
      bench.floats(gateAt, 8),
      Array.from(gate, (g, i) => (g / (1 + Math.exp(-g))) * up[i]),
    );
    const before = Float32Array.from(bench.floats(gateAt, 8));
    bench.kernels.add(gateAt, upAt, 8);
    close(
      bench.floats(gateAt, 8),
      Array.from(before, (g, i) => g + up[i]),
    );
  });

  test(title('argmax gives the first of the largest'), () => {
    const bench = new Bench(subject);
    assert.equal(bench.kernels.argmax(bench.place([-3, -1, -7, -1, -2]), 5), 1);
    assert.equal(bench.kernels.argmax(bench.place([-3]), 1), 0);
  });

  test(title('rope turns pairs half a head apart'), () => {
    const bench = new Bench(subject);
    const [heads, headDim, tokens] = [2, 16, 3];
    const x = bench.random(tokens * heads * headDim);
    const angles = Array.from({ length: tokens }, () => bench.random(8));
    const rotation = bench.place(angles.flatMap((row) => [...row.map(Math.cos), ...row.map(Math.sin)]));
    const at = bench.place(x);
    bench.kernels.rope(at, rotation, tokens, heads, headDim, heads * headDim * 4);
    const wanted = Array.from(x, (value, index) => {
      const d = index % headDim;
      const angle = angles[Math.floor(index / (heads * headDim))][d % 8];
      const other = d < 8 ? -x[index + 8] : x[index - 8];
      return value * Math.cos(angle) + other * Math.sin(angle);
    });
    close(bench.floats(at, x.length), wanted);
  });
}

/** Random values of which whole stretches are zero. */
function sparse(bench: Bench, rows: number, columns: number, held: number): Float32Array {
  const dense = bench.random(rows * columns);
  const kept = Array.from({ length: Math.ceil(rows / 3) * Math.ceil(columns / 6) }, () => bench.chance.chance(held));
  return dense.map((value, i) => {
    const block = Math.floor(i / columns / 3) * Math.ceil(columns / 6) + Math.floor((i % columns) / 6);
    return kept[block] ? value : 0;
  });
}

function runMatmulCases(subject: KernelSubject, title: Title): void {
  for (const held of [1, 0.2, 0]) {
    test(title(`a packed matrix of which ${held * 100} % is held multiplies as the dense one`), () => {
      const bench = new Bench(subject);
      const [rows, columns, tokens] = [37, 44, 19];
      const dense = sparse(bench, rows, columns, held);
      const x = bench.random(tokens * columns);
      const matrix = packMatrix(bench.memory.buffer, bench.arena, dense, rows, columns);
      const xAt = bench.place(x);
      const got = bench.result(tokens * 40, (out) =>
        bench.kernels.matmul(out, xAt, matrix, tokens, columns * 4, matrix.groups * 16),
      );
      for (let t = 0; t < tokens; t++) {
        const wanted = Array.from({ length: 40 }, (_, row) => {
          let sum = 0;
          for (let c = 0; row < rows && c < columns; c++) sum += x[t * columns + c] * dense[row * columns + c];
          return sum;
        });
        close(got.subarray(t * 40, t * 40 + 40), wanted);
      }
      assert.ok(held === 1 || matrix.blocks < matrix.groups * (columns / 4));
    });
  }

  test(title('one row of a product has the same bits alone and among others'), () => {
    const bench = new Bench(subject);
    const matrix = packMatrix(bench.memory.buffer, bench.arena, sparse(bench, 40, 64, 0.7), 40, 64);
    const x = bench.place(bench.random(17 * 64));
    const many = bench.result(17 * 40, (out) => bench.kernels.matmul(out, x, matrix, 17, 256, 160));
    for (let t = 0; t < 17; t++) {
      const alone = bench.result(40, (out) => bench.kernels.matmul(out, x + t * 256, matrix, 1, 256, 160));
      assert.deepEqual(alone, many.slice(t * 40, t * 40 + 40));
    }
  });
}

const HEADS = 4;
const KV_HEADS = 2;
const HEAD_DIM = 24;
const KV_DIM = KV_HEADS * HEAD_DIM;
const Q_DIM = HEADS * HEAD_DIM;
const POOL_PAGES = 24;

interface Scene {
  readonly bench: Bench;
  readonly plan: AttentionPlan;
  readonly k: Float32Array;
  readonly v: Float32Array;
  readonly q: Float32Array;
}

/** `tokens` tokens of K, V and q, sharp enough that far pages fall out of the softmax; the pool full of NaN. */
function newScene(subject: KernelSubject, pageTokens: number, tokens: number): Scene {
  const bench = new Bench(subject);
  const pageBytes = 64 + 2 * pageTokens * KV_DIM * 4;
  const pool = bench.arena.take(POOL_PAGES * pageBytes);
  bench.floats(pool, (POOL_PAGES * pageBytes) / 4).fill(Number.NaN);
  const ones = (count: number): Float32Array => new Float32Array(count).fill(1);
  const heads = attentionHeads({
    heads: HEADS,
    kvHeads: KV_HEADS,
    headDim: HEAD_DIM,
    hidden: 4,
    q: ones(Q_DIM * 4),
    k: ones(KV_DIM * 4),
    o: ones(4 * Q_DIM),
  });
  const plan = planAttention(
    bench.memory.buffer,
    bench.arena,
    {
      pageTokens,
      poolBase: pool,
      pageBytes,
      kOffset: 64,
      vOffset: 64 + pageTokens * KV_DIM * 4,
      kvRowBytes: KV_DIM * 4,
      qRowBytes: Q_DIM * 4,
      headDim: HEAD_DIM,
      scratch: bench.arena.take(attentionScratchBytes(HEADS, pageTokens)),
    },
    heads,
  );
  const q = bench.random(tokens * Q_DIM).map((value) => value * 12);
  return { bench, plan, k: bench.random(tokens * KV_DIM), v: bench.random(tokens * KV_DIM), q };
}

/** Stores K and V through the page table, then attends chunk by chunk; out (tokens, Q_DIM). */
function attend(scene: Scene, table: readonly number[], chunks: readonly number[]): Float32Array {
  const { bench, plan, k, v, q } = scene;
  const pages = bench.placeWords(table);
  const [kAt, vAt, qAt] = [bench.place(k), bench.place(v), bench.place(q)];
  return bench.result(q.length, (out) => {
    let at = 0;
    for (const count of chunks) {
      const kv = at * KV_DIM * 4;
      const rows = at * Q_DIM * 4;
      bench.kernels.storeKv(plan, kAt + kv, vAt + kv, count, at, pages);
      bench.kernels.attention(plan, out + rows, qAt + rows, count, at, pages);
      at += count;
    }
  });
}

function naiveAttention({ k, v, q }: Scene): Float64Array {
  const out = new Float64Array(q.length);
  for (let t = 0; t < q.length / Q_DIM; t++) {
    for (let h = 0; h < HEADS; h++) {
      const kv = Math.floor(h / (HEADS / KV_HEADS)) * HEAD_DIM;
      const row = t * Q_DIM + h * HEAD_DIM;
      const scores = Array.from({ length: t + 1 }, (_, j) => {
        let sum = 0;
        for (let d = 0; d < HEAD_DIM; d++) sum += q[row + d] * k[j * KV_DIM + kv + d];
        return sum / Math.sqrt(HEAD_DIM);
      });
      const most = Math.max(...scores);
      const weights = scores.map((score) => Math.exp(score - most));
      const total = weights.reduce((sum, weight) => sum + weight, 0);
      for (let d = 0; d < HEAD_DIM; d++) {
        for (let j = 0; j <= t; j++) out[row + d] += (weights[j] / total) * v[j * KV_DIM + kv + d];
      }
    }
  }
  return out;
}

function runAttentionCases(subject: KernelSubject, title: Title): void {
  const shuffled = (): number[] => new Prng(SEED + 1).shuffle(Array.from({ length: POOL_PAGES }, (_, i) => i));

  for (const pageTokens of [4, 8, 16]) {
    test(title(`attention over pages of ${pageTokens} is the softmax over every earlier token`), () => {
      const scene = newScene(subject, pageTokens, 75);
      close(attend(scene, shuffled(), [75]), naiveAttention(scene), 1e-3);
    });
  }

  test(title('scattered pages, one contiguous run, and any chunks give the same bits'), () => {
    const scene = newScene(subject, 8, 75);
    const run = Array.from({ length: POOL_PAGES }, (_, i) => i);
    const wanted = attend(scene, run, [75]);
    assert.deepEqual(attend(scene, shuffled(), [75]), wanted);
    assert.deepEqual(attend(scene, run, [1, 13, 8, 30, 23]), wanted);
    assert.deepEqual(
      attend(
        scene,
        shuffled(),
        Array.from({ length: 75 }, () => 1),
      ),
      wanted,
    );
  });

  test(title('heads that the output ignores are left out, and dimensions that are zero change nothing'), () => {
    const bench = new Bench(subject);
    const [hidden, headDim] = [4, 16];
    const dense = (rows: number, columns: number, held: (row: number, column: number) => boolean): Float32Array =>
      Float32Array.from({ length: rows * columns }, (_, i) => (held(Math.floor(i / columns), i % columns) ? 1 : 0));
    const heads = attentionHeads({
      heads: 3,
      kvHeads: 1,
      headDim,
      hidden,
      q: dense(48, hidden, (row) => row % 16 < 4),
      k: dense(16, hidden, () => true),
      o: dense(hidden, 48, (_, column) => column < 4 || (column >= 40 && column < 44)),
    });
    assert.deepEqual(
      heads.map((head) => head.q),
      [0, 128],
    );
    // Dimensions 0 to 3 turn with 8 to 11.
    assert.deepEqual(heads[0].dots, [
      { start: 0, end: 16 },
      { start: 32, end: 48 },
    ]);
    assert.deepEqual(heads[0].values, [{ start: 0, end: 16 }]);
    assert.deepEqual(heads[1].values, [{ start: 32, end: 48 }]);
    assert.equal(bench.kernels.name, subject.name);
  });
}
