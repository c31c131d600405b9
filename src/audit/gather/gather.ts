/** From targets to a fleet. */
import type { Clock } from '../../base/clock.js';
import type { Fleet } from '../facts.js';

export interface GatherOptions {
  /** URLs, files, folders. */
  readonly targets: readonly string[];
}

export interface GatherWorld {
  readonly clock: Clock;
}

export function gather(_options: GatherOptions, _world: GatherWorld): Promise<Fleet> {
  return Promise.resolve({ nodes: [], skipped: [], disagreements: [] });
}
