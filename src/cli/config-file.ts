/** A configuration file: read, checked, and laid out as the options that flags would have set. All that is wrong with it comes at once. */
import { isLoopback } from '../base/loopback.js';
import { checkTree } from '../config/check.js';
import { readSmallFile } from '../config/file.js';
import { type Mistake, mistakeLines, type Place } from '../config/mistake.js';
import { flagProperty, flagValue, type Leaf, leavesOf } from '../config/settings.js';
import { FILE_BYTES_MAX, readTree } from '../config/tree.js';
import { findEngines, type FoundEngines } from './config-engines.js';
import { findKeys } from './config-keys.js';
import { type FileValues, SERVE_SHAPE } from './config-shape.js';
import * as defaults from './defaults.js';
import type { ServeFlags } from './flags.js';
import type { KeyOption, TenantOption } from './keys.js';

/** What a file without mistakes says. */
export interface ConfigFile {
  /** As the user wrote it. */
  readonly path: string;
  readonly leaves: readonly Leaf[];
  /** As if flags had said it, without keys. */
  readonly flags: ServeFlags;
  readonly tenants: readonly TenantOption[];
  readonly opsKey: KeyOption | null;
  /** Empty: the embedded engine. */
  readonly upstreams: FoundEngines['upstreams'];
  readonly running: FoundEngines['running'];
  /** Files with keys, absolute. */
  readonly keyFiles: readonly string[];
}

export interface ConfigWorld {
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** The flags of the command line, which override the file. */
  readonly flags: ServeFlags;
}

/** Lines that say what is wrong, and the place of the first. */
export interface Refused {
  readonly lines: readonly string[];
  readonly line: number;
  /** Files with keys that it names: any of them may be what was wrong. */
  readonly keyFiles: readonly string[];
}

export function loadConfig(path: string, world: ConfigWorld): ConfigFile | Refused {
  const bytes = readSmallFile(path, FILE_BYTES_MAX);
  if (typeof bytes === 'string') {
    const change = 'Name another one with `--config`, or write one: `cofferdam init`.';
    const expected = `a file of at most ${FILE_BYTES_MAX} bytes`;
    return refusal(path, [{ at: { line: 1, column: 1 }, expected, came: bytes, change }]);
  }
  const { tree, mistakes } = readTree(bytes);
  if (tree === null) return refusal(path, mistakes);
  const checked = checkTree(tree, SERVE_SHAPE);
  const values = checked.value as FileValues;
  const keys = findKeys(values, checked.places, { ...world, path });
  const engines = findEngines(values, checked.places, { ...world, path });
  const keyFiles = [...keys.files, ...engines.files];
  const between = betweenFields(values, checked.places, overridden(world.flags));
  const all = [...checked.mistakes, ...keys.mistakes, ...engines.mistakes, ...between];
  if (all.length > 0) return refusal(path, all, keyFiles);
  const leaves = leavesOf(SERVE_SHAPE, checked.value);
  const { tenants, opsKey } = keys;
  const { upstreams, running } = engines;
  return { path, leaves, flags: flagsOf(leaves), tenants, opsKey, upstreams, running, keyFiles };
}

function refusal(path: string, mistakes: readonly Mistake[], keyFiles: readonly string[] = []): Refused {
  const line = Math.min(...mistakes.map(({ at }) => at.line));
  return { lines: mistakeLines(path, mistakes), line, keyFiles };
}

/** Tells whether a flag was given. `--no-prefix-cache` makes `false`; without it the parser says `true` by itself. */
export function overridden(flags: ServeFlags): (flag: string) => boolean {
  const given = flags as Readonly<Record<string, unknown>>;
  return (flag) => {
    const value = given[flagProperty(flag)];
    return flag.startsWith('--no-') ? value === false : value !== undefined;
  };
}

/** Flags whose fields are no texts that a flag could have given. */
const APART: readonly string[] = [
  '--tenant',
  '--ops-key',
  '--engine-key',
  '--tokenizer',
  '--upstream-limit',
  '--upstream-ca',
  '--wait',
  '--workers',
  '--secret',
  '--usage',
  '--tls-cert',
  '--tls-key',
];

function flagsOf(leaves: readonly Leaf[]): ServeFlags {
  const flags: Record<string, unknown> = {};
  for (const { field, given, value } of leaves) {
    if (field.flag === undefined || !given || value === undefined || APART.includes(field.flag)) continue;
    flags[flagProperty(field.flag)] = flagValue(value);
  }
  return flags;
}

type IsOverridden = (flag: string) => boolean;

/** What fits alone and not together. Where a flag overrides one side, the options as a whole are checked as those of flags are. */
function betweenFields(values: FileValues, places: ReadonlyMap<string, Place>, isOverridden: IsOverridden): Mistake[] {
  const mistakes: Mistake[] = [];
  const wrong = (paths: readonly string[], expected: string, came: string, change: string): void => {
    const path = paths.find((each) => places.has(each)) ?? '';
    mistakes.push({ at: places.get(path) ?? { line: 1, column: 1 }, expected, came, change });
  };
  // What is there and undefined was wrong by itself, and that is said already.
  const holds = <T>(path: string, value: T | undefined, fallback: T): T | null =>
    value ?? (places.has(path) ? null : fallback);
  const port = holds('listen.port', values.listen?.port, defaults.DEFAULT_PORT);
  const opsPort = holds('operators.port', values.operators?.port, defaults.DEFAULT_OPS_PORT);
  if (port !== null && port === opsPort && port !== 0 && !isOverridden('--port') && !isOverridden('--ops-port')) {
    const expected = '`operators.port` to be another port than `listen.port`';
    wrong(['operators.port', 'listen.port'], expected, `\`${port}\` for both`, 'Change one of them.');
  }
  const host = holds('listen.host', values.listen?.host, defaults.DEFAULT_HOST);
  if (host !== null && !isLoopback(host) && !isOverridden('--host')) {
    if (!places.has('operators.key') && !isOverridden('--ops-key')) {
      const expected = "`operators.key` when the operators' port is beyond loopback";
      wrong(['operators', 'listen.host'], expected, 'nothing', 'Name where the key is to be found: `env:NAME`.');
    }
    const off = values.guards?.mode === 'off' || (values.guards?.disabled ?? []).length > 0;
    if (off || (values.faults ?? []).length > 0) {
      const expected = '`listen.host` to be a loopback address with faults on or guards off';
      wrong(['listen.host'], expected, 'another', 'Take out `faults` and `guards`, or listen on 127.0.0.1.');
    }
  }
  if (!isOverridden('--page-size')) poolMistakes(values, isOverridden, wrong);
  return mistakes;
}

function poolMistakes(
  values: FileValues,
  isOverridden: IsOverridden,
  wrong: (paths: readonly string[], expected: string, came: string, change: string) => void,
): void {
  const upstream = values.upstreams?.[0];
  const page = upstream?.['page-size'] ?? defaults.DEFAULT_PAGE_TOKENS;
  for (const role of ['prefill', 'decode'] as const) {
    const pool = upstream?.[`${role}-pool`];
    if (pool === undefined || pool % page === 0 || isOverridden(`--${role}-pool`)) continue;
    const path = `upstreams[0].${role}-pool`;
    const nearest = Math.max(1, Math.round(pool / page)) * page;
    wrong(
      [path],
      `\`${path}\` to be a multiple of the page size of ${page} tokens`,
      `\`${pool}\``,
      `Write \`${nearest}\`.`,
    );
  }
}
