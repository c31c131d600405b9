/** `cofferdam verify`: its flags. */
import type { Command } from 'commander';
import type { VerifyFlags } from './flags.js';
import type { CliIo } from './io.js';

export function addVerify(program: Command, io: CliIo, finish: (code: number) => void): void {
  program
    .command('verify')
    .description('explores the handoff protocol, the code that runs, in every order of events')
    .option('--scope <NAME>', 'how large a world: small, default, faults, … (default; faults with a fault)')
    .option('--fault <NAME>', 'one fault, with its guards off and on')
    .option('--all-faults', 'every fault of the catalogue, each with its guards off and on')
    .option('--guards <MODE>', 'with --fault: only off, or only on')
    .option('--memory <BYTES>', 'all stores together: 512M, 3G (3G); a run that needs more is incomplete')
    .option('--output <FORMAT>', 'table or json (table)')
    .action(async (flags: VerifyFlags) => {
      finish((await import('./verify-run.js')).runVerify(flags, io));
    });
}
