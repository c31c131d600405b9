/** Samples in a few numbers, and as a picture. */
import { assert } from '../../base/assert.js';

/** The quantile `share` (0 to 1) of a sample, between two values by straight line (Hyndman and Fan 1996, type 7). In the sample's unit. */
export function quantile(sample: readonly number[], share: number): number {
  assert(sample.length > 0, 'a quantile needs at least one value');
  assert(share >= 0 && share <= 1, 'a quantile is named by a share from zero to one');
  const sorted = Float64Array.from(sample).sort();
  const at = share * (sorted.length - 1);
  const low = Math.floor(at);
  const value = sorted[low]!;
  return value + (at - low) * ((sorted[low + 1] ?? value) - value);
}

export interface Histogram {
  /** One more than counts, rising, in the sample's unit. */
  readonly edges: readonly number[];
  readonly counts: readonly number[];
}

/**
 * Counts in `bins` equal bins over [low, high], by default the sample's own range. A bin has its lower edge, the last one both;
 * what lies outside is not counted. A range of no width is widened by one half to both sides.
 */
export function histogram(
  sample: readonly number[],
  bins: number,
  range: readonly [low: number, high: number] = extent(sample),
): Histogram {
  assert(Number.isSafeInteger(bins) && bins > 0, 'a histogram needs at least one bin');
  assert(range[0] <= range[1], 'the range of a histogram must rise');
  const [low, high] = range[0] === range[1] ? [range[0] - 0.5, range[1] + 0.5] : range;
  const edges = Array.from({ length: bins + 1 }, (_, i) => (i === bins ? high : low + ((high - low) * i) / bins));
  const counts = Array.from({ length: bins }, () => 0);
  for (const value of sample) {
    if (!(value >= low && value <= high)) continue;
    let bin = Math.min(bins - 1, Math.floor(((value - low) / (high - low)) * bins));
    // Rounding may put a value on an edge into the bin beside its own.
    if (value < edges[bin]!) bin--;
    else if (bin < bins - 1 && value >= edges[bin + 1]!) bin++;
    counts[bin]!++;
  }
  return { edges, counts };
}

/** The smallest and the largest value, of one sample or of several together: the common range of pictures side by side. */
export function extent(...samples: readonly (readonly number[])[]): [low: number, high: number] {
  let low = Infinity;
  let high = -Infinity;
  for (const value of samples.flat()) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  assert(low <= high, 'a range needs at least one value');
  return [low, high];
}
