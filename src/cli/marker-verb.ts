/** `cofferdam marker`: its flags. */
import type { Command } from 'commander';
import type { MarkerFlags } from './flags.js';
import type { CliIo } from './io.js';

export function addMarker(program: Command, io: CliIo, finish: (code: number) => void): void {
  program
    .command('marker <TENANT>')
    .description('a word that only this tenant ever sees, for planting: the gateway knows it wherever it turns up')
    .option('--config <FILE>', 'where `markers:` says secret and periods (cofferdam.yaml)')
    .option('--secret <KEY>', 'the secret of markers instead: env:VAR or file:PATH')
    .option('--period <NAME>', 'the stretch of time that it stands for (the last of the file)')
    .option('--index <N>', "which of the tenant's markers of the period, from 0 (0)")
    .option('--count <N>', 'so many, from that one on (1)')
    .option('--output <FORMAT>', 'table or json (table)')
    .action(async (tenant: string, flags: MarkerFlags) => {
      finish((await import('./marker.js')).marker(tenant, flags, io));
    });
}
