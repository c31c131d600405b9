/** A verification as a list of runs: which worlds, with which faults on and which guards off, on a few threads. */
import { type FaultName, faultBits, guardsAgainst } from '../handoff/faults.js';
import { ALL_GUARDS } from '../handoff/guards.js';
import type { Rules } from '../handoff/layout.js';
import { type Exploration, explore, MEMORY_BYTES_DEFAULT, type VerdictWord } from './explore.js';
import { HandoffModel } from './models/handoff.js';
import type { HandoffScope } from './models/handoff-scope.js';
import { type NamedWorld, type Scope, scopeOf, scopeOfFault, type ScopeName } from './scopes.js';

/** One world, explored once. */
export interface Job {
  readonly title: string;
  readonly scope: HandoffScope;
  readonly memoryBytesMax: number;
  readonly symmetry: boolean;
  /** False: what never fired or was never seen is no reason for "incomplete". */
  readonly coverage: boolean;
}

export interface JobResult {
  readonly job: Job;
  readonly found: Exploration;
}

/** Runs jobs and resolves with their results in the order of the jobs. */
export type JobRunner = (jobs: readonly Job[], onResult?: (result: JobResult) => void) => Promise<readonly JobResult[]>;

export function modelOf(job: Job): HandoffModel {
  return new HandoffModel(job.scope, { symmetry: job.symmetry });
}

export function runJob(job: Job): Exploration {
  return explore(modelOf(job), { memoryBytesMax: job.memoryBytesMax, coverage: job.coverage });
}

/** Here and now, one after the other. */
export const runInPlace: JobRunner = (jobs, onResult) => {
  const results = jobs.map((job) => {
    const result = { job, found: runJob(job) };
    onResult?.(result);
    return result;
  });
  return Promise.resolve(results);
};

export interface CampaignOptions {
  /** For each thread. */
  readonly memoryBytesMax?: number;
  readonly symmetry?: boolean;
}

const NO_FAULT: Rules = { faults: 0, guards: ALL_GUARDS };

function job(named: NamedWorld, rules: Rules, options: CampaignOptions, more: Partial<Job> = {}): Job {
  return {
    title: named.title,
    scope: { ...named.world, rules },
    memoryBytesMax: options.memoryBytesMax ?? MEMORY_BYTES_DEFAULT,
    symmetry: options.symmetry ?? false,
    coverage: false,
    ...more,
  };
}

/** The worlds of a scope without a fault and with every guard on. */
export function soundJobs(scope: Scope, options: CampaignOptions = {}): Job[] {
  return scope.worlds.map((world) => job(world, NO_FAULT, options, { coverage: true }));
}

/** The worlds of a scope with faults on and exactly these guards on. */
export function brokenJobs(scope: Scope, rules: Rules, options: CampaignOptions = {}): Job[] {
  const harmOnly = rules.guards !== ALL_GUARDS;
  return scope.worlds.map(({ title, world }) => {
    const made = job({ title, world }, rules, options);
    return harmOnly ? { ...made, scope: { ...made.scope, harmOnly } } : made;
  });
}

/** A fault twice: with the guards against it off, and with every guard on. */
export function faultJobs(fault: FaultName, scope: Scope, options: CampaignOptions = {}): { off: Job[]; on: Job[] } {
  const faults = faultBits([fault]);
  return {
    off: brokenJobs(scope, { faults, guards: ALL_GUARDS & ~guardsAgainst([fault]) }, options),
    on: brokenJobs(scope, { faults, guards: ALL_GUARDS }, options),
  };
}

/** Several worlds as one verdict. */
export interface Summary {
  readonly verdict: VerdictWord;
  readonly distinct: number;
  readonly generated: number;
  readonly depth: number;
  /** Distinct states per CPU-second of the thread that explores, over all worlds. */
  readonly rate: number;
  readonly memoryBytes: number;
  readonly collisionProbability: number;
  readonly results: readonly JobResult[];
}

export function summarize(results: readonly JobResult[]): Summary {
  const sum = (of: (found: Exploration) => number): number =>
    results.reduce((total, { found }) => total + of(found), 0);
  const max = (of: (found: Exploration) => number): number => Math.max(0, ...results.map(({ found }) => of(found)));
  const has = (verdict: VerdictWord): boolean => results.some(({ found }) => found.verdict === verdict);
  const distinct = sum((found) => found.distinct);
  return {
    verdict: has('violated') ? 'violated' : has('incomplete') ? 'incomplete' : 'holds',
    distinct,
    generated: sum((found) => found.generated),
    depth: max((found) => found.depth),
    rate: Math.round(
      distinct /
        Math.max(
          sum((found) => found.distinct / Math.max(found.rate, 1)),
          1e-9,
        ),
    ),
    memoryBytes: max((found) => found.memoryBytes),
    collisionProbability: Math.min(
      1,
      sum((found) => found.collisionProbability),
    ),
    results,
  };
}

export type FaultVerdict = 'caught' | 'missed' | 'unguarded' | 'incomplete';

export interface FaultFinding {
  readonly fault: FaultName;
  readonly scope: ScopeName;
  readonly verdict: FaultVerdict;
  /** What broke: with the guards off, or, if that fault is unguarded, with them on. */
  readonly broken: JobResult | null;
  readonly off: Summary;
  readonly on: Summary;
}

export function judge(fault: FaultName, scope: ScopeName, off: Summary, on: Summary): FaultFinding {
  const verdict =
    on.verdict === 'violated'
      ? 'unguarded'
      : off.verdict === 'incomplete' || on.verdict === 'incomplete'
        ? 'incomplete'
        : off.verdict === 'holds'
          ? 'missed'
          : 'caught';
  const { results } = on.verdict === 'violated' ? on : off;
  const broken = results.find(({ found }) => found.violation !== null) ?? null;
  return { fault, scope, verdict, broken, off, on };
}

/** Every fault, each in its own scope, and that scope's worlds without a fault. */
export async function runFaults(
  faults: readonly FaultName[],
  run: JobRunner,
  options: CampaignOptions & { readonly scope?: ScopeName } = {},
): Promise<FaultFinding[]> {
  const plans = faults.map((fault) => {
    const scope = options.scope ?? scopeOfFault(fault);
    return { fault, scope, ...faultJobs(fault, scopeOf(scope), options) };
  });
  const results = await run(plans.flatMap(({ off, on }) => [...off, ...on]));
  let at = 0;
  const take = (count: number): Summary => {
    at += count;
    return summarize(results.slice(at - count, at));
  };
  return plans.map(({ fault, scope, off, on }) => judge(fault, scope, take(off.length), take(on.length)));
}
