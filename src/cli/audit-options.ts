/** From the flags of `cofferdam audit` to options; pure. */
import type { OriginHeaders } from '../audit/gather/live.js';
import type { ToldPool } from '../audit/gather/person.js';
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { parseCount } from '../base/units.js';
import { isSeverity, SEVERITIES } from '../findings/finding.js';
import { type OutputTarget, parseOutputs } from '../findings/outputs.js';
import type { FailOn } from '../findings/report.js';
import type { AuditFlags } from './flags.js';

export const REQUIRED_DEFAULT: readonly string[] = ['capacity', 'version', 'rejection'];
/** A start-up gate that waits longer is stuck. */
export const WAIT_MS_MAX: number = 24 * 3600 * 1000;
/** Nodes of one run. */
export const TARGETS_MAX = 5000;

export interface AuditVerbOptions {
  readonly targets: readonly string[];
  readonly commands: readonly string[];
  readonly pools: readonly ToldPool[];
  readonly advertised: number | null;
  readonly headers: OriginHeaders;
  readonly waitMs: number;
  readonly baseline: string | null;
  /** Null: the usual file, if it is there. */
  readonly waivers: string | null;
  readonly convert: string | null;
  readonly failOn: FailOn;
  readonly required: readonly string[];
  /** Whether `--fail-on` or `--require` was given: then a converted report is judged by them. */
  readonly judged: boolean;
  readonly outputs: readonly OutputTarget[];
}

type Variables = Readonly<Record<string, string | undefined>>;

function wrong(flag: string, wanted: string, got: unknown): CodedError {
  return new CodedError('usage', `Expected \`${flag}\` to be ${wanted}, got ${shown(got)}`);
}

/** Throws CodedError `usage`. No message holds a key. */
export function parseAuditOptions(
  targets: readonly string[],
  flags: AuditFlags,
  variables: Variables,
): AuditVerbOptions {
  const commands = flags.command ?? [];
  const convert = flags.convert ?? null;
  if (targets.length + commands.length === 0 && convert === null) {
    throw new CodedError('usage', 'Expected a TARGET (a URL, a file or a folder) or `--command`, got none');
  }
  if (convert !== null && targets.length + commands.length > 0) {
    throw new CodedError('usage', 'Expected TARGETs or `--convert`, got both');
  }
  if (targets.length > TARGETS_MAX) throw wrong('TARGET', `at most ${TARGETS_MAX} of them`, targets.length);
  const origins = [...new Set(targets.flatMap(originOf))];
  return {
    targets,
    commands,
    pools: (flags.pool ?? []).map(parsePool),
    advertised: flags.advertised === undefined ? null : tokens('--advertised', flags.advertised),
    headers: parseHeaders(flags, origins, variables),
    waitMs: flags.wait === undefined ? 0 : parseDuration('--wait', flags.wait),
    baseline: flags.baseline ?? null,
    waivers: flags.waivers ?? null,
    convert,
    failOn: parseFailOn(flags.failOn),
    required: parseRequired(flags.require),
    judged: flags.failOn !== undefined || flags.require !== undefined,
    outputs: parseOutputs(flags.output ?? []),
  };
}

function originOf(target: string): string[] {
  if (!/^https?:\/\//i.test(target)) return [];
  // The address is not shown: a key may stand in it.
  if (!URL.canParse(target))
    throw new CodedError('usage', 'Expected a TARGET to be a URL, got one that cannot be read');
  const url = new URL(target);
  if (url.username !== '' || url.password !== '') {
    throw new CodedError('usage', `Expected no user or password in the URL of ${shown(url.host)}; use \`--header\``);
  }
  return [url.origin];
}

function tokens(flag: string, text: string): number {
  const value = parseCount(text);
  if (value === null || value < 1) throw wrong(flag, 'a whole number of tokens from 1 up', text);
  return value;
}

function parsePool(text: string): ToldPool {
  const at = text.lastIndexOf('=');
  if (at <= 0) throw wrong('--pool', '`ROLE=TOKENS`, such as `prefill=681280`', text);
  return { node: text.slice(0, at), tokens: tokens('--pool', text.slice(at + 1)) };
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

function parseDuration(flag: string, text: string): number {
  const match = /^(\d{1,9})(ms|s|m|h)$/.exec(text);
  const ms = match === null ? Number.NaN : Number(match[1]) * UNITS[match[2]!]!;
  if (!(ms >= 0 && ms <= WAIT_MS_MAX)) throw wrong(flag, 'a time such as `30s` or `10m`, at most 24h', text);
  return ms;
}

function parseFailOn(text: string | undefined): FailOn {
  if (text === undefined) return 'high';
  if (text === 'none' || isSeverity(text)) return text;
  throw wrong('--fail-on', [...SEVERITIES, 'none'].join(', '), text);
}

function parseRequired(texts: readonly string[] | undefined): readonly string[] {
  if (texts === undefined) return REQUIRED_DEFAULT;
  const names = [...new Set(texts.flatMap((text) => text.split(',')).map((name) => name.trim()))];
  for (const name of names) {
    if (!/^[a-z][a-z0-9-]{0,60}(?:\.[a-z0-9-]{1,100})?$/.test(name))
      throw wrong('--require', 'groups or ids of rules', name);
  }
  if (names.includes('none')) {
    if (names.length > 1) throw wrong('--require', '`none` or names, not both', names.join(','));
    return [];
  }
  return names;
}

function parseHeaders(flags: AuditFlags, origins: readonly string[], variables: Variables): OriginHeaders {
  const headers = new Map<string, Record<string, string>>();
  const give = (flag: string, text: string, add: (rest: string) => readonly [string, string]): void => {
    const [only, rest] = scoped(flag, text, origins);
    const [name, value] = add(rest);
    for (const origin of only) headers.set(origin, { ...headers.get(origin), [name.toLowerCase()]: value });
  };
  for (const text of flags.apiKeyEnv ?? []) {
    give('--api-key-env', text, (name) => ['authorization', `Bearer ${variable(name, variables)}`]);
  }
  for (const text of flags.header ?? []) give('--header', text, parseHeader);
  return headers;
}

/** `http://host:port=REST` is for that origin alone; without one it is for every URL of this command line. */
function scoped(flag: string, text: string, origins: readonly string[]): readonly [readonly string[], string] {
  const match = /^(https?:\/\/[^\s=/]{1,300})\/?=([\s\S]*)$/i.exec(text);
  if (match === null) {
    if (origins.length === 0) throw new CodedError('usage', `Expected a URL as TARGET with \`${flag}\`, got none`);
    return [origins, text];
  }
  const origin = URL.canParse(match[1]!) ? new URL(match[1]!).origin : '';
  if (!origins.includes(origin)) throw wrong(flag, 'for the origin of one of the TARGETs', match[1]);
  return [[origin], match[2]!];
}

function variable(name: string, variables: Variables): string {
  const value = Object.hasOwn(variables, name) ? variables[name] : undefined;
  if (!/^[A-Za-z_]\w{0,200}$/.test(name)) {
    throw new CodedError('usage', 'Expected `--api-key-env` to name a variable, got something else');
  }
  if (value === undefined || value === '') {
    // Who gives the key itself instead of a variable's name does not see it again in a log.
    const got = /^[A-Z_][A-Z\d_]*$/.test(name) ? shown(name) : 'something else';
    throw new CodedError('usage', `Expected \`--api-key-env\` to name a variable that is set, got ${got}`);
  }
  if (/[\r\n\0]/.test(value)) throw new CodedError('usage', `Expected the key in ${shown(name)} to be one line`);
  return value.trim();
}

function parseHeader(text: string): readonly [string, string] {
  const match = /^([A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}):[ \t]*([^\r\n\0]{0,8000})$/.exec(text);
  if (match === null) throw new CodedError('usage', 'Expected `--header` to be `NAME: VALUE`, got something else');
  if (/^(?:host|content-length|transfer-encoding|connection|expect)$/i.test(match[1]!)) {
    throw wrong('--header', 'none of the headers that belong to the connection', match[1]);
  }
  return [match[1]!, match[2]!];
}
