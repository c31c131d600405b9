/** From the flags of `cofferdam verify --simulate` to what is asked. */
import { randomBytes } from 'node:crypto';
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { type FaultName, FAULTS, isFaultName } from '../handoff/faults.js';
import { isTrouble, REQUESTS_DEFAULT, STEPS_DEFAULT, type Trouble, TROUBLES } from '../sim/plan.js';
import type { VerifyFlags } from './flags.js';

export interface SimulateOptions {
  readonly seed: number;
  readonly steps: number;
  readonly requests: number;
  /** Null: the one world of the seed. */
  readonly durationMs: number | null;
  readonly fault: FaultName | null;
  /** Null: both sides of a fault, every guard without one. */
  readonly guards: 'on' | 'off' | null;
  readonly without: readonly Trouble[];
  readonly output: 'table' | 'json' | 'trace';
}

const SEED_MAX = 2 ** 32 - 1;
const STEPS_MAX = 100_000_000;
const REQUESTS_MAX = 1_000_000;
const DURATION_MS_DEFAULT = 10_000;
const DURATION_MS_MAX = 24 * 3_600_000;
const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

const wrong = (flag: string, wanted: string, got: unknown): CodedError =>
  new CodedError('usage', `Expected \`${flag}\` to be ${wanted}, got ${shown(got)}`);

/** Throws CodedError `usage`. A seed that is not given is drawn; it is printed with the result. */
export function parseSimulateOptions(flags: VerifyFlags): SimulateOptions {
  const { fault, guards, output } = flags;
  for (const [flag, value] of Object.entries({
    '--scope': flags.scope,
    '--all-faults': flags.allFaults,
    '--trace': flags.trace,
    '--trace-out': flags.traceOut,
    '--symmetry': flags.symmetry,
    '--memory': flags.memory,
  })) {
    if (value !== undefined) throw new CodedError('usage', `Expected \`--simulate\` without \`${flag}\`, got both`);
  }
  if (fault !== undefined && !isFaultName(fault)) throw wrong('--fault', `one of ${FAULTS.join(', ')}`, fault);
  if (guards !== undefined && guards !== 'on' && guards !== 'off') throw wrong('--guards', '`on` or `off`', guards);
  if (output !== undefined && output !== 'table' && output !== 'json' && output !== 'trace') {
    throw wrong('--output', '`table`, `json` or `trace`', output);
  }
  if (output === 'trace' && (flags.seed === undefined || flags.duration !== undefined)) {
    throw new CodedError(
      'usage',
      'Expected `--output trace` with `--seed` and without `--duration`: it is that of one world',
    );
  }
  if (output === 'trace' && fault !== undefined && guards === undefined) {
    throw new CodedError('usage', 'Expected `--output trace` with `--guards on` or `off`, got both sides of a fault');
  }
  const isOne = flags.seed !== undefined && flags.duration === undefined;
  return {
    seed: flags.seed === undefined ? randomBytes(4).readUInt32BE() : whole('--seed', flags.seed, 0, SEED_MAX, 0),
    steps: whole('--steps', flags.steps, 1, STEPS_MAX, STEPS_DEFAULT),
    requests: whole('--requests', flags.requests, 1, REQUESTS_MAX, REQUESTS_DEFAULT),
    durationMs: isOne ? null : durationMs(flags.duration),
    fault: fault ?? null,
    guards: guards ?? null,
    without: troubles(flags.without),
    output: output ?? 'table',
  };
}

/** Refused where they mean nothing. */
export function refuseSimulateFlags(flags: VerifyFlags): void {
  for (const [flag, value] of Object.entries({
    '--seed': flags.seed,
    '--steps': flags.steps,
    '--requests': flags.requests,
    '--duration': flags.duration,
    '--without': flags.without,
  })) {
    if (value !== undefined) throw new CodedError('usage', `Expected \`${flag}\` with \`--simulate\`, got it without`);
  }
}

function whole(flag: string, text: string | undefined, least: number, most: number, otherwise: number): number {
  if (text === undefined) return otherwise;
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw wrong(flag, `a whole number from ${least} to ${most}`, text);
}

function durationMs(text: string | undefined): number {
  if (text === undefined) return DURATION_MS_DEFAULT;
  const match = /^(\d{1,9})(ms|s|m|h)$/.exec(text);
  const value = match === null ? Number.NaN : Number(match[1]) * (UNITS_MS[match[2] ?? ''] ?? Number.NaN);
  if (value >= 1 && value <= DURATION_MS_MAX) return value;
  throw wrong('--duration', 'a time from 1ms to 24h, such as 30s or 5m', text);
}

function troubles(text: string | undefined): Trouble[] {
  if (text === undefined) return [];
  return text.split(',').map((name) => {
    if (!isTrouble(name)) throw wrong('--without', `some of ${TROUBLES.join(', ')}, with commas between them`, name);
    return name;
  });
}
