/** `cofferdam lab`: its flags. */
import type { Command } from 'commander';
import * as defaults from './defaults.js';
import type { LabFlags } from './flags.js';
import type { CliIo } from './io.js';

export function addLab(program: Command, io: CliIo, finish: (code: number) => void): void {
  program
    .command('lab <DIR>')
    .description('writes the lab model as a checkpoint for vLLM and SGLang, or as a GGUF file for llama.cpp')
    .option('--format <FORMAT>', 'hf (a Hugging Face folder) or gguf (one file; DIR may end in .gguf)')
    .option('--context <TOKENS>', `context that the checkpoint declares (${defaults.DEFAULT_LAB_CONTEXT_TOKENS})`)
    .option('--force', 'replace files that are there')
    .option('--output <FORMAT>', 'table or json (table)')
    .action(async (dir: string, flags: LabFlags) => {
      finish((await import('./lab.js')).lab(dir, flags, io));
    });
}
