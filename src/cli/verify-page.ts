/** `cofferdam verify --output html[=FILE]`: the explorer's page of a fault or a scope. */
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { CATALOGUE, type FaultName } from '../handoff/faults.js';
import {
  brokenJobs,
  type CampaignOptions,
  faultJobs,
  type JobResult,
  judge,
  soundJobs,
  summarize,
} from '../verify/campaign.js';
import { MEMORY_BYTES_DEFAULT } from '../verify/explore.js';
import { pageDataOf, type PageSide } from '../verify/page/data.js';
import { buildPage } from '../verify/page/markup.js';
import { type Scope, scopeOf, scopeOfFault } from '../verify/scopes.js';
import { onThreads, THREADS_DEFAULT } from '../verify/threads.js';
import { type CliIo, EXIT } from './io.js';
import type { VerifyOptions } from './verify-options.js';
import { checkTraceOut, writeTraceOut } from './verify-trace-out.js';

/** Where the page goes; null: to standard output. */
type PagePath = string | null;

/** Resolves with the exit code: of a fault as without a page; of a scope, of which nothing is explored beforehand, 0. */
export async function runVerifyPage(options: VerifyOptions, path: PagePath, io: CliIo): Promise<number> {
  // What cannot be written is said before anything is explored.
  if (path !== null) writing(path, () => closeSync(openSync(path, 'a')));
  checkTraceOut(options.traceOut);
  const fault = options.what.kind === 'fault' ? options.what.fault : null;
  const scope = scopeOf(options.scope ?? (fault === null ? 'small' : scopeOfFault(fault)));
  const { symmetry, memoryBytesMax } = options;
  const bounds: CampaignOptions = {
    symmetry,
    memoryBytesMax: Math.floor((memoryBytesMax ?? MEMORY_BYTES_DEFAULT) / THREADS_DEFAULT),
  };
  if (fault === null) {
    writePage(path, buildPage(pageDataOf(scope, null, scopeSides(scope, options, bounds))), '', io);
    return EXIT.clean;
  }
  const { sides, code, verdict, broken } = await explored(scope, fault, bounds);
  writePage(path, buildPage(pageDataOf(scope, fault, sides)), `${fault}: ${verdict}`, io);
  writeTraceOut(options.traceOut, broken, io);
  return code;
}

function scopeSides(scope: Scope, { guards }: VerifyOptions, bounds: CampaignOptions): PageSide[] {
  if (guards === 'off') {
    const jobs = brokenJobs(scope, { faults: 0, guards: 0 }, bounds);
    return [{ words: 'no fault, every guard off', jobs, results: null }];
  }
  return [{ words: 'no fault, every guard on', jobs: soundJobs(scope, bounds), results: null }];
}

async function explored(
  scope: Scope,
  fault: FaultName,
  bounds: CampaignOptions,
): Promise<{ sides: PageSide[]; code: number; verdict: string; broken: JobResult | null }> {
  const { off, on } = faultJobs(fault, scope, bounds);
  const results = await onThreads(THREADS_DEFAULT)([...off, ...on]);
  const [without, within] = [results.slice(0, off.length), results.slice(off.length)];
  const { verdict, broken } = judge(fault, scope.name, summarize(without), summarize(within));
  const side = (words: string, jobs: PageSide['jobs'], found: readonly JobResult[]): PageSide => ({
    words,
    jobs,
    results: found,
  });
  return {
    sides: [
      side(`${fault}, guards off: ${CATALOGUE[fault].guards.join(', ')}`, off, without),
      side(`${fault}, every guard on`, on, within),
      { words: 'no fault, every guard on', jobs: soundJobs(scope, bounds), results: null },
    ],
    code: verdict === 'caught' ? EXIT.clean : verdict === 'incomplete' ? EXIT.unchecked : EXIT.findings,
    verdict,
    broken,
  };
}

function writePage(path: PagePath, page: string, verdict: string, io: CliIo): void {
  if (path === null) return io.out(page);
  writing(path, () => writeFileSync(path, page));
  if (verdict !== '') io.out(`${verdict}\n`);
  io.out(`the page is in ${shown(path)}, ${Buffer.byteLength(page)} bytes\n`);
}

function writing(path: string, act: () => void): void {
  try {
    act();
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    const got = `${shown(path)} (${String(error.code)})`;
    throw new CodedError('usage', `Expected \`--output html=FILE\` to name a file that can be written, got ${got}`);
  }
}
