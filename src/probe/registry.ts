import type { Experiment } from './experiment.js';
import { abortStorm } from './experiments/abort-storm.js';
import { boundary } from './experiments/boundary.js';
import { canary } from './experiments/canary.js';
import { handles } from './experiments/handles.js';
import { longContext } from './experiments/long-context.js';
import { parkAndReturn } from './experiments/park-and-return.js';
import { prefixTiming } from './experiments/prefix-timing.js';
import { restart } from './experiments/restart.js';
import { starve } from './experiments/starve.js';

/** Every experiment, in the order in which they run. */
export const EXPERIMENTS: readonly Experiment[] = [
  boundary,
  canary,
  abortStorm,
  handles,
  starve,
  prefixTiming,
  parkAndReturn,
  longContext,
  restart,
];
