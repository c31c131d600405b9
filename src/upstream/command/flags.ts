/** Flags of a command by their canonical names, in every spelling. */
import type { EngineName } from '../reading.js';
import { keepable } from '../shapes.js';
import type { Word } from './words.js';

export interface GivenFlag {
  /** Canonical, without dashes in front. */
  readonly name: string;
  /** `true` for a switch; several values are parted by blanks; null: computed where it runs. */
  readonly value: string | null;
  readonly line?: number;
}

export interface GivenFlags {
  readonly flags: readonly GivenFlag[];
  /** Words that are no flags, in front of the first or alone: a model's name. */
  readonly loose: readonly string[];
  /** False: a word such as `$ARGS`, or a file of flags, may hold more. */
  readonly complete: boolean;
}

type Aliases = Readonly<Record<string, string>>;

const SGLANG: Aliases = {
  model: 'model-path',
  'tensor-parallel-size': 'tp-size',
  tp: 'tp-size',
  'data-parallel-size': 'dp-size',
  dp: 'dp-size',
  'pipeline-parallel-size': 'pp-size',
  'decode-context-parallel-size': 'dcp-size',
  'expert-parallel-size': 'ep-size',
  ep: 'ep-size',
  'nccl-init-addr': 'dist-init-addr',
  'enable-hicache': 'enable-hierarchical-cache',
  'attention-data-parallel-size': 'attn-dp-size',
};

const VLLM: Aliases = {
  tp: 'tensor-parallel-size',
  pp: 'pipeline-parallel-size',
  dp: 'data-parallel-size',
  dcp: 'decode-context-parallel-size',
  q: 'quantization',
  'model-tag': 'model',
};

const LLAMA: Aliases = {
  c: 'ctx-size',
  np: 'parallel',
  'n-parallel': 'parallel',
  kvu: 'kv-unified',
  m: 'model',
  a: 'alias',
  cram: 'cache-ram',
  sps: 'slot-prompt-similarity',
  ctxcp: 'ctx-checkpoints',
  'kv-unified-per-slot': 'kv-unified-per-slot',
  'no-kvu': 'no-kv-unified',
};

const ALIASES: Readonly<Partial<Record<EngineName, Aliases>>> = { sglang: SGLANG, vllm: VLLM, llamacpp: LLAMA };

/** Flags that read more flags from elsewhere. */
const FROM_ELSEWHERE: ReadonlySet<string> = new Set([
  'config',
  'flagfile',
  'config-file',
  'args-file',
  'models-preset',
]);

/** `no-x` of a switch becomes `x` = false; names that really begin with `no-` are few and are kept. */
const REALLY_NO = /^no-(?:stop-trim|mmap|warmup|webui|host|repack|op-offload)$/;

export function canonicalName(engine: EngineName, raw: string): { readonly name: string; readonly negated: boolean } {
  const dashed = raw.replaceAll('_', '-');
  const negated = dashed.startsWith('no-') && !REALLY_NO.test(dashed);
  const plain = negated ? dashed.slice(3) : dashed;
  const aliases = ALIASES[engine];
  const name = aliases !== undefined && Object.hasOwn(aliases, plain) ? aliases[plain]! : plain;
  return { name, negated };
}

/** Switches by their first word: what stands behind is a value only when it says yes or no. */
const SWITCH =
  /^(?:enable|disable|trust|skip|allow|enforce|use|return|no)-|^disaggregation-(?:decode-)?enable-|^(?:log-requests|mini-lb|pd-disaggregation|vllm-pd-disaggregation|kv-unified|async-scheduling)$/;
const NO_SWITCH = /^(?:return-hidden-states-mode|return-aux-hidden-state-layer-ids)$/;
const YES_NO = /^(?:true|false|0|1|yes|no|on|off)$/i;

function takesValues(name: string, next: Word | undefined): boolean {
  return !SWITCH.test(name) || NO_SWITCH.test(name) || (next !== undefined && YES_NO.test(next.text));
}

/** `--name`, `--name=value`, `-n`; Go programs write `-name` too. A negative number is a value. */
const FLAG = /^--?([A-Za-z][\w.-]{0,100})(?:=([\s\S]*))?$/;

export function parseFlags(engine: EngineName, words: readonly Word[]): GivenFlags {
  const flags: GivenFlag[] = [];
  const loose: string[] = [];
  let complete = true;
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    const match = FLAG.exec(word.text);
    if (match === null) {
      if (word.computed) complete = false;
      else if (!/^\d*>/.test(word.text)) loose.push(word.text);
      continue;
    }
    const { name, negated } = canonicalName(engine, match[1]!);
    if (FROM_ELSEWHERE.has(name)) complete = false;
    const values: Word[] = [];
    while (match[2] === undefined && words[at + 1] !== undefined && takesMore(name, words[at + 1]!)) {
      at++;
      // One that is computed behind a value may be flags of its own.
      if (values.length > 0 && words[at]!.computed) complete = false;
      else values.push(words[at]!);
      if (engine !== 'sglang' && engine !== 'vllm') break;
    }
    const computed = match[2] === undefined ? values.some((value) => value.computed) : word.computed;
    const text = match[2] ?? (values.length === 0 ? 'true' : values.map((value) => value.text).join(' '));
    const value = negated && text === 'true' ? 'false' : text;
    flags.push({
      name,
      value: computed ? computedValue(name, value) : keepable(name, value),
      ...(word.line === undefined ? {} : { line: word.line }),
    });
  }
  return { flags: inOrder(flags), loose, complete };
}

/** A key that is computed is still a key that is set. */
function computedValue(name: string, value: string): string | null {
  const kept = keepable(name, value);
  return kept === value ? null : kept;
}

function takesMore(name: string, next: Word): boolean {
  return !isFlag(next) && takesValues(name, next);
}

function isFlag(word: Word): boolean {
  return FLAG.test(word.text) && !/^-\d/.test(word.text);
}

/** Where a flag comes twice the last one counts; names with a point are parts of one JSON value. */
function inOrder(flags: readonly GivenFlag[]): GivenFlag[] {
  const last = new Map<string, GivenFlag>();
  for (const flag of flags) last.set(flag.name, flag);
  return [...last.values()];
}
