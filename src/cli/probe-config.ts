/** `probe --config FILE`: the options of the probe from YAML, as if flags had said them. Flags of the command line override it. */
import { checkTree } from '../config/check.js';
import { readSmallFile } from '../config/file.js';
import { mistakeLines } from '../config/mistake.js';
import type { Field, RecordShape, Shape } from '../config/shape.js';
import { FILE_BYTES_MAX, readTree, type Tree } from '../config/tree.js';
import { EXPERIMENTS } from '../probe/registry.js';
import { PROBE_ROUTES } from '../probe/target.js';
import type { ProbeFlags } from './probe-flags.js';

const COUNT_MAX = 2 ** 40;
const DAY_MS = 24 * 3_600_000;
const LIST_MAX = 16;
const ENGINES_MAX = 1000;

const file: Shape = { kind: 'text', pattern: '[^\\0]{1,4096}', words: 'a path' };
const count = (unit: string): Shape => ({ kind: 'count', min: 1, max: COUNT_MAX, suffixes: true, unit });
const number: Shape = { kind: 'text', pattern: '[0-9]{0,9}(?:\\.[0-9]{1,9})?', words: 'a number above 0' };
const list = (item: Shape, max: number): Shape => ({ kind: 'list', item, min: 1, max });
const record = (fields: readonly Field[]): RecordShape => ({ kind: 'record', fields });

const TENANT: RecordShape = record([
  {
    name: 'name',
    words: 'Its name',
    required: true,
    shape: { kind: 'text', pattern: '[a-z0-9][a-z0-9_-]{0,62}', words: '1 to 63 of a-z, 0-9, `-` and `_`' },
  },
  {
    name: 'key',
    words: 'Where its key is to be found',
    required: true,
    // Whoever writes the key itself here does not find it again in a message.
    shape: {
      kind: 'text',
      pattern: 'none|env:[A-Za-z_][A-Za-z0-9_]{0,127}',
      words: '`env:VAR` or `none`',
      hidden: true,
    },
  },
]);

const BUDGET: RecordShape = record([
  { name: 'tokens', words: 'Tokens of prompts and answers', shape: count('tokens') },
  { name: 'requests', words: 'Requests', shape: count('requests') },
  {
    name: 'together',
    words: 'Requests open at once',
    shape: { kind: 'count', min: 1, max: 65_536, suffixes: false, unit: 'requests' },
  },
  { name: 'duration', words: 'Time', shape: { kind: 'time', minMs: 1000, maxMs: DAY_MS } },
]);

export const PROBE_SHAPE: RecordShape = record([
  // A key may stand in a URL by mistake.
  {
    name: 'url',
    words: 'The endpoint',
    shape: { kind: 'text', pattern: 'https?://.{1,2000}', words: 'an http or https URL', hidden: true },
  },
  { name: 'tenants', words: 'Who sends', shape: list(TENANT, LIST_MAX) },
  {
    name: 'model',
    words: 'The model that is asked',
    shape: { kind: 'text', pattern: '.{1,256}', words: 'the name of a model' },
  },
  { name: 'route', words: 'The route', shape: { kind: 'choice', of: PROBE_ROUTES } },
  {
    name: 'engines',
    words: 'Engines behind it',
    shape: list(
      { kind: 'text', pattern: 'https?://.{1,2000}', words: 'an http or https URL', hidden: true },
      ENGINES_MAX,
    ),
  },
  { name: 'advertised', words: 'The context that clients are told', shape: count('tokens') },
  {
    name: 'only',
    words: 'These experiments',
    shape: list({ kind: 'choice', of: EXPERIMENTS.map(({ name }) => name) }, LIST_MAX),
  },
  { name: 'budget', words: 'What may be spent', shape: BUDGET },
  { name: 'price', words: 'What a million tokens cost', shape: number },
  { name: 'bound', words: 'The upper bound of the rate of leaks above which there is no power', shape: number },
  {
    name: 'seed',
    words: 'Where chance begins',
    shape: { kind: 'count', min: 0, max: 2 ** 31 - 1, suffixes: false, unit: '' },
  },
  { name: 'keep-text', words: 'Record prompts and answers', shape: { kind: 'switch' } },
  { name: 'allow-destructive', words: 'Try what could end or empty something', shape: { kind: 'switch' } },
  { name: 'yes', words: 'Do not ask', shape: { kind: 'switch' } },
  { name: 'record', words: 'The file of the run', shape: file },
  { name: 'repro', words: 'The script that replays a hit', shape: file },
  {
    name: 'outputs',
    words: 'Reports, as `--output` has them',
    shape: list({ kind: 'text', pattern: '[a-z]{1,10}(?:=.{1,4096})?', words: '`FORMAT` or `FORMAT=FILE`' }, LIST_MAX),
  },
]);

interface FileValues {
  readonly url?: string;
  readonly tenants?: readonly { readonly name: string; readonly key: string }[];
  readonly model?: string;
  readonly route?: string;
  readonly engines?: readonly string[];
  readonly advertised?: number;
  readonly only?: readonly string[];
  readonly budget?: {
    readonly tokens?: number;
    readonly requests?: number;
    readonly together?: number;
    readonly duration?: number;
  };
  readonly price?: string;
  readonly bound?: string;
  readonly seed?: number;
  readonly 'keep-text'?: boolean;
  readonly 'allow-destructive'?: boolean;
  readonly yes?: boolean;
  readonly record?: string;
  readonly repro?: string;
  readonly outputs?: readonly string[];
}

export interface GivenProbe {
  readonly url: string | null;
  readonly flags: ProbeFlags;
}

/** Or every mistake of the file, one a line, each with line and column. */
export function withProbeConfig(url: string | null, flags: ProbeFlags): GivenProbe | readonly string[] {
  if (flags.config === undefined) return { url, flags };
  const values = read(flags.config);
  if (isLines(values)) return values;
  return { url: url ?? values.url ?? null, flags: { ...flagsOf(values), ...flags } };
}

const isLines = (read: FileValues | readonly string[]): read is readonly string[] => Array.isArray(read);

function read(path: string): FileValues | readonly string[] {
  const bytes = readSmallFile(path, FILE_BYTES_MAX);
  if (typeof bytes === 'string') {
    const expected = `a file of at most ${FILE_BYTES_MAX} bytes`;
    return mistakeLines(path, [
      { at: { line: 1, column: 1 }, expected, came: bytes, change: 'Name another with `--config`.' },
    ]);
  }
  const { tree, mistakes } = readTree(bytes);
  if (tree === null) return mistakeLines(path, mistakes);
  const checked = checkTree(withNumbersAsText(tree), PROBE_SHAPE);
  if (checked.mistakes.length > 0) return mistakeLines(path, checked.mistakes);
  return checked.value as FileValues;
}

/** `price: 0.15` and `price: "0.15"` are the same: fractions are read as flags are. */
function withNumbersAsText(tree: Tree): Tree {
  if (tree.kind !== 'record') return tree;
  const entries = tree.entries.map((entry) => {
    const { name, value } = entry;
    if (!['price', 'bound'].includes(name) || value.kind !== 'scalar' || typeof value.value !== 'number') return entry;
    return { ...entry, value: { ...value, value: String(value.value) } };
  });
  return { ...tree, entries };
}

function flagsOf(values: FileValues): ProbeFlags {
  const { budget = {} } = values;
  const text = (value: number | undefined): string | undefined => (value === undefined ? undefined : String(value));
  const all: Record<keyof ProbeFlags, unknown> = {
    tenant: values.tenants?.map(({ name, key }) => `${name}=${key}`),
    model: values.model,
    route: values.route,
    engine: values.engines,
    advertised: text(values.advertised),
    only: values.only?.join(','),
    budgetTokens: text(budget.tokens),
    budgetRequests: text(budget.requests),
    together: text(budget.together),
    maxDuration: budget.duration === undefined ? undefined : `${Math.ceil(budget.duration / 1000)}s`,
    price: values.price,
    bound: values.bound,
    seed: text(values.seed),
    keepText: values['keep-text'],
    allowDestructive: values['allow-destructive'],
    yes: values.yes,
    record: values.record,
    repro: values.repro,
    output: values.outputs,
    resume: undefined,
    convert: undefined,
    config: undefined,
    dryRun: undefined,
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as ProbeFlags;
}
