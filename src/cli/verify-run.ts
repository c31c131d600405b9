/** `cofferdam verify`: what is explored, on which threads, and the exit code. */
import { faultBits, type FaultName, FAULTS, guardsAgainst } from '../handoff/faults.js';
import { ALL_GUARDS } from '../handoff/guards.js';
import {
  brokenJobs,
  type CampaignOptions,
  type FaultFinding,
  type Job,
  runFaults,
  soundJobs,
  summarize,
  type Summary,
} from '../verify/campaign.js';
import { MEMORY_BYTES_DEFAULT } from '../verify/explore.js';
import { type Scope, scopeOf, scopeOfFault, type ScopeName } from '../verify/scopes.js';
import { onThreads, THREADS_DEFAULT } from '../verify/threads.js';
import type { VerifyFlags } from './flags.js';
import { type CliIo, EXIT } from './io.js';
import { checkTraceOut, writeTraceOut } from './verify-trace-out.js';
import { parseVerifyOptions, type VerifyOptions } from './verify-options.js';
import { FAULT_HEAD, faultLines, faultRow, storyLines, totalLine, verdictJson, worldLines } from './verify-report.js';

/** The scope `large` has to keep its whole table; it is allowed more unless the flag says otherwise. */
const LARGE_MEMORY_BYTES = 8 * 10 ** 9;

/** Resolves with the exit code: 0 holds (and every fault caught), 1 violated, missed or unguarded, 3 incomplete. */
export async function runVerify(flags: VerifyFlags, io: CliIo): Promise<number> {
  const options = parseVerifyOptions(flags);
  if (options.page !== null) {
    return (await import('./verify-page.js')).runVerifyPage(options, options.page.path, io);
  }
  switch (options.what.kind) {
    case 'trace':
      return (await import('./verify-trace.js')).runVerifyTrace(options.what.path, options.isJson, io);
    case 'allFaults':
      return verifyAllFaults(options, io);
    case 'fault':
      return options.guards === null
        ? verifyFault(options, options.what.fault, io)
        : verifyOneSide(options, options.what.fault, options.guards, io);
    case 'scope':
      return options.guards === 'off' ? verifyOneSide(options, null, 'off', io) : verifyScope(options, io);
  }
}

function campaign({ memoryBytesMax, symmetry }: VerifyOptions, scope: ScopeName, jobs: number): CampaignOptions {
  const bytes = memoryBytesMax ?? (scope === 'large' ? LARGE_MEMORY_BYTES : MEMORY_BYTES_DEFAULT);
  return { symmetry, memoryBytesMax: Math.floor(bytes / Math.min(THREADS_DEFAULT, Math.max(1, jobs))) };
}

async function runScope(jobs: readonly Job[], isJson: boolean, io: CliIo): Promise<Summary> {
  const results = await onThreads(THREADS_DEFAULT)(jobs, (result) => {
    if (!isJson) io.out(`${worldLines(result).join('\n')}\n`);
  });
  const summary = summarize(results);
  if (isJson) return summary;
  for (const result of results) {
    if (result.found.violation !== null) io.out(`\n${result.job.title}\n${storyLines(result).join('\n')}\n`);
  }
  io.out(`\n${totalLine(summary)}\n`);
  return summary;
}

function announce(scope: Scope, symmetry: boolean, isJson: boolean, io: CliIo): void {
  if (isJson) return;
  io.out(`scope ${scope.name}: ${scope.words}${symmetry ? '; under symmetry of tenants, requests and pages' : ''}\n`);
}

async function soundRun(options: VerifyOptions, name: ScopeName, io: CliIo): Promise<Summary> {
  const scope = scopeOf(name);
  announce(scope, options.symmetry, options.isJson, io);
  return runScope(soundJobs(scope, campaign(options, name, scope.worlds.length)), options.isJson, io);
}

async function verifyScope(options: VerifyOptions, io: CliIo): Promise<number> {
  const name = options.scope ?? 'default';
  const summary = await soundRun(options, name, io);
  if (options.isJson) io.out(`${JSON.stringify(verdictJson(name, summary, []))}\n`);
  else io.out(`${conclusion(summary)}\n`);
  return codeOf(summary, []);
}

/** Faults, or guards, on one side only: what is wrong with it is a finding. */
async function verifyOneSide(
  options: VerifyOptions,
  fault: FaultName | null,
  side: 'on' | 'off',
  io: CliIo,
): Promise<number> {
  const scope = scopeOf(options.scope ?? (fault === null ? 'small' : scopeOfFault(fault)));
  const off = fault === null ? ALL_GUARDS : guardsAgainst([fault]);
  const rules = {
    faults: fault === null ? 0 : faultBits([fault]),
    guards: side === 'on' ? ALL_GUARDS : ALL_GUARDS & ~off,
  };
  announce(scope, options.symmetry, options.isJson, io);
  checkTraceOut(options.traceOut);
  const jobs = brokenJobs(scope, rules, campaign(options, scope.name, scope.worlds.length));
  const summary = await runScope(jobs, options.isJson, io);
  if (options.isJson) io.out(`${JSON.stringify(verdictJson(scope.name, summary, []))}\n`);
  else io.out(`${conclusion(summary)}\n`);
  writeTraceOut(options.traceOut, summary.results.find(({ found }) => found.violation !== null) ?? null, io);
  return codeOf(summary, []);
}

async function verifyFault(options: VerifyOptions, fault: FaultName, io: CliIo): Promise<number> {
  checkTraceOut(options.traceOut);
  const name = options.scope ?? scopeOfFault(fault);
  const sound = await soundRun(options, name, io);
  const findings = await faultRun(options, [fault]);
  if (options.isJson) io.out(`${JSON.stringify(verdictJson(name, sound, findings))}\n`);
  for (const finding of options.isJson ? [] : findings) {
    io.out(`\n${faultLines(finding).join('\n')}\n`);
    if (finding.broken !== null) io.out(`\n${storyLines(finding.broken).join('\n')}\n`);
    io.out(`\n${fault}: ${finding.verdict}\n`);
  }
  writeTraceOut(options.traceOut, findings[0]?.broken ?? null, io);
  return codeOf(sound, findings);
}

function faultRun(options: VerifyOptions, faults: readonly FaultName[]): Promise<FaultFinding[]> {
  const { scope } = options;
  const bounds = campaign(options, scope ?? 'faults', THREADS_DEFAULT);
  return runFaults(faults, onThreads(THREADS_DEFAULT), scope === null ? bounds : { ...bounds, scope });
}

async function verifyAllFaults(options: VerifyOptions, io: CliIo): Promise<number> {
  const name = options.scope ?? 'faults';
  const sound = await soundRun(options, name, io);
  const findings = await faultRun(options, FAULTS);
  if (options.isJson) io.out(`${JSON.stringify(verdictJson(name, sound, findings))}\n`);
  else {
    io.out(`\n${FAULT_HEAD}\n${findings.map((finding) => faultRow(finding)).join('\n')}\n`);
    const caught = findings.filter(({ verdict }) => verdict === 'caught').length;
    io.out(`\n${conclusion(sound)} ${caught} of ${findings.length} faults are caught.\n`);
  }
  return codeOf(sound, findings);
}

const CONCLUSIONS: Readonly<Record<Summary['verdict'], string>> = {
  holds: 'holds: nothing breaks within this scope, in any order of events.',
  violated: 'violated.',
  incomplete: 'incomplete: nothing broke in what was seen, and not all was seen.',
};
const conclusion = ({ verdict }: Summary): string => CONCLUSIONS[verdict];

function codeOf(top: Summary, findings: readonly FaultFinding[]): number {
  const isWrong = findings.some(({ verdict }) => verdict === 'missed' || verdict === 'unguarded');
  if (top.verdict === 'violated' || isWrong) return EXIT.findings;
  const isCut = top.verdict === 'incomplete' || findings.some(({ verdict }) => verdict === 'incomplete');
  return isCut ? EXIT.unchecked : EXIT.clean;
}
