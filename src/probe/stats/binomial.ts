/** Exact bounds for a share: Clopper and Pearson, Biometrika 26 (1934). One-sided each. */
import { assert } from '../../base/assert.js';
import { betaCdf, bisect } from './special.js';

/**
 * The share of hits that `hits` in `trials` still allow at this confidence (0.95): the true share is above it in at most one of
 * twenty such experiments. With no hits it is 1 - (1 - confidence)^(1/trials), nearly 3/trials at 95 % (the rule of three);
 * with no trials it is 1. Unit: a share, 0 to 1.
 */
export function upperBound(hits: number, trials: number, confidence: number): number {
  checkCounts(hits, trials, confidence);
  if (hits === trials) return 1;
  return bisect(0, 1, (share) => betaCdf(share, hits + 1, trials - hits) >= confidence);
}

/** The share that the true one is below in at most 1 - confidence of such experiments; 0 with no hits. Unit: a share, 0 to 1. */
export function lowerBound(hits: number, trials: number, confidence: number): number {
  checkCounts(hits, trials, confidence);
  if (hits === 0) return 0;
  return bisect(0, 1, (share) => betaCdf(share, hits, trials - hits + 1) >= 1 - confidence);
}

/** How many answers, all clean, bring `upperBound` down to `bound` (a share in (0, 1)): 59 for 5 % at 95 %. */
export function requestsForBound(bound: number, confidence: number): number {
  assert(bound > 0 && bound < 1, 'a bound must be a share between zero and one');
  assert(confidence > 0 && confidence < 1, 'a confidence must be between zero and one');
  return Math.max(1, Math.ceil(Math.log1p(-confidence) / Math.log1p(-bound)));
}

function checkCounts(hits: number, trials: number, confidence: number): void {
  assert(Number.isSafeInteger(hits) && Number.isSafeInteger(trials), 'hits and trials must be whole numbers');
  assert(hits >= 0 && hits <= trials, 'hits must lie between zero and the trials');
  assert(confidence > 0 && confidence < 1, 'a confidence must be between zero and one');
}
