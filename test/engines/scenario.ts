/** What a scenario is, and what it says of itself. */
import type { Clock } from '../../src/base/clock.js';
import type { Prng } from '../../src/base/prng.js';
import type { Folder } from './folder.js';
import type { Processes } from './processes.js';

/** `direct`: what the engine, or today's balancer before it, does. `through`: the same with Cofferdam in front. */
export const SIDES = ['direct', 'through'] as const;
export type Side = (typeof SIDES)[number];

/** One thing that was tried. Sentences hold lengths, counts, states and tenants' names. */
export interface Row {
  readonly side: Side;
  readonly sent: string;
  readonly cameBack: string;
  /** What did not reach an engine or a tenant; empty: nothing was. */
  readonly heldBack: string;
  /** Direct: the fault showed itself. Through Cofferdam: it did not. */
  readonly isAsExpected: boolean;
}

export interface Bench {
  readonly folder: Folder;
  readonly processes: Processes;
  readonly clock: Clock;
  readonly chance: Prng;
  readonly sides: readonly Side[];
  /** Engines under a name of their set-up: those of the scenario before where that was the same, else new ones. */
  engines<T>(setUp: string, start: () => Promise<T>): Promise<T>;
  /** A line for whoever waits, on standard error. */
  readonly say: (text: string) => void;
  readonly row: (row: Row) => void;
}

export interface Scenario {
  readonly name: string;
  /** One sentence. */
  readonly title: string;
  /** Engines with their versions. */
  readonly engines: string;
  /** Notes its rows as they come. Throws `CouldNotRun` where something it needs is not there. */
  run(bench: Bench): Promise<void>;
}

export interface ScenarioReport {
  readonly name: string;
  readonly title: string;
  readonly engines: string;
  /** ISO 8601, UTC. */
  readonly startedAt: string;
  readonly seconds: number;
  readonly rows: readonly Row[];
  /** Why it could not run, or not to its end; null: it did. */
  readonly couldNotRun: string | null;
}
