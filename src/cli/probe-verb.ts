/** `cofferdam probe` as the command line knows it. */
import { type Command, Option } from 'commander';
import type { ProbeFlags } from './probe-flags.js';
import type { CliIo } from './io.js';

const collect = (value: string, earlier: readonly string[] | undefined): readonly string[] => [
  ...(earlier ?? []),
  value,
];

function repeatable(flags: string, words: string): Option {
  return new Option(flags, `${words} (repeatable)`).argParser(collect);
}

export function addProbe(program: Command, io: CliIo, version: () => string, finish: (code: number) => void): void {
  program
    .command('probe [URL]')
    .description("sends requests of two or more tenants, and says whether one's data reaches another's answers")
    .addOption(repeatable('--tenant <NAME=KEY>', '`env:VAR`, or `none` where the endpoint knows no keys'))
    .option('--model <NAME>', 'the model that is asked')
    .option('--route <ROUTE>', 'completions or chat (completions)')
    .addOption(repeatable('--engine <URL>', 'an engine behind the endpoint: its capacity is read, to aim exactly'))
    .option('--advertised <TOKENS>', 'the context that clients are told, where /v1/models does not say it')
    .option('--only <NAMES>', 'these experiments, with commas between')
    .option('--budget-tokens <N>', 'tokens of prompts and answers at most (5M)')
    .option('--budget-requests <N>', 'requests at most (20000)')
    .option('--together <N>', 'requests open at once at most (32)')
    .option('--max-duration <DURATION>', 'such as 90s or 20m (20m)')
    .option('--price <PER_MILLION>', 'what a million tokens cost, for the plan')
    .option('--bound <SHARE>', 'no power above this upper bound of the rate of leaks (0.05)')
    .option('--seed <N>', 'where chance begins')
    .option('--keep-text', 'record prompts and answers, not only their fingerprints')
    .option('--allow-destructive', 'try what could end or empty something at the endpoint')
    .option('--record <FILE>', 'the file of the run, a new one (probe-TIME.jsonl)')
    .option('--resume <FILE>', 'go on where the run of this record stopped, in the same file or in that of `--record`')
    .option('--repro <FILE>', 'write a script that replays a hit with curl; keys come from the environment')
    .option('--convert <FILE>', 'render the file of a run again instead of probing')
    .option('--config <FILE>', 'these options from a YAML file')
    .option('--dry-run', 'print the plan and send nothing more than it needs')
    .option('--yes', 'do not ask after the plan; needed beyond loopback where nobody can be asked')
    .addOption(repeatable('--output <FORMAT[=FILE]>', 'table, json, html, junit or sarif (table)'))
    .action(async (url: string | undefined, flags: ProbeFlags) => {
      finish(await (await import('./probe.js')).probeVerb(url ?? null, flags, io, version()));
    });
}
