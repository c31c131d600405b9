/**
 * Looking at a growing sample several times without spending more than alpha: Lan and DeMets, Biometrika 70 (1983), with their
 * spending function like O'Brien and Fleming's; the recursion is that of Armitage, McPherson and Rowe (1969).
 */
import { assert } from '../../base/assert.js';
import { bisect, normalCdf, normalDensity, normalQuantile } from './special.js';

/** How much of `alpha` (one-sided) may be spent when a share `time` of the trials is in: 2 - 2 Φ(z / √time), z that of 1 - alpha/2. */
export function spentAlpha(alpha: number, time: number): number {
  assert(alpha > 0 && alpha < 1, 'alpha must be between zero and one');
  assert(time > 0 && time <= 1, 'the share of trials at a look must be above zero and at most one');
  return 2 * normalCdf(normalQuantile(alpha / 2) / Math.sqrt(time));
}

/** Below this many deviations a path holds nothing that matters. */
const LOWEST = 8.5;
/** Even, for Simpson's rule. */
const CELLS = 400;

/** Where the paths that have not stopped stand: a density on an even grid, times Simpson's weights. */
interface Paths {
  readonly places: Float64Array;
  readonly masses: Float64Array;
}

/**
 * The level at each look: stop where its p-value (one-sided) is at most that, and the chance of ever stopping with nothing
 * there is alpha. `times`: the share of all planned trials that is in at each look, rising, the last at most 1; in even steps or not.
 * A permutation p-value is never below 1 / (m + 1): a look with a smaller level cannot stop, which errs to the safe side.
 */
export function nominalAlphas(alpha: number, times: readonly number[]): number[] {
  const levels: number[] = [];
  let paths: Paths | null = null;
  let before = 0;
  let spent = 0;
  for (const time of times) {
    assert(time > before, 'looks must come in rising order');
    const total = spentAlpha(alpha, time);
    const bound: number = boundary(paths, time, before, total - spent);
    levels.push(normalCdf(-bound / Math.sqrt(time)));
    paths = carryOn(paths, bound, time, before);
    before = time;
    spent = total;
  }
  return levels;
}

/** The place above which, at this look, paths of the weight `share` stand. In the scale where the deviation at a look is √time. */
function boundary(paths: Paths | null, time: number, before: number, share: number): number {
  const root = Math.sqrt(time);
  if (paths === null) return -normalQuantile(share) * root;
  const step = Math.sqrt(time - before);
  const { places, masses } = paths;
  return bisect(-LOWEST * root, 40 * root, (bound) => {
    let above = 0;
    for (let i = 0; i <= CELLS; i++) above += masses[i]! * normalCdf((places[i]! - bound) / step);
    return above <= share;
  });
}

function carryOn(paths: Paths | null, bound: number, time: number, before: number): Paths {
  const root = Math.sqrt(time);
  const low = -LOWEST * root;
  const high = Math.min(bound, LOWEST * root);
  const cell = (high - low) / CELLS;
  const places = Float64Array.from({ length: CELLS + 1 }, (_, i) => low + i * cell);
  const step = Math.sqrt(time - before);
  const masses = places.map((place, i) => {
    const simpson = (cell / 3) * (i === 0 || i === CELLS ? 1 : i % 2 === 1 ? 4 : 2);
    return simpson * (paths === null ? normalDensity(place / root) / root : densityFrom(paths, place, step));
  });
  return { places, masses };
}

function densityFrom({ places, masses }: Paths, place: number, step: number): number {
  let density = 0;
  for (let i = 0; i <= CELLS; i++) density += masses[i]! * normalDensity((place - places[i]!) / step);
  return density / step;
}
