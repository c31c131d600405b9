import type { Experiment } from './experiment.js';
import { boundary } from './experiments/boundary.js';

/** Every experiment, in the order in which they run. */
export const EXPERIMENTS: readonly Experiment[] = [boundary];
