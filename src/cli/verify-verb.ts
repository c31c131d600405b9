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
    .option('--simulate', 'seeded worlds of the engine that runs, with every trouble at once')
    .option('--seed <N>', 'with --simulate: this world; with --duration: from it on (drawn)')
    .option('--steps <N>', 'with --simulate: steps of each world before it comes to rest (30000)')
    .option('--requests <N>', 'with --simulate: requests of each world at most (600)')
    .option('--duration <TIME>', 'with --simulate: worlds are begun for so long: 30s, 5m (10s)')
    .option('--without <LIST>', 'with --simulate: troubles to leave out: loss,aborts,…')
    .option('--trace-out <FILE>', 'with --fault: write its counterexample there, for `replay --trace`')
    .option('--memory <BYTES>', 'all stores together: 512M, 3G (3G); a run that needs more is incomplete')
    .option(
      '--output <FORMAT>',
      'table, json, or html[=FILE], a page to step through (table); with --simulate: table, json, with --seed also trace',
    )
    .action(async (flags: VerifyFlags) => {
      if (flags.simulate === true) finish(await (await import('./verify-simulate.js')).runSimulate(flags, io));
      else finish(await (await import('./verify-run.js')).runVerify(flags, io));
    });
}
