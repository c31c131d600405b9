import { DENSE_CONFIG, denseWeights } from '../fixture.test.help.js';
import { LAB_CONFIG, loadLabWeights } from '../lab-weights.js';
import type { ModelConfig, ModelWeights } from '../config.js';
import type { CheckpointFile } from './checkpoint.js';

export function contents(file: CheckpointFile): Buffer {
  return Buffer.concat([...file.chunks()]);
}

/** Two models: the lab's, and one in which nothing is zero, nothing is alike, and no size is a multiple of an alignment. */
export const ODD_CONFIG: ModelConfig = { ...DENSE_CONFIG, vocab: 259, hidden: 36, intermediate: 44 };
export const MODELS: readonly (readonly [string, ModelConfig, ModelWeights])[] = [
  ['the lab model', LAB_CONFIG, loadLabWeights()],
  ['a dense model with grouped queries', ODD_CONFIG, denseWeights(7, ODD_CONFIG)],
];

/** The bits of floats, in which -0 is not 0. */
export function bits(data: Float32Array): Uint32Array {
  return new Uint32Array(data.slice().buffer);
}

export function floats(bytes: Uint8Array): Float32Array {
  return new Float32Array(Uint8Array.from(bytes).buffer);
}
