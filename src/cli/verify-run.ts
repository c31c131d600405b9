/** `cofferdam verify`: what is explored, and the verdict in words or as JSON. */
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { parseCount } from '../base/units.js';
import { type FaultName, FAULTS, isFaultName } from '../handoff/faults.js';
import type { Exploration, ExploreOptions } from '../verify/explore.js';
import { scopeInWords } from '../verify/models/handoff-scope.js';
import { FAULT_SCOPES, SCOPE_NAMES, SCOPES, type ScopeName } from '../verify/scopes.js';
import { tell } from '../verify/tell.js';
import {
  type FaultReport,
  HEALTHY,
  modelOf,
  rulesOf,
  verifyAllFaults,
  verifyFault,
  verifyScope,
} from '../verify/verify.js';
import type { VerifyFlags } from './flags.js';
import { type CliIo, EXIT } from './io.js';

const MEMORY_BYTES_MIN = 64 * 2 ** 20;
const MEMORY_BYTES_MAX = 64 * 2 ** 30;

interface VerifyOptions {
  readonly scope: ScopeName | null;
  readonly fault: FaultName | null;
  readonly allFaults: boolean;
  readonly guards: 'on' | 'off' | null;
  readonly explore: ExploreOptions;
  readonly isJson: boolean;
}

const wrong = (flag: string, wanted: string, got: unknown): CodedError =>
  new CodedError('usage', `Expected \`${flag}\` to be ${wanted}, got ${shown(got)}`);

function parse(flags: VerifyFlags): VerifyOptions {
  const { scope, fault, guards, memory, output } = flags;
  if (scope !== undefined && !(SCOPE_NAMES as readonly string[]).includes(scope)) {
    throw wrong('--scope', `one of ${SCOPE_NAMES.join(', ')}`, scope);
  }
  if (fault !== undefined && !isFaultName(fault)) throw wrong('--fault', `one of ${FAULTS.join(', ')}`, fault);
  if (fault !== undefined && flags.allFaults === true) {
    throw new CodedError('usage', 'Expected `--fault` or `--all-faults`, got both');
  }
  if (guards !== undefined && guards !== 'on' && guards !== 'off') throw wrong('--guards', '`on` or `off`', guards);
  if (guards !== undefined && fault === undefined) {
    throw new CodedError('usage', 'Expected `--guards` with `--fault`, got no fault');
  }
  if (output !== undefined && output !== 'table' && output !== 'json')
    throw wrong('--output', '`table` or `json`', output);
  const bytes = memory === undefined ? null : parseBytes(memory);
  return {
    scope: (scope as ScopeName | undefined) ?? null,
    fault: fault ?? null,
    allFaults: flags.allFaults === true,
    guards: guards ?? null,
    explore: bytes === null ? {} : { memoryBytesMax: bytes },
    isJson: output === 'json',
  };
}

function parseBytes(text: string): number {
  const giga = /^(\d+)[gG]$/.exec(text)?.[1];
  const bytes = giga === undefined ? parseCount(text) : Number(giga) * 2 ** 30;
  if (bytes !== null && bytes >= MEMORY_BYTES_MIN && bytes <= MEMORY_BYTES_MAX) return bytes;
  throw wrong('--memory', 'from 64M to 64G', text);
}

/** Returns the exit code: 0 holds (and every fault caught), 1 violated, 3 incomplete. */
export function runVerify(flags: VerifyFlags, io: CliIo): number {
  const options = parse(flags);
  if (options.fault !== null) return oneFault(options, options.fault, io);
  const scope = options.scope ?? (options.allFaults ? 'faults' : 'default');
  const healthy = verifyScope(scope, options.explore);
  if (!options.isJson) io.out(`${verdictLines(scope, healthy).join('\n')}\n`);
  const reports: FaultReport[] = [];
  if (options.allFaults) {
    if (!options.isJson) io.out(`\n${faultHead()}\n`);
    reports.push(
      ...verifyAllFaults(options.explore, (report) => {
        if (!options.isJson) io.out(`${faultRow(report)}\n`);
      }),
    );
  }
  if (options.isJson) io.out(`${JSON.stringify(jsonOf(scope, healthy, reports))}\n`);
  else io.out(`\n${conclusion(healthy, reports)}\n`);
  return codeOf(healthy, reports);
}

function oneFault(options: VerifyOptions, fault: FaultName, io: CliIo): number {
  const scope = options.scope ?? FAULT_SCOPES[fault];
  const report = verifyFault(fault, options.explore, scope);
  if (options.isJson) {
    io.out(`${JSON.stringify(jsonOf(scope, report.on, [report]))}\n`);
  } else {
    const sides = (['off', 'on'] as const).filter((side) => options.guards === null || options.guards === side);
    for (const side of sides) io.out(`${sideLines(report, scope, side).join('\n')}\n\n`);
    io.out(`${fault}: ${report.verdict}\n`);
  }
  return report.verdict === 'caught' ? EXIT.clean : report.verdict === 'incomplete' ? EXIT.unchecked : EXIT.findings;
}

function sideLines(report: FaultReport, scope: ScopeName, side: 'off' | 'on'): string[] {
  const run = report[side];
  const lines = [`${report.fault}, ${side === 'off' ? 'the guards that stop it off' : 'every guard on'}`];
  lines.push(...verdictLines(scope, run));
  if (run.violation === null) return lines;
  const story = tell(modelOf(scope, rulesOf(report.fault, side)), run.violation.path);
  lines.push('', `broken: ${run.violation.invariant}: ${run.violation.words}`, '', ...story.pages);
  lines.push('', ...story.diagram, '', ...story.steps);
  return lines;
}

function verdictLines(scope: ScopeName, run: Exploration): string[] {
  const bounds = scopeInWords({ ...SCOPES[scope], rules: HEALTHY });
  const lines = [
    `scope ${scope}: ${bounds}`,
    `${run.verdict}${run.reasons.map((reason) => `; ${reason}`).join('')}`,
    `${run.distinct} distinct states, ${run.generated} generated, depth ${run.depth}, ${run.rate} distinct states a CPU-second, ${Math.round(run.memoryBytes / 2 ** 20)} MiB`,
    `a fingerprint collision has a probability of ${run.collisionProbability.toExponential(1)}; ${run.stuck === null ? 'liveness not checked' : `${run.stuck} states cannot settle`}`,
  ];
  if (run.violation !== null) return lines;
  const fired = Object.entries(run.coverage).filter(([, times]) => times > 0);
  lines.push(`actions: ${fired.map(([name, times]) => `${name} ${times}`).join(', ')}`);
  const seen = Object.entries(run.witnesses).filter(([, depth]) => depth !== null);
  lines.push(`seen: ${seen.map(([name, depth]) => `${name} (step ${depth})`).join(', ')}`);
  return lines;
}

const faultHead = (): string =>
  `${'fault'.padEnd(26)}${'verdict'.padEnd(12)}${'first broken invariant'.padEnd(32)}${'depth'.padStart(6)}${'states'.padStart(10)}  scope`;

function faultRow({ fault, verdict, invariant, depth, states, scope }: FaultReport): string {
  return `${fault.padEnd(26)}${verdict.padEnd(12)}${(invariant ?? '-').padEnd(32)}${String(depth).padStart(6)}${String(states).padStart(10)}  ${scope}`;
}

function conclusion(healthy: Exploration, reports: readonly FaultReport[]): string {
  const caught = reports.filter(({ verdict }) => verdict === 'caught').length;
  const faults = reports.length === 0 ? '' : `; ${caught} of ${reports.length} faults caught`;
  return `Without a fault the protocol ${healthy.verdict === 'holds' ? 'holds within this scope' : `is ${healthy.verdict}`}${faults}.`;
}

function codeOf(healthy: Exploration, reports: readonly FaultReport[]): number {
  const isWrong = reports.some(({ verdict }) => verdict === 'missed' || verdict === 'unguarded');
  if (healthy.verdict === 'violated' || isWrong) return EXIT.findings;
  const isCut = healthy.verdict !== 'holds' || reports.some(({ verdict }) => verdict === 'incomplete');
  return isCut ? EXIT.unchecked : EXIT.clean;
}

function jsonOf(scope: ScopeName, run: Exploration, reports: readonly FaultReport[]): object {
  const { verdict, distinct, generated, depth, rate } = run;
  const faults = reports.map(({ fault, verdict: ended, invariant, depth: deep, states }) => ({
    fault,
    verdict: ended,
    invariant,
    depth: deep,
    states,
  }));
  return { scope, verdict, distinct, generated, depth, rate, faults };
}
