import { assert } from '../base/assert.js';
import { kOffset, type PageGeometry, vOffset } from '../kv/geometry.js';
import type { Arena } from '../tensor/arena.js';
import type { Address, AttentionPlan, PackedMatrix } from '../tensor/contract.js';
import { attentionHeads, packMatrix, planAttention } from '../tensor/pack.js';
import type { LayerWeights, ModelConfig, ModelWeights } from './config.js';

export interface PackedLayer {
  readonly attentionNorm: Address;
  readonly q: PackedMatrix;
  readonly k: PackedMatrix;
  readonly v: PackedMatrix;
  readonly o: PackedMatrix;
  readonly attention: AttentionPlan;
  /** null where it adds exactly nothing. */
  readonly mlp: PackedMlp | null;
}

export interface PackedMlp {
  readonly norm: Address;
  readonly gate: PackedMatrix;
  readonly up: PackedMatrix;
  readonly down: PackedMatrix;
}

export interface PackedWeights {
  readonly embed: Address;
  readonly layers: readonly PackedLayer[];
  readonly norm: Address;
  readonly head: PackedMatrix;
}

export interface PackPlace {
  readonly config: ModelConfig;
  readonly geometry: PageGeometry;
  readonly memory: ArrayBufferLike;
  readonly arena: Arena;
  readonly poolBase: Address;
  readonly attentionScratch: Address;
}

/** Copies the weights into a role's memory, packed. */
export function packWeights(weights: ModelWeights, place: PackPlace): PackedWeights {
  const { config } = place;
  assert(weights.layers.length === config.layers, 'there are weights for every layer');
  return {
    embed: copy(place, weights.embed, config.vocab * config.hidden),
    layers: weights.layers.map((layer, index) => packLayer(layer, index, place)),
    norm: copy(place, weights.norm, config.hidden),
    head: packMatrix(place.memory, place.arena, weights.head, config.vocab, config.hidden),
  };
}

function copy({ memory, arena }: PackPlace, floats: Float32Array, count: number): Address {
  assert(floats.length === count, `a vector of ${count} values is wanted, ${floats.length} came`);
  const at = arena.take(count * 4);
  new Float32Array(memory, at, count).set(floats);
  return at;
}

function packLayer(layer: LayerWeights, index: number, place: PackPlace): PackedLayer {
  const { config, geometry, memory, arena } = place;
  const { hidden, heads, kvHeads, headDim } = config;
  const pack = (dense: Float32Array, rows: number, columns: number): PackedMatrix =>
    packMatrix(memory, arena, dense, rows, columns);
  return {
    attentionNorm: copy(place, layer.attentionNorm, hidden),
    q: pack(layer.q, heads * headDim, hidden),
    k: pack(layer.k, kvHeads * headDim, hidden),
    v: pack(layer.v, kvHeads * headDim, hidden),
    o: pack(layer.o, hidden, heads * headDim),
    attention: planAttention(
      memory,
      arena,
      {
        pageTokens: geometry.pageTokens,
        poolBase: place.poolBase,
        pageBytes: geometry.pageBytes,
        kOffset: kOffset(geometry, index),
        vOffset: vOffset(geometry, index),
        kvRowBytes: geometry.kvDim * 4,
        qRowBytes: heads * headDim * 4,
        headDim,
        scratch: place.attentionScratch,
      },
      attentionHeads({ ...config, q: layer.q, k: layer.k, o: layer.o }),
    ),
    mlp: packMlp(layer, place),
  };
}

/** silu(0) is 0, so an MLP adds nothing as soon as one of its three matrices is all zeros. */
function packMlp(layer: LayerWeights, place: PackPlace): PackedMlp | null {
  const holds = (dense: Float32Array): boolean => dense.some((value) => value !== 0);
  if (!(holds(layer.gate) && holds(layer.up) && holds(layer.down))) return null;
  const { config, memory, arena } = place;
  return {
    norm: copy(place, layer.mlpNorm, config.hidden),
    gate: packMatrix(memory, arena, layer.gate, config.intermediate, config.hidden),
    up: packMatrix(memory, arena, layer.up, config.intermediate, config.hidden),
    down: packMatrix(memory, arena, layer.down, config.hidden, config.intermediate),
  };
}
