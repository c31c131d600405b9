/** The flags of `cofferdam lab`, checked. */
import { CodedError } from '../base/errors.js';
import { LAB_CONTEXT_MAX } from '../model/lab-weights.js';
import * as defaults from './defaults.js';
import type { LabFlags } from './flags.js';
import { choice, count, type OutputFormat } from './options.js';

export type LabFormat = 'hf' | 'gguf';

export interface LabOptions {
  readonly format: LabFormat;
  /** As it was given; neither empty nor too long for a system. */
  readonly dir: string;
  /** Tokens. */
  readonly context: number;
  readonly force: boolean;
  readonly output: OutputFormat;
  readonly warnings: readonly string[];
}

/** Throws CodedError `usage`. */
export function parseLabOptions(dir: string, flags: LabFlags): LabOptions {
  if (flags.format === undefined) {
    throw new CodedError('usage', 'Expected `--format` to be `hf` or `gguf`, got nothing');
  }
  if (dir === '' || dir.length > defaults.PATH_CHARACTERS_MAX || dir.includes('\0')) {
    const wanted = `a path of 1 to ${defaults.PATH_CHARACTERS_MAX} characters without NUL`;
    throw new CodedError('usage', `Expected DIR to be ${wanted}, got one of ${dir.length} characters`);
  }
  const { CONTEXT_TOKENS_MIN: min, CONTEXT_TOKENS_MAX: max, DEFAULT_LAB_CONTEXT_TOKENS: fallback } = defaults;
  const context = count('--context', flags.context, fallback, min, max);
  return {
    format: choice('--format', flags.format, ['hf', 'gguf'], 'hf'),
    dir,
    context,
    force: flags.force === true,
    output: choice('--output', flags.output, ['table', 'json'], 'table'),
    warnings:
      context > LAB_CONTEXT_MAX
        ? [`the lab model is tried up to ${LAB_CONTEXT_MAX} tokens; beyond them it may answer wrong`]
        : [],
  };
}
