/** A run that goes on where an earlier one stopped: what of its record still holds. */
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import type { ReadRun } from './convert.js';
import type { ExperimentResult, Hit } from './result.js';
import type { ProbeTarget } from './target.js';

export interface Earlier {
  /** Of experiments that were made to their end. */
  readonly results: readonly ExperimentResult[];
  /** All hits, those of experiments that are made again too: what was seen was seen. */
  readonly hits: readonly Hit[];
  /** Ids of requests go on after it. */
  readonly lastId: number;
}

export const NOTHING_EARLIER: Earlier = { results: [], hits: [], lastId: 0 };

/** The endpoint as the record has it. */
export function endpointOf({ origin }: ProbeTarget): string {
  return origin.origin + origin.pathname.replace(/\/$/, '');
}

/** Throws CodedError `usage` where the record is of another endpoint, model, route or other tenants. */
export function earlierOf({ record, lastId }: ReadRun, target: ProbeTarget): Earlier {
  const { header } = record;
  const names = target.tenants.map(({ name }) => name);
  const pairs: readonly [what: string, before: string, now: string][] = [
    ['endpoint', header.endpoint, endpointOf(target)],
    ['model', header.model, target.model],
    ['route', header.route, target.route],
    ['tenants', header.tenants.join(','), names.join(',')],
  ];
  for (const [what, before, now] of pairs) {
    if (before !== now)
      throw new CodedError('usage', `Expected the ${what} of the earlier run, ${shown(before)}, got ${shown(now)}`);
  }
  // What could not run may run now.
  const done = record.results.filter(({ unfinished, verdict }) => unfinished !== true && verdict !== 'could-not-run');
  return { results: done, hits: record.hits, lastId };
}
