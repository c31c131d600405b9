/** One run: learn, plan, ask whether to go on, then one experiment after the other; everything goes into the record. */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../base/clock.js';
import { Prng } from '../base/prng.js';
import { Budget, type BudgetLimits, BudgetSpent } from './budget.js';
import { ProbeClient } from './client.js';
import type { Experiment, ExperimentPlan, ExperimentResult, Hit } from './experiment.js';
import type { Journal } from './journal.js';
import { JOURNAL_VERSION } from './journal.js';
import { learn, type Told, UnfitTarget } from './knowledge.js';
import { ForeignContent, type Knowledge, Lab } from './lab.js';
import { UnmeasuredPrompt } from './ruler.js';
import { MarkerBook } from './scan.js';
import type { ProbeTarget } from './target.js';
import { type OverallVerdict, overallVerdict } from './verdict.js';

export interface ProbeRunOptions {
  readonly target: ProbeTarget;
  readonly told: Told;
  readonly experiments: readonly Experiment[];
  readonly limits: BudgetLimits;
  readonly seed: number;
  readonly bound: number;
  readonly keepText: boolean;
  readonly allowDestructive: boolean;
  readonly version: string;
  readonly clock: Clock;
  readonly journal: Journal;
  /** Results of an earlier run that are taken over. */
  readonly earlier: readonly ExperimentResult[];
  /** Called with the plan before the first experiment; false ends the run without sending more. */
  readonly confirm: (plan: readonly PlannedExperiment[], knowledge: Knowledge) => Promise<boolean>;
  readonly say: (line: string) => void;
  /** Handed to whoever may have to stop the run. */
  readonly onBudget?: (budget: Budget) => void;
}

export interface PlannedExperiment {
  readonly name: string;
  readonly required: boolean;
  /** Why it can't be run; null: it can. */
  readonly unfit: string | null;
  readonly plan: ExperimentPlan;
}

export interface ProbeOutcome {
  readonly runId: string;
  readonly startedAt: string;
  readonly verdict: OverallVerdict;
  readonly results: readonly ExperimentResult[];
  readonly hits: readonly Hit[];
  readonly knowledge: Knowledge | null;
  readonly spent: { readonly requests: number; readonly tokens: number };
  /** Why it ended before its end; null: it did not. */
  readonly stopped: string | null;
}

const RUN_ID_BYTES = 8;
const SECRET_BYTES = 32;
const NO_PLAN: ExperimentPlan = { requests: 0, tokens: 0, seconds: null };

/** Never rejects for what an endpoint does; rejects for mistakes of ours. */
export async function runProbe(options: ProbeRunOptions): Promise<ProbeOutcome> {
  const run = new ProbeRun(options);
  try {
    return await run.run();
  } finally {
    run.close();
  }
}

class ProbeRun {
  readonly #options: ProbeRunOptions;
  readonly #client: ProbeClient;
  readonly #budget: Budget;
  readonly #markers: MarkerBook;
  readonly #startMs: number;
  readonly #startedAt: string;
  readonly #runId: string = randomBytes(RUN_ID_BYTES).toString('hex');
  readonly #hits: Hit[] = [];
  #knowledge: Knowledge | null = null;

  constructor(options: ProbeRunOptions) {
    const { clock, target, limits, version } = options;
    this.#options = options;
    this.#startMs = clock.nowMs();
    this.#startedAt = new Date(clock.wallMs()).toISOString();
    this.#client = new ProbeClient(target, clock, version, this.#runId);
    this.#budget = new Budget(limits, () => clock.nowMs());
    this.#markers = new MarkerBook(
      randomBytes(SECRET_BYTES),
      target.tenants.map(({ name }) => name),
    );
    options.onBudget?.(this.#budget);
  }

  close(): void {
    this.#client.close();
  }

  async run(): Promise<ProbeOutcome> {
    this.#writeHeader();
    try {
      this.#knowledge = await this.#learn();
    } catch (thrown) {
      if (!(thrown instanceof UnfitTarget || thrown instanceof BudgetSpent || thrown instanceof ForeignContent))
        throw thrown;
      return this.#outcome([], thrown.message);
    }
    const labs = this.#options.experiments.map((experiment) => this.#lab(experiment.name, this.#knowledge!));
    const plan = this.#options.experiments.map((experiment, i) => planned(experiment, labs[i]!));
    if (!(await this.#options.confirm(plan, this.#knowledge)))
      return this.#outcome([], 'it was not wanted after the plan');
    return this.#experiments(labs);
  }

  async #experiments(labs: readonly Lab[]): Promise<ProbeOutcome> {
    const results: ExperimentResult[] = [];
    let ended: string | null = null;
    for (const [i, experiment] of this.#options.experiments.entries()) {
      const lab = labs[i]!;
      const [result, end] = await this.#resultOf(experiment, lab, ended);
      ended ??= end;
      results.push(result);
      this.#hits.push(...lab.hits);
      this.#options.journal.write({ record: 'experiment', ...result });
      this.#options.say(`${result.name}: ${result.verdict} (${result.sent} answers, ${result.hits} hits)`);
    }
    return this.#outcome(results, ended ?? this.#budget.stopped);
  }

  #resultOf(experiment: Experiment, lab: Lab, ended: string | null): Promise<[ExperimentResult, string | null]> {
    const before = this.#options.earlier.find(({ name }) => name === experiment.name);
    if (before !== undefined) return Promise.resolve([before, null]);
    if (ended !== null) return Promise.resolve([stoppedResult(experiment, lab, ended), null]);
    return this.#one(experiment, lab);
  }

  /** Its result, and why nothing more may be sent after it; null: something may. */
  async #one(experiment: Experiment, lab: Lab): Promise<[ExperimentResult, string | null]> {
    const unfit = experiment.unfit(lab);
    if (unfit !== null) return [emptyResult(experiment.name, 'could-not-run', `not run: ${unfit}`), null];
    this.#options.say(`${experiment.name}: begins`);
    try {
      return [await experiment.run(lab), null];
    } catch (thrown) {
      if (thrown instanceof BudgetSpent) return [stoppedResult(experiment, lab, thrown.message), thrown.message];
      if (thrown instanceof ForeignContent) return [stoppedResult(experiment, lab, thrown.message), thrown.message];
      if (thrown instanceof UnmeasuredPrompt) {
        return [
          emptyResult(experiment.name, 'could-not-run', 'the endpoint stopped saying how many tokens it read'),
          null,
        ];
      }
      throw thrown;
    }
  }

  async #learn(): Promise<Knowledge> {
    const lab = this.#lab('learn', EMPTY_KNOWLEDGE);
    const knowledge = await learn(
      { target: lab.target, ask: (ask) => lab.ask(ask), plain: (ask) => lab.plain(ask) },
      this.#options.told,
    );
    this.#hits.push(...lab.hits);
    return knowledge;
  }

  #lab(experiment: string, knowledge: Knowledge): Lab {
    const { target, journal, clock, seed, keepText, bound, allowDestructive, say } = this.#options;
    return new Lab({
      experiment,
      target,
      knowledge,
      client: this.#client,
      budget: this.#budget,
      journal,
      markers: this.#markers,
      clock,
      chance: new Prng(seed + hashOf(experiment)),
      startMs: this.#startMs,
      keepText,
      bound,
      allowDestructive,
      say,
    });
  }

  #writeHeader(): void {
    const { target, journal, seed, experiments, version } = this.#options;
    journal.write({
      record: 'probe',
      version: JOURNAL_VERSION,
      tool: version,
      runId: this.#runId,
      startedAt: this.#startedAt,
      endpoint: target.origin.origin + target.origin.pathname.replace(/\/$/, ''),
      model: target.model,
      route: target.route,
      tenants: target.tenants.map(({ name }) => name),
      seed,
      experiments: experiments.map(({ name }) => name),
    });
  }

  #outcome(results: readonly ExperimentResult[], stopped: string | null): ProbeOutcome {
    const required = this.#options.experiments.filter((each) => each.required).map(({ name }) => name);
    this.#options.journal.write({ record: 'end', why: stopped });
    return {
      runId: this.#runId,
      startedAt: this.#startedAt,
      verdict: this.#hits.length > 0 ? 'leaks' : overallVerdict(results, required),
      results,
      hits: this.#hits,
      knowledge: this.#knowledge,
      spent: this.#budget.spent,
      stopped,
    };
  }
}

const EMPTY_KNOWLEDGE: Knowledge = {
  advertised: null,
  advertisedFrom: null,
  pool: null,
  acceptLimit: null,
  engine: null,
  engineVersion: null,
  ruler: null,
  codeCharactersPerToken: null,
  streams: false,
  smallMs: null,
  nodes: [],
};

function planned(experiment: Experiment, lab: Lab): PlannedExperiment {
  const unfit = experiment.unfit(lab);
  const { name, required } = experiment;
  return { name, required, unfit, plan: unfit === null ? experiment.plan(lab) : NO_PLAN };
}

export function emptyResult(name: string, verdict: ExperimentResult['verdict'], why: string): ExperimentResult {
  return { name, verdict, sent: 0, hits: 0, bound: null, control: why, evidence: [] };
}

/** What an experiment that was stopped can still say: hits are hits, anything else is no power. */
function stoppedResult(experiment: Experiment, lab: Lab, why: string): ExperimentResult {
  return {
    name: experiment.name,
    verdict: lab.hits.length > 0 ? 'leaks' : 'no-power',
    sent: lab.answers,
    hits: lab.hits.length,
    bound: null,
    control: `not judged: stopped, since ${why}`,
    evidence: [],
  };
}

/** So that each experiment has chance of its own, whichever others run. */
function hashOf(name: string): number {
  let hash = 0;
  for (const char of name) hash = (Math.imul(hash, 31) + char.charCodeAt(0)) | 0;
  return hash;
}
