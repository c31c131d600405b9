/** What a worker thread of the simulator runs: its share of the worlds, one report. */
import { parentPort, workerData } from 'node:worker_threads';
import { runShare, type Share } from './share.js';

parentPort?.postMessage(runShare(workerData as Share));
