/** Many worlds on one thread or several: every thread has its share of the seeds. */
import { Worker } from 'node:worker_threads';
import { runShare, SEEDS, type Share, type SimCampaign, type SimReport, sum } from './share.js';
import type { SimResult } from './world.js';

/** The project's budget is two cores. */
export const SIM_THREADS_DEFAULT = 2;
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
