/** What lies where in a role's memory: weights and scratch below, the page pool above, everything taken once. */
import { assert } from '../base/assert.js';
import { newSharedMemory, type SharedMemory, sharedMemoryBytes } from '../base/shared-memory.js';
import type { PageGeometry } from '../kv/geometry.js';
import { ALIGNMENT_BYTES, aligned } from '../tensor/arena.js';
import { attentionScratchBytes } from '../tensor/contract.js';
import { attentionPlanBytesMax, packedBytesMax } from '../tensor/pack.js';
import { assertConfig, type ModelConfig } from './config.js';

/** Bytes at the bottom that nobody uses, so that address 0 is never a buffer. */
const RESERVED_BYTES = 4096;

export interface RoleMemoryOptions {
  readonly config: ModelConfig;
  readonly geometry: PageGeometry;
  /** Pages of the pool. */
  readonly pages: number;
  /** Most tokens of one `prefill` call. */
  readonly chunkTokensMax: number;
  /** Most sequences of one `decode` call. */
  readonly runningMax: number;
}

export interface RoleMemoryPlan {
  /** Size of the memory, whole WebAssembly pages. */
  readonly bytes: number;
  readonly weightsBase: number;
  readonly scratchBase: number;
  /** Page p of the pool begins at poolBase + p × geometry.pageBytes; a multiple of 64. */
  readonly poolBase: number;
  readonly pages: number;
  readonly chunkTokensMax: number;
  readonly runningMax: number;
}

/** Rows that a call can have. */
export function rowsMax(plan: RoleMemoryPlan | RoleMemoryOptions): number {
  return Math.max(plan.chunkTokensMax, plan.runningMax);
}

/** Floats of a row of logits: the vocabulary, up to the next whole group of rows. */
export function logitsRow(config: ModelConfig): number {
  return Math.ceil(config.vocab / 4) * 4;
}

/** An upper bound, as if no block could be left out; memory that is never touched costs nothing. */
function weightsBytesMax(config: ModelConfig): number {
  const { vocab, hidden, layers, heads, kvHeads, headDim, intermediate } = config;
  const layer =
    2 * aligned(hidden * 4) +
    packedBytesMax(heads * headDim, hidden) +
    2 * packedBytesMax(kvHeads * headDim, hidden) +
    packedBytesMax(hidden, heads * headDim) +
    2 * packedBytesMax(intermediate, hidden) +
    packedBytesMax(hidden, intermediate) +
    attentionPlanBytesMax(heads, headDim);
  return aligned(vocab * hidden * 4) + layers * layer + aligned(hidden * 4) + packedBytesMax(vocab, hidden);
}

/** Bytes of each scratch buffer, by name. */
export function scratchSizes(options: RoleMemoryOptions): Record<ScratchName, number> {
  const { config, geometry } = options;
  const rows = rowsMax(options);
  const float = (count: number): number => count * 4;
  return {
    x: float(rows * config.hidden),
    normed: float(rows * config.hidden),
    delta: float(rows * config.hidden),
    q: float(rows * config.heads * config.headDim),
    attended: float(rows * config.heads * config.headDim),
    k: float(rows * geometry.kvDim),
    v: float(rows * geometry.kvDim),
    gate: float(rows * config.intermediate),
    up: float(rows * config.intermediate),
    rotation: float(rows * config.headDim),
    ids: float(rows),
    logits: float(Math.max(1, options.runningMax) * logitsRow(config)),
    tables: float(Math.max(1, options.runningMax) * options.pages),
    attention: attentionScratchBytes(config.heads, geometry.pageTokens),
  };
}

export type ScratchName =
  | 'x'
  | 'normed'
  | 'delta'
  | 'q'
  | 'attended'
  | 'k'
  | 'v'
  | 'gate'
  | 'up'
  | 'rotation'
  | 'ids'
  | 'logits'
  | 'tables'
  | 'attention';

export function planRoleMemory(options: RoleMemoryOptions): RoleMemoryPlan {
  const { config, geometry, pages, chunkTokensMax, runningMax } = options;
  assertConfig(config);
  assert(geometry.layers === config.layers, 'a page holds every layer of the model');
  assert(geometry.kvDim === config.kvHeads * config.headDim, 'a row of K holds every KV head of the model');
  assert(pages >= 1 && chunkTokensMax >= 1 && runningMax >= 1, 'a role has pages, and takes at least one token');
  const weightsBase = RESERVED_BYTES;
  const scratchBase = weightsBase + aligned(weightsBytesMax(config));
  let poolBase = scratchBase;
  for (const bytes of Object.values(scratchSizes(options))) poolBase += aligned(bytes);
  assert(poolBase % ALIGNMENT_BYTES === 0, 'the pool begins on a cache line');
  const bytes = sharedMemoryBytes(poolBase + pages * geometry.pageBytes);
  return { bytes, weightsBase, scratchBase, poolBase, pages, chunkTokensMax, runningMax };
}

/** The role's memory: shared, of its final size, all zeros. */
export function createRoleMemory(plan: RoleMemoryPlan): SharedMemory {
  return newSharedMemory(plan.bytes);
}
