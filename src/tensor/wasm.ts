import { instantiate, type SharedMemory } from '../base/shared-memory.js';
import type { Kernels } from './contract.js';
import { wasmBase64 } from './kernels.wasm.js';

/** What `assembly/kernels.ts` exports; addresses and sizes are whole numbers. */
interface KernelExports {
  embed(out: number, table: number, ids: number, tokens: number, dim: number): void;
  rmsnorm(out: number, x: number, weight: number, tokens: number, dim: number, eps: number): void;
  add(x: number, y: number, count: number): void;
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
  rope(x: number, rotation: number, tokens: number, heads: number, headDim: number, rowBytes: number): void;
  storeKv(plan: number, k: number, v: number, tokens: number, position: number, pages: number): void;
  attention(plan: number, out: number, q: number, tokens: number, position: number, pages: number): void;
  swiglu(gate: number, up: number, count: number): void;
  argmax(x: number, count: number): number;
}

/** Kernels in WebAssembly with 128-bit SIMD, over `memory` in place. Synchronous; about a millisecond. */
export function createWasmKernels(memory: SharedMemory): Kernels {
  const wasm = instantiate(wasmBase64, memory) as KernelExports;
  return {
    name: 'wasm',
    embed: wasm.embed,
    rmsnorm: wasm.rmsnorm,
    add: wasm.add,
    matmul: (out, x, matrix, tokens, xRowBytes, outRowBytes) =>
      wasm.matmul(out, x, matrix.starts, matrix.offsets, matrix.values, matrix.groups, tokens, xRowBytes, outRowBytes),
    rope: wasm.rope,
    storeKv: (plan, k, v, tokens, position, pages) => wasm.storeKv(plan.at, k, v, tokens, position, pages),
    attention: (plan, out, q, tokens, position, pages) => wasm.attention(plan.at, out, q, tokens, position, pages),
    swiglu: wasm.swiglu,
    argmax: wasm.argmax,
  };
}
