import { assert } from './assert.js';

/** WebAssembly pages are 64 KiB; the modules of this project import at most all that 32 bits can address. */
const WASM_PAGE_BYTES = 65_536;
const WASM_PAGES_MAX = 65_536;

/** A shared WebAssembly memory. It can be posted to another thread as it is. */
export interface SharedMemory {
  readonly buffer: SharedArrayBuffer;
}

interface WasmInstance {
  readonly exports: unknown;
}

/** The part of the global `WebAssembly` that is used here; neither ES2023 nor the types of Node declare it. */
declare const WebAssembly: {
  readonly Memory: new (of: { initial: number; maximum: number; shared: true }) => SharedMemory;
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: Record<string, Record<string, unknown>>) => WasmInstance;
};

/** Bytes that a memory of at least `bytes` takes: whole WebAssembly pages. */
export function sharedMemoryBytes(bytes: number): number {
  const pages = Math.max(1, Math.ceil(bytes / WASM_PAGE_BYTES));
  assert(pages <= WASM_PAGES_MAX, 'a memory must fit the 4 GiB that WebAssembly addresses');
  return pages * WASM_PAGE_BYTES;
}

/** A shared memory of at least `bytes`, at full size from the start: a shared memory that grows would change its buffer. */
export function newSharedMemory(bytes: number): SharedMemory {
  const pages = sharedMemoryBytes(bytes) / WASM_PAGE_BYTES;
  return new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
}

/** Modules by their text: each is compiled once. Bounded by the modules that are checked in. */
const compiled = new Map<string, object>();

/** Instantiates a checked-in module over `memory`; answers its exports. */
export function instantiate(wasmBase64: string, memory: SharedMemory): unknown {
  const module = compiled.get(wasmBase64) ?? new WebAssembly.Module(Buffer.from(wasmBase64, 'base64'));
  compiled.set(wasmBase64, module);
  return new WebAssembly.Instance(module, { env: { memory } }).exports;
}
