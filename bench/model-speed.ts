/**
 * How fast is the lab model? Prefill of 2,000 and 4,000 tokens in chunks, decode of one and of eight streams at 2,000 tokens of
 * context; against the same model on the reference kernels at 200 tokens.
 *
 *   node dist/bench/model-speed.js
 */
import { SystemClock } from '../src/base/clock.js';
import { Prng } from '../src/base/prng.js';
import { pageGeometry } from '../src/kv/geometry.js';
import { LAB_CONFIG, loadLabWeights } from '../src/model/lab-weights.js';
import { createRoleMemory, planRoleMemory } from '../src/model/memory.js';
import { createModel, type Model } from '../src/model/model.js';
import type { KernelsName } from '../src/tensor/contract.js';

const PAGES = 1024;
const ROUNDS = 5;
const clock = new SystemClock();
const chance = new Prng(1);

function time(work: () => void): number {
  const start = clock.nowMs();
  work();
  return clock.nowMs() - start;
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1]!;
}

const loadMs = time(() => loadLabWeights());
const weights = loadLabWeights();
const geometry = pageGeometry(16, LAB_CONFIG.layers, LAB_CONFIG.kvHeads * LAB_CONFIG.headDim);
const plan = planRoleMemory({ config: LAB_CONFIG, geometry, pages: PAGES, chunkTokensMax: 256, runningMax: 8 });

function build(kernels: KernelsName): Model {
  return createModel({ config: LAB_CONFIG, weights, memory: createRoleMemory(plan), plan, geometry, kernels });
}

const pages = Int32Array.from({ length: PAGES }, (_, i) => i);
const tokens = Int32Array.from({ length: 4000 }, () => 97 + chance.below(26));

function prefill(model: Model, count: number): void {
  for (let at = 0; at < count; at += 256) {
    model.prefill(tokens.subarray(at, Math.min(count, at + 256)), at, pages, at + 256 >= count);
  }
}

const lines: string[] = [`load ${loadMs.toFixed(0)} ms; memory ${(plan.bytes / 2 ** 20).toFixed(0)} MiB`];
let wasm!: Model;
lines.push(`create ${time(() => (wasm = build('wasm'))).toFixed(0)} ms`);
prefill(wasm, 500);
for (const count of [2000, 4000]) {
  const ms = median(Array.from({ length: ROUNDS }, () => time(() => prefill(wasm, count))));
  lines.push(`prefill ${count}: ${ms.toFixed(1)} ms, ${((count / ms) * 1000).toFixed(0)} tokens/s`);
}
for (const streams of [1, 8]) {
  const batch = Array.from({ length: streams }, () => ({ token: 97, position: 2000, pages }));
  const ms = median(Array.from({ length: ROUNDS * 20 }, () => time(() => wasm.decode(batch))));
  lines.push(`decode ${streams} at 2,000: ${ms.toFixed(3)} ms a step, ${((streams / ms) * 1000).toFixed(0)} tokens/s`);
}
const reference = build('reference');
const ratio =
  median([1, 2, 3].map(() => time(() => prefill(reference, 200)))) /
  median([1, 2, 3].map(() => time(() => prefill(wasm, 200))));
lines.push(`reference / wasm, prefill 200: ${ratio.toFixed(0)}`);
process.stdout.write(`${lines.join('\n')}\n`);
