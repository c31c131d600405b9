/**
 * The code vectors of the lab model: five independent codes, each one unit vector of 38 dimensions a token, pushed apart until
 * no two of a code are much alike. Made once, by `tools/lab-codes.ts`, and checked in.
 */
import { assert } from '../base/assert.js';
import { Prng } from '../base/prng.js';
import { VOCAB_SIZE } from '../tokenizer/bytes.js';
import { labCodesBase64 } from './lab-codes.data.js';

export const CODES = 5;
export const CODE_DIM = 38;
export const LAB_CODES_SEED = 11;
/** No two vectors of a code are more alike than this; random ones reach 0.7. */
export const CODE_CORRELATION_MAX = 0.3;
/** Steps of pushing apart; more gain little. */
const STEPS = 160;

function normalize(rows: Float64Array): void {
  for (let row = 0; row < rows.length; row += CODE_DIM) {
    let sum = 0;
    for (let d = 0; d < CODE_DIM; d++) sum += rows[row + d] ** 2;
    const factor = 1 / Math.sqrt(sum);
    for (let d = 0; d < CODE_DIM; d++) rows[row + d] *= factor;
  }
}

/** One step: each vector moves away from the others, by the fifth power of how alike they are. */
function pushApart(code: Float64Array): void {
  const force = new Float64Array(code.length);
  const total = new Float64Array(VOCAB_SIZE);
  for (let a = 0; a < VOCAB_SIZE; a++) {
    for (let b = a + 1; b < VOCAB_SIZE; b++) {
      let product = 0;
      for (let d = 0; d < CODE_DIM; d++) product += code[a * CODE_DIM + d] * code[b * CODE_DIM + d];
      const square = product * product;
      const weight = square * square * product;
      total[a] += Math.abs(weight);
      total[b] += Math.abs(weight);
      // A pair that is hardly alike does not move.
      if (Math.abs(weight) < 1e-5) continue;
      for (let d = 0; d < CODE_DIM; d++) {
        force[a * CODE_DIM + d] += weight * code[b * CODE_DIM + d];
        force[b * CODE_DIM + d] += weight * code[a * CODE_DIM + d];
      }
    }
  }
  for (let i = 0; i < code.length; i++) code[i] -= force[i] / Math.max(total[Math.floor(i / CODE_DIM)], 1e-9);
  normalize(code);
}

/** Makes the codes (CODES, VOCAB_SIZE, CODE_DIM), as bytes of 1/127 of the largest value; seconds of work. */
export function makeLabCodes(seed: number): Int8Array {
  const bytes = new Int8Array(CODES * VOCAB_SIZE * CODE_DIM);
  for (let k = 0; k < CODES; k++) {
    const chance = new Prng(seed + k);
    const code = Float64Array.from({ length: VOCAB_SIZE * CODE_DIM }, () => chance.normal());
    normalize(code);
    for (let step = 0; step < STEPS; step++) pushApart(code);
    const largest = code.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    for (let i = 0; i < code.length; i++) bytes[k * code.length + i] = Math.round((code[i] / largest) * 127);
  }
  return bytes;
}

export function encodeLabCodes(bytes: Int8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}

/** The checked-in codes, unit vectors: element k is code k, (VOCAB_SIZE, CODE_DIM). */
export function labCodes(): Float64Array[] {
  const bytes = new Int8Array(Buffer.from(labCodesBase64, 'base64'));
  const each = VOCAB_SIZE * CODE_DIM;
  assert(bytes.length === CODES * each, 'the checked-in codes have the shape that the model wants');
  return Array.from({ length: CODES }, (_, k) => {
    const code = Float64Array.from(bytes.subarray(k * each, (k + 1) * each));
    normalize(code);
    return code;
  });
}

/** The largest |correlation| of two vectors of one code. */
export function correlationMax(code: Float64Array): number {
  let most = 0;
  for (let a = 0; a < VOCAB_SIZE; a++) {
    for (let b = a + 1; b < VOCAB_SIZE; b++) {
      let product = 0;
      for (let d = 0; d < CODE_DIM; d++) product += code[a * CODE_DIM + d] * code[b * CODE_DIM + d];
      most = Math.max(most, Math.abs(product));
    }
  }
  return most;
}
