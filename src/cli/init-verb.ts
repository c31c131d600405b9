/** `cofferdam init`: its flags. */
import type { Command } from 'commander';
import type { InitFlags } from './flags.js';
import type { CliIo } from './io.js';

export function addInit(program: Command, io: CliIo, finish: (code: number) => void): void {
  program
    .command('init')
    .description('writes a commented example of the configuration of serve')
    .option('--output <FILE>', 'where to (cofferdam.yaml)')
    .option('--force', 'replace a file that is there')
    .action(async (flags: InitFlags) => {
      finish((await import('./init.js')).init(flags, io));
    });
}
