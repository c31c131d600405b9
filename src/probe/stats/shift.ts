import { assert } from '../../base/assert.js';
import { Prng } from '../../base/prng.js';
import { extent, quantile } from './describe.js';
import { ksCritical, ksStatistic } from './ranks.js';

export interface ShiftOptions {
  /** The level of the test, one-sided. */
  readonly alpha: number;
  /** In what share of repeats the shift must be seen: 0.8. */
  readonly power: number;
  /** Labellings for the critical value, as `ksTest` would draw. */
  readonly permutations: number;
  /** Repeats of the whole experiment, drawn with replacement. */
  readonly resamples: number;
  readonly seed: number;
}

/** The answer is exact to this part of the range of values. */
const STEPS = 512;

/**
 * The smallest shift, in the samples' unit, by which `a` would have to be quicker than `b` for `ksTest` to see it with that
 * power; null where even values wholly apart would not be seen (too few of them, or of permutations), 0 where all values are
 * one and any shift is seen. The samples are moved to one median, so that a shift which is there does not count, and put
 * together; repeats of the experiment are drawn from that (bootstrap, Efron and Tibshirani 1993, chapter 25), the same draws for
 * every shift tried, so that the power never falls as the shift grows and bisection finds the place.
 */
export function smallestVisibleShift(a: readonly number[], b: readonly number[], options: ShiftOptions): number | null {
  const { alpha, power, permutations, resamples, seed } = options;
  assert(power > 0 && power < 1, 'a power must be between zero and one');
  assert(Number.isSafeInteger(resamples) && resamples > 0, 'resamples must be a whole number above zero');
  const move = quantile(b, 0.5) - quantile(a, 0.5);
  const both = [...a.map((value) => value + move), ...b];
  const prng = new Prng(seed);
  // Places instead of values: without ties the critical value hangs on the sizes alone, and is the larger one, so nothing is promised too early.
  const places = [...a, ...b].map((_, i) => i);
  const critical = ksCritical(places.slice(0, a.length), places.slice(a.length), alpha, permutations, prng);
  if (critical === null) return null;
  const repeats = Array.from(
    { length: resamples },
    () => [redraw(both, a.length, prng), redraw(both, b.length, prng)] as const,
  );
  const isSeen = (shift: number) => {
    let seen = 0;
    for (const [x, y] of repeats) {
      const moved = x.map((value) => value - shift);
      if (ksStatistic(moved, y) > critical) seen++;
    }
    return seen >= power * resamples;
  };
  const [low, high] = extent(both);
  // One step more than the whole range parts the samples wholly; where all values are equal, any shift does.
  const step = (high - low) / STEPS;
  if (step === 0) return critical < 1 ? 0 : null;
  if (!isSeen(high - low + step)) return null;
  let below = -1;
  let above = STEPS + 1;
  while (above - below > 1) {
    const middle = Math.floor((above + below) / 2);
    if (isSeen(middle * step)) above = middle;
    else below = middle;
  }
  return above * step;
}

function redraw(sample: readonly number[], size: number, prng: Prng): number[] {
  return Array.from({ length: size }, () => prng.pick(sample));
}
