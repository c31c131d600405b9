import { EXPERIMENT_VERDICTS, type ExperimentResult, type ExperimentVerdict } from './result.js';

export type OverallVerdict = Exclude<ExperimentVerdict, 'no-cache-seen'>;

/** Worst first: what one required experiment saw is not undone by another. */
const ORDER: readonly OverallVerdict[] = ['leaks', 'starves', 'could-not-run', 'no-power', 'isolated'];

/** Over the required experiments: leaks, else starves, else could-not-run, else no-power, else isolated; none at all could not run. What saw no cache counts as nothing; alone it has no power. */
export function overallVerdict(results: readonly ExperimentResult[], required: readonly string[]): OverallVerdict {
  const verdicts = required.map((name) => results.find((result) => result.name === name)?.verdict ?? 'could-not-run');
  for (const result of results)
    if (result.verdict === 'leaks' || result.verdict === 'starves') verdicts.push(result.verdict);
  const worst = ORDER.find((verdict) => verdicts.includes(verdict));
  return worst ?? (verdicts.includes('no-cache-seen') ? 'no-power' : 'could-not-run');
}

/** Exit code: 0 isolated, 1 leaks or starves, 3 the rest. */
export function exitCodeOfProbe(verdict: OverallVerdict): 0 | 1 | 3 {
  if (verdict === 'isolated') return 0;
  return verdict === 'leaks' || verdict === 'starves' ? 1 : 3;
}

export function isVerdict(text: string): text is ExperimentVerdict {
  return (EXPERIMENT_VERDICTS as readonly string[]).includes(text);
}

/** The verdict of a run: any hit is a leak, whatever was required. */
export function verdictOfRun(
  results: readonly ExperimentResult[],
  required: readonly string[],
  hits: number,
): OverallVerdict {
  return hits > 0 ? 'leaks' : overallVerdict(results, required);
}
