/** The special functions that the tests stand on. Pure; relative error about 1e-12, for arguments of a million 1e-9. */
import { assert } from '../../base/assert.js';

const STIRLING_FROM = 15;
const STEPS_MAX = 100_000;
const TINY = 1e-300;

/** ln Γ(x), x above 0: Stirling's series (Abramowitz and Stegun 6.1.41), small x moved up by the recurrence. */
export function logGamma(x: number): number {
  assert(x > 0, 'ln gamma needs a number above zero');
  let moved = 1;
  let y = x;
  while (y < STIRLING_FROM) moved *= y++;
  const r = 1 / (y * y);
  const series = (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r * (1 / 1680 - r * (1 / 1188))))) / y;
  return (y - 0.5) * Math.log(y) - y + 0.5 * Math.log(2 * Math.PI) + series - Math.log(moved);
}

/**
 * The regularised incomplete beta I_x(a, b), a and b above 0, x in [0, 1]: the continued fraction of Abramowitz and Stegun
 * 26.5.8, evaluated by the modified Lentz method. It is the chance that Beta(a, b) is at most x.
 */
export function betaCdf(x: number, a: number, b: number): number {
  assert(a > 0 && b > 0 && x >= 0 && x <= 1, 'the incomplete beta needs a, b above zero and x in [0, 1]');
  if (x === 0 || x === 1) return x;
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x));
  return x < (a + 1) / (a + b + 2) ? (front * betaFraction(x, a, b)) / a : 1 - (front * betaFraction(1 - x, b, a)) / b;
}

function betaFraction(x: number, a: number, b: number): number {
  let c = 1;
  let d = 1 / awayFromZero(1 - ((a + b) * x) / (a + 1));
  let value = d;
  for (let m = 1; m < STEPS_MAX; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / awayFromZero(1 + even * d);
    c = awayFromZero(1 + even / c);
    value *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / awayFromZero(1 + odd * d);
    c = awayFromZero(1 + odd / c);
    value *= d * c;
    if (Math.abs(d * c - 1) < 1e-15) break;
  }
  return value;
}

function awayFromZero(x: number): number {
  return Math.abs(x) < TINY ? TINY : x;
}

/** The density of the standard normal. */
export function normalDensity(x: number): number {
  return Math.exp(-0.5 * x * x) / Math.sqrt(2 * Math.PI);
}

/** Beyond it the continued fraction of the tail is used, below it the power series. */
const TAIL_FROM = 3;
const TAIL_TERMS = 80;

/** Φ(x) of the standard normal (Abramowitz and Stegun 26.2.11 in the middle, 26.2.14 in the tails). */
export function normalCdf(x: number): number {
  if (x > TAIL_FROM) return 1 - normalCdf(-x);
  if (x < -TAIL_FROM) {
    let fraction = -x;
    for (let k = TAIL_TERMS; k >= 1; k--) fraction = -x + k / fraction;
    return normalDensity(x) / fraction;
  }
  let term = x;
  let sum = x;
  for (let k = 3; Math.abs(term) > 1e-17; k += 2) {
    term *= (x * x) / k;
    sum += term;
  }
  return 0.5 + normalDensity(x) * sum;
}

const QUANTILE_LOWEST = -40;

/** The x with Φ(x) = `probability`, which must be in (0, 1). */
export function normalQuantile(probability: number): number {
  assert(probability > 0 && probability < 1, 'a quantile of the normal needs a probability between zero and one');
  if (probability > 0.5) return -normalQuantile(1 - probability);
  return bisect(QUANTILE_LOWEST, 0, (x) => normalCdf(x) >= probability);
}

/** The smallest number in [low, high], to the last bit, from which `holds` is true; `high` where it never is. `holds` must not turn back. */
export function bisect(low: number, high: number, holds: (x: number) => boolean): number {
  let below = low;
  let above = high;
  for (;;) {
    const middle = below + (above - below) / 2;
    if (middle <= below || middle >= above) return above;
    if (holds(middle)) above = middle;
    else below = middle;
  }
}
