/** Worlds one after another in one thread, for a time or a number of them. */
import { SystemClock } from '../base/clock.js';
import { threadCpuS } from '../base/cpu.js';
import type { SimOptions } from './plan.js';
import { type SimCounts, type SimResult, simulate } from './world.js';

export interface SimCampaign {
  /** Its seed is the first one; each world takes the next. */
  readonly options: SimOptions;
  readonly worldsMax: number;
  /** Worlds are begun until then; null: as many as `worldsMax`. */
  readonly durationMs: number | null;
}

export interface SimReport {
  readonly worlds: number;
  readonly counts: SimCounts;
  /** Of the world with the lowest seed that broke; null: none did. */
  readonly failed: SimResult | null;
  /** Of the only world; null: there were several. */
  readonly hash: string | null;
  readonly wallMs: number;
  /** Of all threads together. */
  readonly cpuS: number;
}

/** The part of a campaign that one thread runs: every `stride`-th world, from `first` on. */
export interface Share {
  readonly campaign: SimCampaign;
  readonly first: number;
  readonly stride: number;
  /** One cell, above zero once some thread has found a violation. */
  readonly stop: SharedArrayBuffer;
}

/** Seeds go round. */
export const SEEDS: number = 2 ** 32;

export function runShare({ campaign, first, stride, stop }: Share): SimReport {
  const { options, worldsMax, durationMs } = campaign;
  const clock = new SystemClock();
  const cell = new Int32Array(stop);
  const startMs = clock.nowMs();
  const startCpuS = threadCpuS();
  let counts = zeroCounts();
  let failed: SimResult | null = null;
  let hash: string | null = null;
  let worlds = 0;
  for (let index = first; index < worldsMax && failed === null; index += stride) {
    if (Atomics.load(cell, 0) > 0 || (durationMs !== null && clock.nowMs() - startMs >= durationMs)) break;
    const result = simulate({ ...options, seed: (options.seed + index) % SEEDS });
    worlds++;
    counts = sum(counts, result.counts);
    hash = worlds === 1 ? result.hash : null;
    if (result.violation === null) continue;
    failed = result;
    Atomics.store(cell, 0, 1);
  }
  return { worlds, counts, failed, hash, wallMs: clock.nowMs() - startMs, cpuS: threadCpuS() - startCpuS };
}

function zeroCounts(): SimCounts {
  return {
    finished: 0,
    refused: 0,
    failed: 0,
    aborted: 0,
    turnedAway: 0,
    cachedTokens: 0,
    spoiled: 0,
    requests: 0,
    steps: 0,
    lost: 0,
    repeated: 0,
    overtaken: 0,
    landed: 0,
    refusedWrites: 0,
    restarts: 0,
  };
}

export function sum(one: SimCounts, other: SimCounts): SimCounts {
  const total = zeroCounts();
  for (const name of Object.keys(total) as (keyof SimCounts)[]) total[name] = one[name] + other[name];
  return total;
}
