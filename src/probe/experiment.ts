import type { Lab } from './lab.js';
import type { ExperimentResult, Method } from './result.js';

export type { ExperimentResult, ExperimentVerdict, Hit } from './result.js';

export interface ExperimentPlan {
  readonly requests: number;
  readonly tokens: number;
  /** A guess from one small request's time; null: nothing was measured. */
  readonly seconds: number | null;
}

/** One file each in `experiments/`. */
export interface Experiment {
  readonly name: string;
  /** Run by default, and counted in the overall verdict; one that is not counts where none of these was asked for. */
  readonly required: boolean;
  /** What it does, what its control is, what it can tell and what it can not: one sentence each, for people. */
  readonly method: Method;
  /** Why it can not be run against this target; null: it can. */
  unfit(lab: Lab): string | null;
  /** What it will send at most. */
  plan(lab: Lab): ExperimentPlan;
  /** Throws BudgetSpent where it was stopped; whatever it wrote into `lab` before stays. */
  run(lab: Lab): Promise<ExperimentResult>;
}
