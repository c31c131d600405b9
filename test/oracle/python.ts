/** The formats' own libraries, which are Python's: in an environment of their own inside this folder. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { FOLDER } from './packages.js';

const ENVIRONMENT = join(FOLDER, '.venv');
const PYTHON = join(ENVIRONMENT, 'bin', 'python');
const INSTALL_TIMEOUT_MS = 600_000;
const READ_TIMEOUT_MS = 120_000;
/** The answer holds a digest and a shape for each tensor, and every text that was asked. */
const ANSWER_BYTES_MAX: number = 64 * 1024 ** 2;

/** Of a tensor: type, shape, SHA-256 of its bytes. */
export type SeenTensor = readonly [string, readonly number[], string];

export interface PythonAnswer {
  readonly safetensors: Readonly<Record<string, SeenTensor>>;
  readonly gguf: Readonly<Record<string, SeenTensor>>;
  readonly ggufTokens: readonly string[];
  readonly ids: readonly (readonly number[])[];
  readonly texts: readonly string[];
  readonly specials: readonly number[];
  readonly chat: string;
  readonly thetaTypes: readonly string[];
}

/** Null when the environment is there or could be made; else why not. */
export function whyNoPython(): string | null {
  if (!existsSync(PYTHON)) {
    const made = spawnSync('python3', ['-m', 'venv', ENVIRONMENT], { encoding: 'utf8', timeout: INSTALL_TIMEOUT_MS });
    if (made.status !== 0) return `no Python environment: ${lastLine(made.stderr) || String(made.error)}`;
  }
  const wanted = join(FOLDER, 'requirements.txt');
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', wanted];
  const installed = spawnSync(PYTHON, pip, { encoding: 'utf8', timeout: INSTALL_TIMEOUT_MS });
  return installed.status === 0
    ? null
    : `pip could not install: ${lastLine(installed.stderr) || String(installed.error)}`;
}

function lastLine(text: string | null): string {
  return (text ?? '').trim().split('\n').at(-1) ?? '';
}

/** What the libraries find in an exported folder and file. */
export function readWithPython(
  folder: string,
  gguf: string,
  asked: { readonly texts: readonly string[]; readonly messages: readonly object[] },
): PythonAnswer {
  const read = spawnSync(PYTHON, [join(FOLDER, 'readers.py'), folder, gguf], {
    input: JSON.stringify(asked),
    encoding: 'utf8',
    timeout: READ_TIMEOUT_MS,
    maxBuffer: ANSWER_BYTES_MAX,
  });
  if (read.status !== 0) throw new Error(`the readers failed: ${read.stderr.slice(-2000)}`);
  return JSON.parse(read.stdout) as PythonAnswer;
}
