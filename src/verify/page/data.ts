/** From what the checker found to what the page shows. */
import { CATALOGUE, type FaultName } from '../../handoff/faults.js';
import type { Job, JobResult } from '../campaign.js';
import type { Scope } from '../scopes.js';
import type { PageData, PageWorld } from './walk.js';

/** The worlds on one side of a question, such as "without its guards". */
export interface PageSide {
  readonly words: string;
  readonly jobs: readonly Job[];
  /** What was found, in the order of the jobs; null: nothing was explored. */
  readonly results: readonly JobResult[] | null;
}

/** Worlds with a counterexample come first, since that is what the page opens on. */
export function pageDataOf(scope: Scope, fault: FaultName | null, sides: readonly PageSide[]): PageData {
  const worlds = sides.flatMap(({ words, jobs, results }) =>
    jobs.map((job, index) => pageWorld(job, words, results?.[index] ?? null)),
  );
  const isBroken = ({ end }: PageWorld): boolean => end !== null;
  return {
    title: fault === null ? `the scope ${scope.name}` : fault,
    words: fault === null ? scope.words : `${CATALOGUE[fault].deviation} (${CATALOGUE[fault].source})`,
    worlds: [...worlds.filter((world) => isBroken(world)), ...worlds.filter((world) => !isBroken(world))],
  };
}

function pageWorld(job: Job, rules: string, result: JobResult | null): PageWorld {
  const violation = result?.found.violation ?? null;
  return {
    title: job.title,
    rules,
    scope: job.scope,
    found: foundInWords(result),
    path: violation?.path ?? [],
    end: violation === null ? null : { invariant: violation.invariant, words: violation.words },
  };
}

function foundInWords(result: JobResult | null): string {
  if (result === null) return 'Not explored for this page: whatever it can do, it can do here.';
  const { verdict, violation, distinct, reasons } = result.found;
  const states = `${distinct.toLocaleString('en-US')} distinct states`;
  if (violation === null) return `${verdict}${reasons.map((reason) => `; ${reason}`).join('')}: ${states}`;
  return `${violation.invariant} is broken after ${violation.path.length} steps, and no shorter way leads there: ${violation.words}`;
}
