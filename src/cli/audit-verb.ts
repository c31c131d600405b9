/** `cofferdam audit` and `cofferdam explain` as the command line knows them. */
import { type Command, Option } from 'commander';
import type { AuditFlags } from './flags.js';
import type { CliIo } from './io.js';

const collect = (value: string, earlier: readonly string[] | undefined): readonly string[] => [
  ...(earlier ?? []),
  value,
];

function repeatable(flags: string, words: string): Option {
  return new Option(flags, `${words} (repeatable)`).argParser(collect);
}

export function addAudit(program: Command, io: CliIo, version: () => string, finish: (code: number) => void): void {
  program
    .command('audit [TARGET...]')
    .description('puts context and KV pool side by side on every node, and checks what else would let KV leak')
    .addOption(repeatable('--command <LINE>', 'a command line that starts an engine or router'))
    .addOption(repeatable('--pool <ROLE=TOKENS>', 'the KV pool of the nodes of a role, or of one node by its name'))
    .option('--advertised <TOKENS>', 'the context that clients are told')
    .addOption(repeatable('--api-key-env <[ORIGIN=]VAR>', 'the variable that holds the key of the URLs, or of one'))
    .addOption(repeatable('--header <[ORIGIN=]NAME: VALUE>', 'a header for the URLs, or for one'))
    .option('--wait <DURATION>', 'wait until every URL is ready: 30s, 10m')
    .option('--baseline <FILE>', 'a saved JSON report: say what changed since')
    .option('--waivers <FILE>', 'findings that somebody has answered for (.cofferdam-waivers.yaml, where there is one)')
    .option('--fail-on <SEVERITY>', 'exit 1 from here up: critical, high, medium, low, info, none (high)')
    .addOption(
      repeatable('--require <GROUPS>', 'what must have been checked, or exit 3 (capacity,version,rejection); `none`'),
    )
    .addOption(repeatable('--output <FORMAT[=FILE]>', 'table, json, jsonl, sarif, junit or html (table)'))
    .option('--convert <FILE>', 'render a saved JSON report instead of auditing')
    .action(async (targets: string[], flags: AuditFlags) => {
      finish(await (await import('./audit.js')).auditVerb(targets, flags, io, version()));
    });
}

export function addExplain(program: Command, io: CliIo, finish: (code: number) => void): void {
  program
    .command('explain [ID]')
    .description('what a finding means, how it was seen, what to change; without ID: every rule')
    .action(async (id: string | undefined) => {
      finish((await import('./explain.js')).explain(id, io));
    });
}
