/** The verbs and their flags. Everything behind a verb is loaded only when it is called. */
import { readFileSync } from 'node:fs';
import { Command, CommanderError, Option } from 'commander';
import { CodedError } from '../base/errors.js';
import { escapeControl } from '../base/text.js';
import { GUARDS } from '../handoff/guards.js';
import * as defaults from './defaults.js';
import { addAudit, addExplain } from './audit-verb.js';
import type { EngineFlags, ReplayFlags, ServeFlags } from './flags.js';
import { addInit } from './init-verb.js';
import { type CliIo, EXIT } from './io.js';
import { addLab } from './lab-verb.js';
import { addMarker } from './marker-verb.js';
import { addProbe } from './probe-verb.js';
import { addVerify } from './verify-verb.js';

/** What the program needs of the protocol; loaded when a verb runs. */
export interface ProgramParts {
  faultNames(): Promise<readonly string[]>;
}

function version(): string {
  const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

const collect = (value: string, earlier: readonly string[] | undefined): readonly string[] => [
  ...(earlier ?? []),
  value,
];

function repeatable(flags: string, words: string): Option {
  return new Option(flags, `${words} (repeatable)`).argParser(collect);
}

function addSizes(command: Command): Command {
  return command
    .option('--context <TOKENS>', `context advertised to tenants, kept as it is (${defaults.DEFAULT_CONTEXT_TOKENS})`)
    .option('--prefill-pool <TOKENS>', `KV pool of prefill (${defaults.DEFAULT_PREFILL_POOL_TOKENS})`)
    .option('--decode-pool <TOKENS>', `KV pool of decode (${defaults.DEFAULT_DECODE_POOL_TOKENS})`)
    .option('--page-size <TOKENS>', `tokens a page, a power of two (${defaults.DEFAULT_PAGE_TOKENS})`)
    .option('--max-running <N>', `requests that run at once (${defaults.DEFAULT_RUNNING_MAX})`)
    .option('--no-prefix-cache', "keep no prompt's pages for the tenant's next ones")
    .option('--zero-on-release', 'overwrite every page with zeros when it is given back');
}

function addGuards(command: Command): Command {
  return command
    .option('--guards <MODE>', 'on or off: every guard at once; off only on loopback')
    .addOption(repeatable('--guard-off <NAME>', `one guard off: ${GUARDS.join(', ')}`))
    .option('--seed <N>', `where chance begins (${defaults.DEFAULT_SEED})`);
}

function addFaults(command: Command): Command {
  command.addOption(
    repeatable('--fault <NAME>', 'switch a fault on, and the guards that stop it off; only on loopback'),
  );
  return addGuards(command);
}

function addTrace(command: Command): Command {
  return command.option('--trace <FILE>', 'write every event of the handoff protocol there, for `verify --trace`');
}

function addCounterexample(command: Command): Command {
  return command.option('--trace <FILE>', 'a counterexample of `verify --trace-out FILE`, step by step on the engine');
}

function addOutput(command: Command): Command {
  return command.option('--output <FORMAT>', 'table or json (table)');
}

function newProgram(io: CliIo): Command {
  return new Command('cofferdam')
    .description('Keeps one tenant’s KV cache out of another tenant’s answers.')
    .version(version())
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.out(text),
      writeErr: (text) => io.err(text),
      outputError: (text, write) => write(oneLine(text)),
    });
}

/** The verbs that serve nothing. */
function addOthers(program: Command, io: CliIo, finish: (code: number) => void): void {
  addAudit(program, io, version, finish);
  addExplain(program, io, finish);
  addProbe(program, io, version, finish);
  addVerify(program, io, finish);
  addLab(program, io, finish);
  addMarker(program, io, finish);
}

function addServe(program: Command, io: CliIo, parts: ProgramParts, finish: (code: number) => void): void {
  const serve = program
    .command('serve')
    .description('a multi-tenant, OpenAI-compatible gateway, in front of engines that are there or on the embedded one')
    .addOption(
      repeatable(
        '--upstream <URL>',
        'an engine that is there: SGLang, vLLM, llama-server, or anything that speaks OpenAI; `URL#kind=vllm&bootstrap=8998` says what the engine does not',
      ),
    )
    .option('--engine-key <KEY>', "the engines' own key: env:VAR or file:PATH")
    .option('--tokenizer <DIR>', 'a folder with the tokenizer.json of the model; else the engine counts')
    .option(
      '--upstream-limit <TOKENS>',
      'the context of engines that do not say theirs; where one says a smaller one, that holds',
    )
    .option('--upstream-ca <FILE>', 'certificates of authorities for engines over https')
    .option('--wait', 'wait at the start for engines that can not be reached yet')
    .option('--workers <N>', 'processes that share the tenants’ port, each with limits of its own (1)')
    .option('--secret <KEY>', 'what salts are made from, the same for all replicas: env:VAR or file:PATH')
    .option('--usage <FILE>', 'a log of settled requests: counts, never text')
    .option('--tls-cert <FILE>', 'certificate of both ports, in PEM')
    .option('--tls-key <FILE>', 'its private key')
    .option('--config <FILE>', 'all of this in a file; flags override it (cofferdam.yaml, where there is one)')
    .option('--host <ADDRESS>', `where both ports listen (${defaults.DEFAULT_HOST})`)
    .option('--port <N>', `the tenants' port (${defaults.DEFAULT_PORT})`)
    .option('--ops-port <N>', `the operators' port (${defaults.DEFAULT_OPS_PORT})`)
    .option('--ops-key <KEY>', "the operators' key: env:VAR, sha256:HEX64 or the key itself; needed beyond loopback")
    .addOption(
      repeatable('--tenant <NAME=KEY>', 'a tenant; KEY is env:VAR, sha256:HEX64 or, on loopback, the key itself'),
    )
    .option(
      '--on-small-pool <MODE>',
      'when a pool is smaller than the context: lower the limit, or refuse to start (lower)',
    )
    .action(async (flags: ServeFlags) => {
      finish(await (await import('./serve.js')).serve(flags, await parts.faultNames(), io));
    });
  addOutput(addTrace(addFaults(addSizes(serve))));
}

/** Runs the command line `args` (without node and script); resolves with the exit code and never rejects. */
export async function runProgram(args: readonly string[], io: CliIo, parts: ProgramParts): Promise<number> {
  let code: number = EXIT.clean;
  const program = newProgram(io);
  const finish = (ended: number): void => {
    code = ended;
  };
  addServe(program, io, parts, finish);
  addInit(program, io, finish);

  const engine = program
    .command('engine')
    .description("the embedded engine alone, speaking SGLang's HTTP dialect")
    .option('--host <ADDRESS>', `where it listens (${defaults.DEFAULT_HOST})`)
    .option('--port <N>', `as one node (${defaults.DEFAULT_ENGINE_PORT})`)
    .option('--prefill-port <N>', 'as a pair: the port of prefill')
    .option('--decode-port <N>', 'as a pair: the port of decode')
    .action(async (flags: EngineFlags) => {
      code = await (await import('./engine.js')).engine(flags, await parts.faultNames(), io);
    });
  addOutput(addTrace(addFaults(addSizes(engine))));

  const replay = program
    .command('replay [FAULT]')
    .description('a public incident on an engine that really leaks; no guards named: all off, then all on')
    .option('--list', 'every fault, with its public source')
    .option('--matrix', 'every fault, with all guards off and with all on')
    .option('--full', 'with --matrix: each guard alone as well')
    .action(async (fault: string | undefined, flags: ReplayFlags) => {
      code = await (await import('./replay.js')).replay(fault, flags, await parts.faultNames(), io);
    });
  addOutput(addCounterexample(addGuards(replay)));

  addOthers(program, io, finish);

  try {
    await program.parseAsync([...args], { from: 'user' });
    return code;
  } catch (error) {
    return exitCodeOf(error, io);
  }
}

/** Errors of the command line are one line, with its suggestion. */
function oneLine(text: string): string {
  return `${escapeControl(text.trim().replaceAll(/\s*\n\s*/g, ' '))}\n`;
}

function exitCodeOf(error: unknown, io: CliIo): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.clean : EXIT.usage;
  if (error instanceof CodedError) {
    io.err(oneLine(`error: ${error.message}`));
    return error.code === 'usage' ? EXIT.usage : EXIT.unchecked;
  }
  // A broken rule inside: the stack is what its report needs.
  io.err(`error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return EXIT.unchecked;
}
