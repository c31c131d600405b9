/** What a worker thread runs: one job, one result. */
import { parentPort, workerData } from 'node:worker_threads';
import { type Job, runJob } from './campaign.js';

parentPort?.postMessage(runJob(workerData as Job));
