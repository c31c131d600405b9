import { assert } from '../../base/assert.js';

/** Hits and misses of two arms. All whole numbers from zero up. */
export interface TwoByTwo {
  readonly hitsA: number;
  readonly missesA: number;
  readonly hitsB: number;
  readonly missesB: number;
}

/** `greater`: A's share of hits is above B's. */
export type Alternative = 'greater' | 'less' | 'two-sided';

/** Tables whose chances differ by less are as likely as each other: rounding must not part a table from its mirror image. */
const EQUAL_WITHIN_LOG = 1e-7;

/**
 * Fisher's exact test (Fisher 1934; Agresti, Categorical Data Analysis, 3.5): the chance, with all margins given and no
 * difference between the arms, of a table at least as far out. Two-sided: of all tables no likelier than this one. An empty row
 * or column gives 1. In logarithms, from the likeliest table outwards; time and memory grow with the smallest margin.
 */
export function fisherExact(table: TwoByTwo, alternative: Alternative): number {
  const { hitsA, missesA, hitsB, missesB } = table;
  for (const count of [hitsA, missesA, hitsB, missesB])
    assert(Number.isSafeInteger(count) && count >= 0, 'the counts of a table must be whole numbers from zero up');
  const armA = hitsA + missesA;
  const hits = hitsA + hitsB;
  const least = Math.max(0, hits - (hitsB + missesB));
  const most = Math.min(armA, hits);
  const logs = logWeights(armA, hitsB + missesB, hits, least, most);
  const seen = logs[hitsA - least]!;
  let inside = 0;
  let all = 0;
  for (let i = 0; i < logs.length; i++) {
    const weight = Math.exp(logs[i]!);
    all += weight;
    if (isAsFar(least + i - hitsA, logs[i]! - seen, alternative)) inside += weight;
  }
  return Math.min(1, inside / all);
}

function isAsFar(step: number, logRatio: number, alternative: Alternative): boolean {
  if (alternative === 'greater') return step >= 0;
  if (alternative === 'less') return step <= 0;
  return logRatio <= EQUAL_WITHIN_LOG;
}

/** ln of the chance of each table, by A's hits from `least` to `most`, over the chance of the likeliest (hypergeometric). */
function logWeights(armA: number, armB: number, hits: number, least: number, most: number): Float64Array {
  const logs = new Float64Array(most - least + 1);
  const mode = Math.floor(((armA + 1) * (hits + 1)) / (armA + armB + 2));
  const start = Math.min(most, Math.max(least, mode));
  const ratioUp = (x: number) => ((armA - x) * (hits - x)) / ((x + 1) * (armB - hits + x + 1));
  for (let x = start; x < most; x++) logs[x + 1 - least] = logs[x - least]! + Math.log(ratioUp(x));
  for (let x = start - 1; x >= least; x--) logs[x - least] = logs[x + 1 - least]! - Math.log(ratioUp(x));
  return logs;
}
