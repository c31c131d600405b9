/** Jobs on worker threads. Each world is explored by one thread; several worlds go on at once. */
import { Worker } from 'node:worker_threads';
import type { Job, JobResult, JobRunner } from './campaign.js';
import type { Exploration } from './explore.js';

/** The project's budget is two cores. */
export const THREADS_DEFAULT = 2;

/** A runner on up to `threads` threads. Jobs start in order; results come back in order. */
export function onThreads(threads: number): JobRunner {
  return async (jobs, onResult) => {
    const results: JobResult[] = [];
    let next = 0;
    const lane = async (): Promise<void> => {
      while (next < jobs.length) {
        const at = next++;
        const job = jobs[at];
        const result = { job, found: await onThread(job) };
        results[at] = result;
        onResult?.(result);
      }
    };
    await Promise.all(Array.from({ length: Math.max(1, Math.min(threads, jobs.length)) }, lane));
    return results;
  };
}

function onThread(job: Job): Promise<Exploration> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./explore-worker.js', import.meta.url), { workerData: job });
    let found: Exploration | null = null;
    worker.on('message', (message: Exploration) => {
      found = message;
    });
    worker.on('error', reject);
    worker.on('exit', (code) => {
      if (found !== null) resolve(found);
      else reject(new Error(`the thread that explored "${job.title}" ended with code ${code} and without a result`));
    });
  });
}
