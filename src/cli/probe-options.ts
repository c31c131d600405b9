/** From the flags of `cofferdam probe` to options; no message holds a key. */
import { randomInt } from 'node:crypto';
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { parseCount } from '../base/units.js';
import { isLoopback } from '../base/loopback.js';
import { type OutputTarget, parseOutputs } from '../findings/outputs.js';
import type { BudgetLimits } from '../probe/budget.js';
import { EXPERIMENTS } from '../probe/registry.js';
import { PROBE_ROUTES, type ProbeRoute, type ProbeTarget, type ProbeTenant } from '../probe/target.js';
import type { ProbeFlags } from './probe-flags.js';

export interface ProbeVerbOptions {
  readonly target: ProbeTarget;
  readonly engines: readonly string[];
  readonly advertised: number | null;
  /** Names of experiments, in the order of the registry. */
  readonly only: readonly string[];
  readonly limits: BudgetLimits;
  /** What a million tokens cost; null: not said. */
  readonly price: number | null;
  readonly bound: number;
  readonly seed: number;
  readonly keepText: boolean;
  readonly allowDestructive: boolean;
  readonly record: string | null;
  readonly resume: string | null;
  readonly repro: string | null;
  readonly dryRun: boolean;
  readonly yes: boolean;
  /** Whether the target is on this machine: then nobody is asked. */
  readonly loopback: boolean;
  readonly outputs: readonly OutputTarget[];
}

const LIMITS_DEFAULT: BudgetLimits = { requests: 20_000, tokens: 5_000_000, together: 32, durationMs: 20 * 60_000 };
const BOUND_DEFAULT = 0.05;
const TENANTS_MAX = 16;
const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 };

type Variables = Readonly<Record<string, string | undefined>>;

const usage = (message: string): CodedError => new CodedError('usage', message);

export function parseProbeOptions(url: string | null, flags: ProbeFlags, variables: Variables): ProbeVerbOptions {
  const origin = parseOrigin(url);
  return {
    target: {
      origin,
      tenants: parseTenants(flags.tenant ?? [], variables),
      model: flags.model ?? refuse('Expected `--model` to name the model that is asked, got nothing.'),
      route: parseRoute(flags.route),
    },
    engines: flags.engine ?? [],
    advertised: flags.advertised === undefined ? null : count('--advertised', flags.advertised),
    only: parseOnly(flags.only),
    limits: {
      requests:
        flags.budgetRequests === undefined ? LIMITS_DEFAULT.requests : count('--budget-requests', flags.budgetRequests),
      tokens: flags.budgetTokens === undefined ? LIMITS_DEFAULT.tokens : count('--budget-tokens', flags.budgetTokens),
      together: flags.together === undefined ? LIMITS_DEFAULT.together : count('--together', flags.together),
      durationMs: flags.maxDuration === undefined ? LIMITS_DEFAULT.durationMs : duration(flags.maxDuration),
    },
    price: flags.price === undefined ? null : share('--price', flags.price, Number.MAX_VALUE),
    bound: flags.bound === undefined ? BOUND_DEFAULT : share('--bound', flags.bound, 1),
    seed: flags.seed === undefined ? randomInt(2 ** 31) : count('--seed', flags.seed, 0),
    keepText: flags.keepText === true,
    allowDestructive: flags.allowDestructive === true,
    record: flags.record ?? null,
    resume: flags.resume ?? null,
    repro: flags.repro ?? null,
    dryRun: flags.dryRun === true,
    yes: flags.yes === true,
    loopback: isLoopback(origin.hostname),
    outputs: parseProbeOutputs(flags.output),
  };
}

/** The formats of a report; the lines of the run are the record itself. Throws CodedError `usage`. */
export function parseProbeOutputs(texts: readonly string[] | undefined): readonly OutputTarget[] {
  const outputs = parseOutputs(texts ?? []);
  if (outputs.some(({ format }) => format === 'jsonl'))
    throw usage(
      'Expected `--output` to be table, json, html, junit or sarif, got `jsonl`; `--record` names that file.',
    );
  return outputs;
}

function refuse(message: string): never {
  throw usage(message);
}

function parseOrigin(text: string | null): URL {
  if (text === null) throw usage('Expected the URL of the endpoint, got nothing.');
  if (!URL.canParse(text)) throw usage('Expected the URL of the endpoint, got one that cannot be read.');
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw usage(`Expected an http or https URL, got ${shown(url.protocol)}`);
  if (url.username !== '' || url.password !== '')
    throw usage('Expected no user or password in the URL; give keys with `--tenant`.');
  url.pathname = url.pathname.replace(/\/(v1\/?)?$/, '');
  url.search = '';
  url.hash = '';
  return url;
}

function parseTenants(texts: readonly string[], variables: Variables): ProbeTenant[] {
  if (texts.length === 0)
    throw usage('Expected `--tenant NAME=env:VAR` at least once, two or more to compare, got none.');
  if (texts.length > TENANTS_MAX)
    throw usage(`Expected at most ${TENANTS_MAX} times \`--tenant\`, got ${texts.length}.`);
  const tenants: ProbeTenant[] = [];
  for (const text of texts) {
    const at = text.indexOf('=');
    // What has no `=` may be a key: it is not shown.
    if (at < 0) throw usage('Expected `--tenant` to be NAME=env:VAR or NAME=none, got a value without `=`.');
    const name = text.slice(0, at);
    if (!/^[a-z0-9][a-z0-9_-]{0,62}$/.test(name))
      throw usage(`Expected the NAME in \`--tenant\` to be 1 to 63 of a-z, 0-9, \`-\` and \`_\`, got ${shown(name)}`);
    if (tenants.some((other) => other.name === name)) throw usage(`Expected each tenant once, got \`${name}\` twice.`);
    const key = parseKey(name, text.slice(at + 1), variables);
    const same = key === null ? undefined : tenants.find((other) => other.key === key);
    if (same !== undefined)
      throw usage(`Expected each tenant to have a key of its own, got one key for \`${same.name}\` and \`${name}\`.`);
    tenants.push({ name, key });
  }
  return tenants;
}

function parseKey(name: string, text: string, variables: Variables): string | null {
  if (text === 'none') return null;
  if (!/^env:[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(text)) {
    throw usage(
      `Expected the key of \`--tenant ${name}\` as \`env:VAR\` or \`none\`, got something else; a key on the command line can be seen by others.`,
    );
  }
  const variable = text.slice('env:'.length);
  const value = variables[variable] ?? '';
  if (value === '') throw usage(`Expected the variable \`${variable}\` to hold the key of \`${name}\`, got nothing.`);
  if (!/^[\x21-\x7e]{1,4096}$/.test(value))
    throw usage(
      `Expected the variable \`${variable}\` to hold a key of printable ASCII, got ${value.length} characters.`,
    );
  return value;
}

function parseRoute(text: string | undefined): ProbeRoute {
  const route = PROBE_ROUTES.find((each) => each === (text ?? 'completions'));
  return route ?? refuse(`Expected \`--route\` to be ${PROBE_ROUTES.join(' or ')}, got ${shown(text)}`);
}

function parseOnly(text: string | undefined): readonly string[] {
  const known = EXPERIMENTS.map(({ name }) => name);
  if (text === undefined) return EXPERIMENTS.filter(({ required }) => required).map(({ name }) => name);
  const names = text.split(',').map((name) => name.trim());
  for (const name of names)
    if (!known.includes(name))
      throw usage(`Expected \`--only\` to name experiments (${known.join(', ')}), got ${shown(name)}`);
  return known.filter((name) => names.includes(name));
}

function count(flag: string, text: string, least: number = 1): number {
  const value = parseCount(text);
  if (value === null || value < least)
    throw usage(`Expected \`${flag}\` to be a whole number from ${least} up, got ${shown(text)}`);
  return value;
}

function share(flag: string, text: string, most: number): number {
  const value = Number(text);
  if (!(value > 0 && value <= most) || text.trim() === '')
    throw usage(`Expected \`${flag}\` to be a number above 0${most === 1 ? ', at most 1' : ''}, got ${shown(text)}`);
  return value;
}

function duration(text: string): number {
  const match = /^(\d{1,6})(s|m|h)$/.exec(text);
  const ms = match === null ? 0 : Number(match[1]) * UNITS[match[2]!]!;
  if (ms <= 0) throw usage(`Expected \`--max-duration\` to be a time such as \`90s\` or \`20m\`, got ${shown(text)}`);
  return ms;
}
