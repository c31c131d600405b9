/** `cofferdam lab`: the embedded engine's model as a checkpoint for other engines. */
import { statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { escapeControl } from '../base/text.js';
import type { CheckpointFacts, CheckpointFile } from '../model/export/checkpoint.js';
import { ggufFile } from '../model/export/gguf.js';
import { huggingFaceFiles } from '../model/export/hugging-face.js';
import { LAB_CONFIG, loadLabWeights } from '../model/lab-weights.js';
import { writeCheckpoint } from './checkpoint-files.js';
import { type CliIo, EXIT } from './io.js';
import type { LabOptions } from './lab-options.js';

const GGUF_ENDING = '.gguf';
const GGUF_NAME = `lab${GGUF_ENDING}`;
const BYTES_A_MIB = 1024 ** 2;

/** The exit code. Throws CodedError `usage` where nothing can be written. */
export function runLab(options: LabOptions, io: CliIo): number {
  const { folder, ggufName } = targetOf(options);
  const facts: CheckpointFacts = { config: LAB_CONFIG, contextTokens: options.context };
  const weights = loadLabWeights();
  const files = options.format === 'hf' ? huggingFaceFiles(facts, weights) : [ggufFile(ggufName, facts, weights)];
  writeCheckpoint(folder, files, { force: options.force });
  io.out(options.output === 'json' ? jsonLine(options, folder, files) : lines(options, folder, files));
  return EXIT.clean;
}

interface Target {
  readonly folder: string;
  readonly ggufName: string;
}

/** DIR is a folder; for GGUF it may also be the file itself. */
function targetOf({ format, dir }: LabOptions): Target {
  const isFile = format === 'gguf' && basename(dir).endsWith(GGUF_ENDING) && !isFolder(dir);
  return isFile ? { folder: dirname(dir), ggufName: basename(dir) } : { folder: dir, ggufName: GGUF_NAME };
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    // Missing, or a name that the system does not take: writing it says what is wrong.
    return false;
  }
}

function jsonLine(options: LabOptions, folder: string, files: readonly CheckpointFile[]): string {
  const list = files.map(({ name, bytes }) => ({ path: join(folder, name), bytes }));
  return `${JSON.stringify({ format: options.format, contextTokens: options.context, files: list })}\n`;
}

function lines(options: LabOptions, folder: string, files: readonly CheckpointFile[]): string {
  const what = options.format === 'hf' ? 'a Hugging Face folder' : 'a GGUF file';
  const written = files.map(({ name, bytes }) => {
    return `  ${join(folder, name)}  ${bytes < BYTES_A_MIB ? `${bytes} bytes` : `${(bytes / BYTES_A_MIB).toFixed(1)} MiB`}`;
  });
  const text = [
    `The lab model as ${what}, for a context of ${options.context} tokens:`,
    '',
    ...written,
    '',
    'Serve it:',
    '',
    ...serveLines(options, folder, files).map((line) => `  ${line}`),
    '',
  ];
  return text.map((line) => `${escapeControl(line)}\n`).join('');
}

/** One line for each engine: how to start it, or what it needs first. */
function serveLines(options: LabOptions, folder: string, files: readonly CheckpointFile[]): string[] {
  const { context, dir } = options;
  const here = '--host 127.0.0.1';
  if (options.format === 'gguf') {
    const [file] = files;
    const model = quoted(join(folder, file?.name ?? GGUF_NAME));
    return [
      `llama-server  llama-server -m ${model} --alias lab ${here} --port 8090 -c ${context}`,
      'vLLM, SGLang  write a folder for them: cofferdam lab --format hf DIR',
    ];
  }
  const name = `--served-model-name lab --dtype float32 ${here}`;
  return [
    `vLLM          vllm serve ${quoted(dir)} ${name} --port 8000 --max-model-len ${context}`,
    `SGLang        python -m sglang.launch_server --model-path ${quoted(dir)} ${name} --port 30000 --context-length ${context}`,
    'llama-server  write a file for it: cofferdam lab --format gguf DIR',
  ];
}

/** A path as a shell takes it for one word. */
export function quoted(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
