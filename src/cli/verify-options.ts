/** From the flags of `cofferdam verify` to what is asked. */
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { parseCount } from '../base/units.js';
import { type FaultName, FAULTS, isFaultName } from '../handoff/faults.js';
import { isScopeName, SCOPE_NAMES, type ScopeName } from '../verify/scopes.js';
import type { VerifyFlags } from './flags.js';
import { refuseSimulateFlags } from './simulate-options.js';

export interface VerifyOptions {
  readonly what:
    | { readonly kind: 'scope' }
    | { readonly kind: 'fault'; readonly fault: FaultName }
    | { readonly kind: 'allFaults' }
    | { readonly kind: 'trace'; readonly path: string };
  /** Null: not said; then the default, or each fault's own. */
  readonly scope: ScopeName | null;
  /** Null: both sides of a fault. */
  readonly guards: 'on' | 'off' | null;
  /** All stores of all threads together; null: the default. */
  readonly memoryBytesMax: number | null;
  readonly symmetry: boolean;
  /** Where a fault's counterexample goes; null: nowhere. */
  readonly traceOut: string | null;
  readonly isJson: boolean;
  /** A page instead of a report, and the file it goes to (null: standard output); null: no page. */
  readonly page: { readonly path: string | null } | null;
}

const wrong = (flag: string, wanted: string, got: unknown): CodedError =>
  new CodedError('usage', `Expected \`${flag}\` to be ${wanted}, got ${shown(got)}`);

/** A run with less than this cannot even begin. It says "incomplete", as any run does that meets its bound. */
const MEMORY_BYTES_MIN = 1 << 20;
const MEMORY_BYTES_MAX = 64 * 2 ** 30;

export function parseVerifyOptions(flags: VerifyFlags): VerifyOptions {
  refuseSimulateFlags(flags);
  const { scope, guards, output } = flags;
  if (scope !== undefined && !isScopeName(scope)) throw wrong('--scope', `one of ${SCOPE_NAMES.join(', ')}`, scope);
  if (guards !== undefined && guards !== 'on' && guards !== 'off') throw wrong('--guards', '`on` or `off`', guards);
  const page = parsePage(output);
  if (output !== undefined && output !== 'table' && output !== 'json' && page === null) {
    throw wrong('--output', '`table`, `json`, `html` or `html=FILE`', output);
  }
  const what = parseWhat(flags);
  if (page !== null && what.kind !== 'fault' && what.kind !== 'scope') {
    throw new CodedError('usage', 'Expected `--output html` with `--fault` or a scope alone, got it with another');
  }
  if (page !== null && what.kind === 'fault' && guards !== undefined) {
    throw new CodedError('usage', 'Expected a page of both sides of a fault, got `--guards`; the page lets one choose');
  }
  if (guards !== undefined && what.kind !== 'fault' && what.kind !== 'scope') {
    throw new CodedError('usage', 'Expected `--guards` with `--fault` or a scope alone, got it with another');
  }
  if (what.kind === 'trace') refuseScopeFlags(flags);
  if (flags.traceOut !== undefined && what.kind !== 'fault') {
    throw new CodedError('usage', 'Expected `--trace-out` with `--fault`, got it without');
  }
  return {
    what,
    scope: scope ?? null,
    guards: guards ?? null,
    memoryBytesMax: flags.memory === undefined ? null : parseMemory(flags.memory),
    symmetry: flags.symmetry === true,
    traceOut: flags.traceOut ?? null,
    isJson: output === 'json',
    page,
  };
}

/** A trace is what it is: nothing of it is explored. */
function refuseScopeFlags({ scope, memory, symmetry }: VerifyFlags): void {
  for (const [flag, value] of Object.entries({ '--scope': scope, '--memory': memory, '--symmetry': symmetry })) {
    if (value !== undefined) throw new CodedError('usage', `Expected \`--trace\` without \`${flag}\`, got both`);
  }
}

function parsePage(output: string | undefined): VerifyOptions['page'] {
  if (output === 'html') return { path: null };
  return output?.startsWith('html=') === true && output.length > 5 ? { path: output.slice(5) } : null;
}

function parseWhat({ fault, allFaults, trace }: VerifyFlags): VerifyOptions['what'] {
  const asked = [fault !== undefined, allFaults === true, trace !== undefined].filter(Boolean).length;
  if (asked > 1) {
    throw new CodedError('usage', 'Expected one of `--fault`, `--all-faults` and `--trace`, got more than one');
  }
  if (trace !== undefined) return { kind: 'trace', path: trace };
  if (allFaults === true) return { kind: 'allFaults' };
  if (fault === undefined) return { kind: 'scope' };
  if (!isFaultName(fault)) throw wrong('--fault', `one of ${FAULTS.join(', ')}`, fault);
  return { kind: 'fault', fault };
}

function parseMemory(text: string): number {
  const bytes = parseCount(text);
  if (bytes !== null && bytes >= MEMORY_BYTES_MIN && bytes <= MEMORY_BYTES_MAX) return bytes;
  throw wrong('--memory', 'from 1M to 64G', text);
}
