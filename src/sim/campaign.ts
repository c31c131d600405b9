/** Many worlds, one after another, for a time or a number of them, on one thread or several. */
import { Worker } from 'node:worker_threads';
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

/** The project's budget is two cores. */
export const SIM_THREADS_DEFAULT = 2;
const SEEDS = 2 ** 32;

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

/** In this thread where one is enough. */
export async function runCampaign(campaign: SimCampaign, threads: number): Promise<SimReport> {
  const stop = new SharedArrayBuffer(4);
  const stride = Math.max(1, Math.min(threads, campaign.worldsMax));
  if (stride === 1) return runShare({ campaign, first: 0, stride, stop });
  const shares = Array.from({ length: stride }, (_, first): Share => ({ campaign, first, stride, stop }));
  return (await Promise.all(shares.map((share) => onThread(share)))).reduce((one, other) => ({
    worlds: one.worlds + other.worlds,
    counts: sum(one.counts, other.counts),
    failed: earlier(one.failed, other.failed, campaign.options.seed),
    hash: null,
    wallMs: Math.max(one.wallMs, other.wallMs),
    cpuS: one.cpuS + other.cpuS,
  }));
}

function onThread(share: Share): Promise<SimReport> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./sim-worker.js', import.meta.url), { workerData: share });
    let report: SimReport | null = null;
    worker.on('message', (message: SimReport) => {
      report = message;
    });
    worker.on('error', reject);
    worker.on('exit', (code) => {
      if (report !== null) resolve(report);
      else reject(new Error(`a thread of the simulator ended with code ${code} and without a report`));
    });
  });
}

function earlier(one: SimResult | null, other: SimResult | null, from: number): SimResult | null {
  if (one === null || other === null) return one ?? other;
  const age = ({ seed }: SimResult): number => (seed - from + SEEDS) % SEEDS;
  return age(one) <= age(other) ? one : other;
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

function sum(one: SimCounts, other: SimCounts): SimCounts {
  const total = zeroCounts();
  for (const name of Object.keys(total) as (keyof SimCounts)[]) total[name] = one[name] + other[name];
  return total;
}
