import { Prng } from '../base/prng.js';
import type { SharedMemory } from '../base/shared-memory.js';
import { type PageGeometry, pageGeometry } from '../kv/geometry.js';
import type { KernelsName } from '../tensor/contract.js';
import { encode } from '../tokenizer/bytes.js';
import type { ModelConfig, ModelWeights } from './config.js';
import { LAB_CONFIG } from './lab-weights.js';
import { createRoleMemory, planRoleMemory, type RoleMemoryPlan } from './memory.js';
import { createModel, type Model } from './model.js';
import { greedy } from './sampler.js';

export interface Role {
  readonly model: Model;
  readonly memory: SharedMemory;
  readonly plan: RoleMemoryPlan;
  readonly geometry: PageGeometry;
}

export interface RoleOptions {
  readonly config?: ModelConfig;
  readonly weights: ModelWeights;
  readonly kernels?: KernelsName;
  readonly pages?: number;
  readonly pageTokens?: number;
}

export const CHUNK = 256;

export function newRole(options: RoleOptions): Role {
  const { config = LAB_CONFIG, weights, kernels = 'wasm', pages = 300, pageTokens = 16 } = options;
  const geometry = pageGeometry(pageTokens, config.layers, config.kvHeads * config.headDim);
  const plan = planRoleMemory({ config, geometry, pages, chunkTokensMax: CHUNK, runningMax: 8 });
  const memory = createRoleMemory(plan);
  return { model: createModel({ config, weights, memory, plan, geometry, kernels }), memory, plan, geometry };
}

/** Prefills a prompt chunk by chunk; a copy of the last token's logits. */
export function prefillAll(
  model: Model,
  ids: Int32Array,
  pages: Int32Array,
  chunk: number = CHUNK,
  start: number = 0,
): Float32Array {
  let logits: Float32Array | null = null;
  for (let at = 0; at < ids.length; at += chunk) {
    const end = Math.min(ids.length, at + chunk);
    logits = model.prefill(ids.subarray(at, end), start + at, pages, end === ids.length);
  }
  return Float32Array.from(logits!);
}

/** `count` greedy tokens, of which `first` is the first and stands at `position`. */
export function generate(model: Model, first: number, position: number, pages: Int32Array, count: number): number[] {
  const ids = [first];
  while (ids.length < count) {
    const token = ids[ids.length - 1];
    ids.push(greedy(model.decode([{ token, position: position + ids.length - 1, pages }])));
  }
  return ids;
}

/** Puts NaN into every payload and header of the pool. */
export function poison(role: Role, except: ReadonlySet<number> = new Set<number>()): void {
  for (let page = 0; page < role.plan.pages; page++) {
    if (except.has(page)) continue;
    const at = role.plan.poolBase + page * role.geometry.pageBytes;
    new Float32Array(role.memory.buffer, at, role.geometry.pageBytes / 4).fill(Number.NaN);
  }
}

export function range(count: number, from = 0): Int32Array {
  return Int32Array.from({ length: count }, (_, index) => from + index);
}

export function shuffledPages(chance: Prng, pool: number, count: number): Int32Array {
  return Int32Array.from(chance.shuffle([...range(pool)]).slice(0, count));
}

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

export function newMarker(chance: Prng): string {
  return `KVC-${Array.from({ length: 26 }, () => BASE32[chance.below(32)]).join('')}`;
}

export function word(chance: Prng): string {
  return Array.from({ length: chance.between(2, 9) }, () => BASE32[chance.below(26)]).join('');
}

/** `length` characters of random words. */
export function filler(chance: Prng, length: number): string {
  let text = '';
  while (text.length < length)
    text += word(chance) + (chance.chance(0.1) ? chance.pick(['. ', ', ', '\n', ' 42 ', '-']) : ' ');
  return text.slice(0, length);
}

export interface RecallPrompt {
  readonly ids: Int32Array;
  readonly marker: string;
}

/** A prompt of 200 to 4,000 tokens that states a marker once, and asks for it with a cue whose last five bytes are the cue's own. */
export function recallPrompt(seed: number): RecallPrompt {
  const chance = new Prng(seed);
  const length = chance.between(200, 4000);
  const marker = newMarker(chance);
  for (;;) {
    const cue = ` the code of ${word(chance)}: `;
    const rest = length - marker.length - 1 - 2 * cue.length;
    const before = chance.below(rest);
    const text = `${filler(chance, before)}${cue}${marker} ${filler(chance, rest - before)}${cue}`;
    if (text.split(cue.slice(-5)).length === 3) return { ids: encode(text), marker };
  }
}

/** The longest stretch of the marker that the text holds. */
export function markerCharacters(text: string, marker: string): number {
  let best = 0;
  for (let from = 0; from < marker.length; from++) {
    while (from + best < marker.length && text.includes(marker.slice(from, from + best + 1))) best++;
  }
  return best;
}

/** Dense random weights of a shape that shares nothing with the lab model: grouped queries, an MLP, three layers. */
export const DENSE_CONFIG: ModelConfig = {
  vocab: 61,
  hidden: 32,
  layers: 3,
  heads: 4,
  kvHeads: 2,
  headDim: 16,
  intermediate: 40,
  ropeTheta: 10_000,
  rmsEps: 1e-5,
};

export function denseWeights(seed: number, config: ModelConfig = DENSE_CONFIG): ModelWeights {
  const chance = new Prng(seed);
  const { vocab, hidden, heads, kvHeads, headDim, intermediate } = config;
  const matrix = (rows: number, columns: number): Float32Array =>
    Float32Array.from({ length: rows * columns }, () => (chance.normal() * 1.5) / Math.sqrt(columns));
  const norm = (): Float32Array => Float32Array.from({ length: hidden }, () => 0.5 + chance.unit());
  return {
    embed: matrix(vocab, hidden),
    layers: Array.from({ length: config.layers }, () => ({
      attentionNorm: norm(),
      q: matrix(heads * headDim, hidden),
      k: matrix(kvHeads * headDim, hidden),
      v: matrix(kvHeads * headDim, hidden),
      o: matrix(hidden, heads * headDim),
      mlpNorm: norm(),
      gate: matrix(intermediate, hidden),
      up: matrix(intermediate, hidden),
      down: matrix(hidden, intermediate),
    })),
    norm: norm(),
    head: matrix(vocab, hidden),
  };
}
