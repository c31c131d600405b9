/** The oracle's own packages: installed where they are missing, loaded from their own folder, typed as far as they are used. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const ROOT: string = fileURLToPath(new URL('../../..', import.meta.url));
/** Where package.json, the lock file and the packages lie; this file runs from `dist/`. */
export const FOLDER: string = join(ROOT, 'test', 'oracle');
/** A first install takes 10 s on a fast line. */
const INSTALL_TIMEOUT_MS = 600_000;

function json(path: string): Record<string, unknown> {
  return JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
}

/** The versions that package.json asks for, or that are there. */
function isInstalled(): boolean {
  const wanted = json(join(FOLDER, 'package.json')).dependencies as Record<string, string>;
  return Object.entries(wanted).every(([name, version]) => {
    const path = join(FOLDER, 'node_modules', name, 'package.json');
    return existsSync(path) && json(path).version === version;
  });
}

/** Installs what is missing. Throws with words where that cannot be. */
export function installPackages(): void {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new Error(`llama.cpp's package here is for Linux on x64, this is ${process.platform} on ${process.arch}`);
  }
  if (isInstalled()) return;
  process.stdout.write('installing the packages of test/oracle (83 MB)\n');
  const { status, stderr } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], {
    cwd: FOLDER,
    encoding: 'utf8',
    timeout: INSTALL_TIMEOUT_MS,
    // The binaries are a package; nothing is to be fetched or compiled beside it.
    env: { ...process.env, NODE_LLAMA_CPP_SKIP_DOWNLOAD: 'true' },
  });
  if (status !== 0) throw new Error(`npm ci in test/oracle failed (${String(status)}): ${stderr.slice(-1000)}`);
}

async function load(name: string, entry: string): Promise<unknown> {
  return import(pathToFileURL(join(FOLDER, 'node_modules', name, entry)).href);
}

export interface Step {
  readonly token: number;
  /** Of every token, most probable first. */
  readonly probabilities: ReadonlyMap<number, number>;
}

export interface LlamaSequence {
  evaluateWithMetadata(
    tokens: readonly number[],
    metadata: { readonly probabilities: true },
    options: { readonly temperature: number; readonly yieldEogToken: boolean },
  ): AsyncGenerator<Step, void, undefined>;
  clearHistory(): Promise<void>;
}

export interface LlamaContext {
  readonly kvCacheKeyType: number;
  getSequence(): LlamaSequence;
  dispose(): Promise<void>;
  /** The binding itself: evaluates what was added, without the sampler and the scheduling around it. */
  readonly _ctx: {
    initBatch(size: number): void;
    addToBatch(sequence: number, position: number, tokens: Uint32Array, withLogits: Uint32Array): unknown;
    decodeBatch(): Promise<void>;
    removeTokenCellsFromSequence(sequence: number, from: number, to: number): boolean;
    setThreads(threads: number): void;
    getThreads(): number;
  };
}

export interface LlamaModel {
  tokenize(text: string, specialTokens?: boolean): number[];
  detokenize(tokens: readonly number[]): string;
  createContext(options: {
    readonly contextSize: number;
    readonly sequences?: number;
    readonly batchSize: number;
    readonly threads: number;
    readonly flashAttention?: boolean;
    readonly experimentalKvCacheKeyType?: 'F32' | 'F16';
    readonly experimentalKvCacheValueType?: 'F32' | 'F16';
  }): Promise<LlamaContext>;
}

export interface Llama {
  loadModel(options: { readonly modelPath: string }): Promise<LlamaModel>;
  dispose(): Promise<void>;
}

/** llama.cpp on the CPU, with one thread. */
export async function loadLlama(): Promise<Llama> {
  const { getLlama } = (await load('node-llama-cpp', 'dist/index.js')) as {
    readonly getLlama: (options: object) => Promise<Llama>;
  };
  return getLlama({ gpu: false, build: 'never', progressLogs: false, maxThreads: 1, logLevel: 'error' });
}

export interface HfTokenizer {
  encode(text: string, options: { readonly add_special_tokens: boolean }): { readonly ids: number[] };
  decode(ids: readonly number[], options: { readonly skip_special_tokens: boolean }): string;
}

export async function loadHfTokenizer(folder: string): Promise<HfTokenizer> {
  const { Tokenizer } = (await load('@huggingface/tokenizers', 'dist/tokenizers.mjs')) as {
    Tokenizer: new (tokenizer: unknown, config: unknown) => HfTokenizer;
  };
  return new Tokenizer(json(join(folder, 'tokenizer.json')), json(join(folder, 'tokenizer_config.json')));
}

export interface JinjaTemplate {
  render(values: Record<string, unknown>): string;
}

export async function loadJinja(template: string): Promise<JinjaTemplate> {
  const { Template } = (await load('@huggingface/jinja', 'dist/index.js')) as {
    Template: new (text: string) => JinjaTemplate;
  };
  return new Template(template);
}

/** The version of llama.cpp inside the package. */
export function llamaVersion(): string {
  const folder = join(FOLDER, 'node_modules', 'node-llama-cpp');
  const { tag } = json(join(folder, 'llama', 'llama.cpp.info.json'));
  return `node-llama-cpp ${String(json(join(folder, 'package.json')).version)} (its llama.cpp: ${String(tag)})`;
}
