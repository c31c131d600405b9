/**
 * Compiles the AssemblyScript kernels and checks them in as base64, so that a build needs no compiler.
 *
 *   node dist/tools/wasm.js          writes the modules again
 *   compileAll()                     the same bytes, for the test that compares them with what is checked in
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import asc from 'assemblyscript/asc';

export interface WasmModule {
  /** AssemblyScript source, from the project's root. */
  readonly source: string;
  /** The generated module, `export const wasmBase64: string`. */
  readonly target: string;
}

export const WASM_MODULES: readonly WasmModule[] = [
  { source: 'src/tensor/assembly/kernels.ts', target: 'src/tensor/kernels.wasm.ts' },
  { source: 'src/kv/assembly/xxh64.ts', target: 'src/kv/xxh64.wasm.ts' },
];

/** Memory is imported and shared (`env.memory`), so that kernels work on pages in place; no runtime, no allocator. */
const FLAGS = [
  '-O3',
  '--noAssert',
  '--runtime',
  'stub',
  '--importMemory',
  '--sharedMemory',
  '--initialMemory',
  '1',
  '--maximumMemory',
  '65536',
  '--enable',
  'simd,threads,bulk-memory',
];

export async function compile(module: WasmModule): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'cofferdam-wasm-'));
  try {
    const binary = join(folder, 'out.wasm');
    const { error } = await asc.main([module.source, ...FLAGS, '--outFile', binary]);
    if (error) throw new Error(`${module.source}: ${error.message}\n${String(error.stack)}`);
    const base64 = readFileSync(binary).toString('base64');
    return `// Made by tools/wasm.ts from ${module.source}; do not edit.\nexport const wasmBase64: string =\n  '${base64}';\n`;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  for (const module of WASM_MODULES) {
    if (existsSync(module.source)) writeFileSync(module.target, await compile(module));
  }
}
