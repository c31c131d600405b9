/** `cofferdam verify`: its flags. */
import type { Command } from 'commander';
import type { VerifyFlags } from './flags.js';
import type { CliIo } from './io.js';

export function addVerify(program: Command, io: CliIo, finish: (code: number) => void): void {
  program
    .command('verify')
    .description('explores the handoff protocol, the code that runs, in every order of events')
    .option('--scope <NAME>', 'how large a world: small, default, large, faults, … (default; a fault has its own)')
    .option('--fault <NAME>', 'one fault, with its guards off and on, and its shortest counterexample')
    .option('--all-faults', 'every fault of the catalogue, each with its guards off and on')
    .option('--guards <MODE>', 'only on, or only off')
    .option('--symmetry', 'states that differ only in the names of tenants, requests or pages are one')
    .option('--trace <FILE>', 'hold the trace of a real run against the protocol')
    .option('--trace-out <FILE>', 'with --fault: write its counterexample there, for `replay --trace`')
    .option('--memory <BYTES>', 'all stores together: 512M, 3G (3G); a run that needs more is incomplete')
    .option('--output <FORMAT>', 'table, json, or html[=FILE]: a page to step through, of a fault or a scope (table)')
    .action(async (flags: VerifyFlags) => {
      finish(await (await import('./verify-run.js')).runVerify(flags, io));
    });
}
