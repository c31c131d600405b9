/** Command lines of every engine and router: from words to facts. */
import { type EngineName, type Fact, type Reading, SECRET } from '../reading.js';
import { asPort, isSecretName, keepableVariable, tokensOf } from '../shapes.js';
import { sglangRole } from '../sglang/read.js';
import { flagFactsOf } from '../vllm/flags.js';
import { type GivenFlag, type GivenFlags, parseFlags } from './flags.js';
import { type Program, programOf } from './programs.js';
import { parseCommands, type Word } from './words.js';

/** Stands among the flags of a Dynamo worker; no program has it. */
export const WORKER_FLAG = 'dynamo-worker';
/** Shells inside shells are followed so far. */
const SHELLS_MAX = 3;
const SHELL = /^(?:\S{0,200}\/)?(?:ba|da|a|z|k)?sh$/;

/** Every engine that a shell text starts. */
export function readCommandText(text: string, firstLine = 1): Reading[] {
  return parseCommands(text, firstLine).flatMap((words) => readWords(words, 0));
}

/** The engines that one command starts: one, or what the script behind `sh -c` holds. */
export function readWords(words: readonly Word[], depth: number): Reading[] {
  const shell = words.findIndex(({ text }) => SHELL.test(text));
  if (shell >= 0 && depth < SHELLS_MAX) {
    const option = words.slice(shell + 1, shell + 6).findIndex(({ text }) => /^-[a-z]{0,8}c$/.test(text));
    const script = option < 0 ? undefined : words[shell + option + 2];
    if (script !== undefined) {
      const rest = words.slice(shell + option + 3);
      return parseCommands(script.text, script.line ?? 1).flatMap((inner) =>
        readWords([...inner, ...tail(inner, rest)], depth + 1),
      );
    }
  }
  const program = programOf(words);
  if (program === null) return [];
  const lead = words.slice(0, words.length - program.flags.length);
  return [readProgram(program, variablesOf(lead))];
}

/** `sh -c 'exec llama-server "$@"' -- FLAGS` passes the rest on. */
function tail(inner: readonly Word[], rest: readonly Word[]): readonly Word[] {
  return inner.some(({ text }) => text === '$@' || text === '$*') ? rest.filter(({ text }) => text !== '--') : [];
}

/** `NAME=value` in front of the program, also behind `env` and `docker run -e`. */
function variablesOf(words: readonly Word[]): Fact[] {
  const facts: Fact[] = [];
  for (const { text, computed, line } of words) {
    const match = /^([A-Za-z_]\w{0,200})=([\s\S]*)$/.exec(text);
    if (match === null) continue;
    const value = computed ? null : keepableVariable(match[1]!, match[2]!);
    facts.push({ kind: 'variable', name: match[1]!, value, ...(line === undefined ? {} : { line }) });
  }
  return facts;
}

export function readProgram(program: Program, variables: readonly Fact[]): Reading {
  const words = program.flags.filter(({ text }) => text !== '$@' && text !== '$*');
  const given = parseFlags(program.engine, words);
  const facts = [...variables, ...factsOf(program.engine, given)];
  if (program.worker !== true) return { engine: program.engine, facts };
  // The port of its engine's server is not opened: Dynamo's frontend sends the work.
  const own = facts.filter(({ kind }) => kind !== 'listens');
  return { engine: program.engine, facts: [...own, { kind: 'flag', name: WORKER_FLAG, value: 'true', form: 'given' }] };
}

function factsOf(engine: EngineName, given: GivenFlags): Fact[] {
  const facts: Fact[] = [];
  if (given.complete) facts.push({ kind: 'flags-complete', form: 'given' });
  for (const flag of given.flags) {
    const line = flag.line === undefined ? {} : { line: flag.line };
    if (engine === 'vllm')
      facts.push(...flagFactsOf(flag.name, flag.value, 'given', flag.line ?? 0).map(withLine(flag)));
    else facts.push({ kind: 'flag', name: flag.name, value: flag.value, form: 'given', ...line });
  }
  const lookup = new Map(given.flags.map((flag) => [flag.name, flag]));
  return [...facts, ...listens(engine, lookup, given.complete), ...meaning(engine, lookup, given)];
}

const withLine =
  (flag: GivenFlag) =>
  (fact: Fact): Fact => {
    const { line: _line, ...rest } = fact;
    return (flag.line === undefined ? rest : { ...rest, line: flag.line }) as Fact;
  };

type Lookup = ReadonlyMap<string, GivenFlag>;

function at(flag: GivenFlag | undefined): { readonly line?: number } {
  return flag?.line === undefined ? {} : { line: flag.line };
}

/** Where each listens when nothing is said: SGLang and llama-server on loopback, vLLM and the routers everywhere. */
const LISTENS: Readonly<Partial<Record<EngineName, readonly [string, number]>>> = {
  sglang: ['127.0.0.1', 30000],
  vllm: ['0.0.0.0', 8000],
  llamacpp: ['127.0.0.1', 8080],
  'sglang-router': ['0.0.0.0', 30000],
  'sglang-mini-lb': ['0.0.0.0', 30000],
};

function listens(engine: EngineName, flags: Lookup, complete: boolean): Fact[] {
  const defaults = LISTENS[engine];
  const host = flags.get('host');
  const port = flags.get('port');
  if (defaults === undefined || (!complete && (host === undefined || port === undefined))) return [];
  const number = port === undefined ? defaults[1] : asPort(port.value);
  const name = host === undefined ? defaults[0] : host.value;
  if (number === null || name === null) return [];
  return [{ kind: 'listens', host: name, port: number, ...at(host ?? port) }];
}

function meaning(engine: EngineName, flags: Lookup, given: GivenFlags): Fact[] {
  switch (engine) {
    case 'sglang':
      return sglangFacts(flags, given.complete);
    case 'vllm':
      return vllmFacts(flags, given);
    case 'llamacpp':
      return llamaFacts(flags);
    case 'cofferdam':
      return cofferdamFacts(flags);
    case 'sglang-router':
    case 'sglang-mini-lb':
    case 'vllm-router':
    case 'llmd-sidecar':
    case 'llmd-epp':
    case 'dynamo':
      return [{ kind: 'role', role: 'router' }];
    default:
      return [];
  }
}

function sglangFacts(flags: Lookup, complete: boolean): Fact[] {
  const facts: Fact[] = [];
  const mode = flags.get('disaggregation-mode');
  if (mode === undefined ? complete : mode.value !== null) {
    const role = sglangRole(mode?.value ?? 'null');
    if (role !== null) facts.push({ kind: 'role', role, ...at(mode) });
  }
  tokenFact(facts, flags.get('context-length'), (tokens) => ({ kind: 'advertised', tokens }));
  tokenFact(facts, flags.get('max-total-tokens'), (tokens) => ({ kind: 'pool-cap', tokens }));
  tokenFact(facts, flags.get('page-size'), (tokens) => ({ kind: 'page', tokens }));
  const model = flags.get('served-model-name') ?? flags.get('model-path');
  if (typeof model?.value === 'string') facts.push({ kind: 'model', name: model.value, ...at(model) });
  return facts;
}

function tokenFact(facts: Fact[], flag: GivenFlag | undefined, make: (tokens: number) => Fact): void {
  const tokens = tokensOf(flag?.value);
  if (tokens !== null) facts.push({ ...make(tokens), ...at(flag) });
}

function vllmFacts(flags: Lookup, given: GivenFlags): Fact[] {
  const facts: Fact[] = [];
  if (given.complete && !flags.has('kv-transfer-config')) facts.push({ kind: 'role', role: 'single' });
  const override = flags.get('num-gpu-blocks-override');
  const blocks = tokensOf(override?.value);
  const block = tokensOf(flags.get('block-size')?.value);
  // One block is never given out; without `--block-size` the size depends on the device.
  if (blocks !== null && block !== null && blocks > 1) {
    facts.push({ kind: 'pool-cap', tokens: (blocks - 1) * block, ...at(override) });
  }
  if (!flags.has('served-model-name')) {
    const name = given.loose[0] ?? flags.get('model')?.value;
    if (typeof name === 'string') facts.push({ kind: 'model', name });
  }
  return facts;
}

function llamaFacts(flags: Lookup): Fact[] {
  const facts: Fact[] = [{ kind: 'role', role: 'single' }];
  const size = flags.get('ctx-size');
  const context = tokensOf(size?.value);
  const count = tokensOf(flags.get('parallel')?.value);
  const said = flags.get('kv-unified')?.value;
  // With the number of slots left to it, it makes one pool for all of them.
  const unified = said === undefined ? count === null : said === null ? null : said !== 'false';
  if (context === null || unified === null) return facts;
  const each = unified ? context : Math.floor(context / (count ?? 1));
  facts.push({ kind: 'advertised', tokens: each, ...at(size) }, { kind: 'pool-cap', tokens: each, ...at(size) });
  if (count !== null) facts.push({ kind: 'slots', count, contextEach: each, unified, ...at(size) });
  return facts;
}

function cofferdamFacts(flags: Lookup): Fact[] {
  const facts: Fact[] = [];
  tokenFact(facts, flags.get('context'), (tokens) => ({ kind: 'advertised', tokens }));
  const pools = [tokensOf(flags.get('prefill-pool')?.value), tokensOf(flags.get('decode-pool')?.value)];
  const known = pools.filter((pool) => pool !== null);
  if (known.length > 0) facts.push({ kind: 'pool-cap', tokens: Math.min(...known) });
  return facts;
}

/** llama-server and vLLM take flags from variables too. */
const VARIABLE_FLAGS: Readonly<Record<string, readonly [EngineName, string]>> = {
  LLAMA_ARG_CTX_SIZE: ['llamacpp', 'ctx-size'],
  LLAMA_ARG_N_PARALLEL: ['llamacpp', 'parallel'],
  LLAMA_ARG_KV_UNIFIED: ['llamacpp', 'kv-unified'],
  LLAMA_ARG_HOST: ['llamacpp', 'host'],
  LLAMA_ARG_PORT: ['llamacpp', 'port'],
  LLAMA_ARG_SLOT_SAVE_PATH: ['llamacpp', 'slot-save-path'],
  LLAMA_ARG_CACHE_RAM: ['llamacpp', 'cache-ram'],
  LLAMA_API_KEY: ['llamacpp', 'api-key'],
  VLLM_API_KEY: ['vllm', 'api-key'],
};

/** The flag that a variable stands for, to be put in front of a command's own; null: none. */
export function variableFlag(engine: EngineName, name: string, value: string | null): string | null {
  const row = Object.hasOwn(VARIABLE_FLAGS, name) ? VARIABLE_FLAGS[name]! : null;
  if (row === null || row[0] !== engine) return null;
  if (value !== null) return `--${row[1]}=${value}`;
  return isSecretName(row[1]) ? `--${row[1]}=${SECRET}` : null;
}
