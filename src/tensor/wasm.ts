import { instantiate, type SharedMemory } from '../base/shared-memory.js';
import type { Kernels } from './contract.js';
import { wasmBase64 } from './kernels.wasm.js';

/** What `assembly/kernels.ts` exports; addresses and sizes are whole numbers. */
interface KernelExports extends Pick<Kernels, 'embed' | 'rmsnorm' | 'add' | 'rope' | 'swiglu' | 'argmax'> {
  matmul(
    out: number,
    x: number,
    starts: number,
    offsets: number,
    values: number,
    groups: number,
    tokens: number,
    xRowBytes: number,
    outRowBytes: number,
  ): void;
  storeKv(plan: number, k: number, v: number, tokens: number, position: number, pages: number): void;
  attention(plan: number, out: number, q: number, tokens: number, position: number, pages: number): void;
}

/** Kernels in WebAssembly with 128-bit SIMD, over `memory` in place. Synchronous; about a millisecond. */
export function createWasmKernels(memory: SharedMemory): Kernels {
  const wasm = instantiate(wasmBase64, memory) as KernelExports;
  return {
    ...wasm,
    name: 'wasm',
    matmul: (out, x, matrix, tokens, xRowBytes, outRowBytes) =>
      wasm.matmul(out, x, matrix.starts, matrix.offsets, matrix.values, matrix.groups, tokens, xRowBytes, outRowBytes),
    storeKv: (plan, k, v, tokens, position, pages) => wasm.storeKv(plan.at, k, v, tokens, position, pages),
    attention: (plan, out, q, tokens, position, pages) => wasm.attention(plan.at, out, q, tokens, position, pages),
  };
}
