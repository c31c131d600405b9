import { assert } from '../base/assert.js';

/** Latest latencies kept for percentiles, in each of two windows: 8 KB, and at 500 requests a second the last two seconds. */
export const LATENCY_SAMPLES_MAX = 1024;

/** Milliseconds; null while there is none. */
export interface LatencySummary {
  /** All there ever were. */
  readonly count: number;
  /** How many of the latest the percentiles are over. */
  readonly samples: number;
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
}

/** The latest latencies, exact: a store for each request, and sorting only when somebody looks. */
export class LatencyWindow {
  /** Milliseconds (LATENCY_SAMPLES_MAX); a ring. */
  readonly #ring = new Float64Array(LATENCY_SAMPLES_MAX);
  #count = 0;

  add(ms: number): void {
    this.#ring[this.#count % LATENCY_SAMPLES_MAX] = ms;
    this.#count++;
  }

  summary(): LatencySummary {
    const samples = Math.min(this.#count, LATENCY_SAMPLES_MAX);
    const sorted = this.#ring.slice(0, samples).sort();
    const at = (share: number): number | null => (samples === 0 ? null : nearestRank(sorted, share));
    return { count: this.#count, samples, p50: at(0.5), p95: at(0.95), p99: at(0.99) };
  }
}

/** The smallest value that at least `share` of all do not exceed. */
function nearestRank(sorted: Float64Array, share: number): number {
  assert(sorted.length > 0 && share > 0 && share <= 1, 'a percentile is of something, and above zero');
  return sorted[Math.ceil(sorted.length * share) - 1]!;
}
