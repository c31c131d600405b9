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
import { ForeignContent, type HitRequests, type Knowledge, Lab, Throttled } from './lab.js';
import { type Earlier, endpointOf } from './resume.js';
import type { PlannedExperiment } from './result.js';
import { UnmeasuredPrompt } from './ruler.js';
import { MarkerBook } from './scan.js';
import type { ProbeTarget } from './target.js';
import { type OverallVerdict, verdictOfRun } from './verdict.js';

export type { PlannedExperiment } from './result.js';

export interface ProbeRunOptions {
  readonly target: ProbeTarget;
  readonly told: Told;
  readonly experiments: readonly Experiment[];
  readonly limits: BudgetLimits;
  readonly seed: number;
  readonly bound: number;
  readonly keepText: boolean;
  readonly allowDestructive: boolean;
  /** Whether an operator reads what is said and can act on it. @default false */
  readonly interactive?: boolean;
  readonly version: string;
  readonly clock: Clock;
  readonly journal: Journal;
  /** What is taken over of an earlier run; its results and hits are written into this record too. */
  readonly earlier: Earlier;
  /** Called with the plan before the first experiment; false ends the run without sending more. */
  readonly confirm: (plan: readonly PlannedExperiment[], knowledge: Knowledge) => Promise<boolean>;
  readonly say: (line: string) => void;
  /** Handed to whoever may have to stop the run: what is open is left, and nothing more is sent. */
  readonly onStart?: (control: RunControl) => void;
  /** Hears of each hit, with the requests that may be replayed. */
  readonly onHit?: (hit: Hit, requests: HitRequests) => void;
}

export interface RunControl {
  readonly budget: Budget;
  stop(why: string): void;
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
    await run.close();
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
  readonly #labs: Lab[] = [];
  #knowledge: Knowledge | null = null;

  constructor(options: ProbeRunOptions) {
    const { clock, target, limits, version } = options;
    this.#options = options;
    this.#startMs = clock.nowMs();
    this.#startedAt = new Date(clock.wallMs()).toISOString();
    this.#client = new ProbeClient(target, clock, version, this.#runId, options.earlier.lastId);
    this.#budget = new Budget(limits, () => clock.nowMs());
    this.#markers = new MarkerBook(
      randomBytes(SECRET_BYTES),
      target.tenants.map(({ name }) => name),
    );
    const stop = (why: string): void => {
      this.#budget.stop(why);
      this.#client.leaveAll();
    };
    options.onStart?.({ budget: this.#budget, stop });
  }

  /** Nothing writes into the record any more. */
  async close(): Promise<void> {
    for (const lab of this.#labs) await lab.close();
    this.#client.close();
  }

  async run(): Promise<ProbeOutcome> {
    const { experiments, earlier, journal } = this.#options;
    this.#writeHeader();
    for (const hit of earlier.hits) journal.write({ record: 'hit', ...hit });
    try {
      this.#knowledge = await this.#learn();
    } catch (thrown) {
      if (!isEnd(thrown) && !(thrown instanceof UnfitTarget)) throw thrown;
      const results = experiments.map(({ name }) => emptyResult(name, 'could-not-run', `not run: ${thrown.message}`));
      for (const result of results) journal.write({ record: 'experiment', ...result });
      return this.#outcome(results, thrown.message);
    }
    const labs = experiments.map((experiment) => this.#lab(experiment.name, this.#knowledge!));
    const required = this.#required;
    const plan = experiments.map((experiment, i) => planned(experiment, labs[i]!, required.includes(experiment.name)));
    this.#writePlan(plan, this.#knowledge);
    const left = plan.filter(({ name }) => !earlier.results.some((result) => result.name === name));
    if (!(await this.#options.confirm(left, this.#knowledge)))
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
      this.#options.journal.write({ record: 'experiment', ...result });
      this.#options.say(`${result.name}: ${result.verdict} (${result.sent} answers, ${result.hits} hits)`);
    }
    return this.#outcome(results, ended ?? this.#budget.stopped);
  }

  #resultOf(experiment: Experiment, lab: Lab, ended: string | null): Promise<[ExperimentResult, string | null]> {
    const before = this.#options.earlier.results.find(({ name }) => name === experiment.name);
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
      // What is still open may hold hits, which count.
      await lab.close();
      // The next one may fare better.
      if (thrown instanceof Throttled) return [stoppedResult(experiment, lab, thrown.message), null];
      if (isEnd(thrown)) return [stoppedResult(experiment, lab, thrown.message), thrown.message];
      if (thrown instanceof UnmeasuredPrompt) {
        return [
          emptyResult(experiment.name, 'could-not-run', 'the endpoint stopped saying how many tokens it read'),
          null,
        ];
      }
      throw thrown;
    } finally {
      await lab.close();
    }
  }

  /** What measures prompts later on goes through the same lab, which is open until the end. */
  #learn(): Promise<Knowledge> {
    const lab = this.#lab('learn', EMPTY_KNOWLEDGE);
    return learn(
      {
        target: lab.target,
        nowMs: () => lab.clock.nowMs(),
        ask: (ask) => lab.ask(ask),
        plain: (ask) => lab.plain(ask),
      },
      this.#options.told,
    );
  }

  #lab(experiment: string, knowledge: Knowledge): Lab {
    const {
      target,
      journal,
      clock,
      seed,
      keepText,
      bound,
      allowDestructive,
      interactive = false,
      say,
      onHit,
    } = this.#options;
    const lab = new Lab({
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
      interactive,
      say,
      ...(onHit === undefined ? {} : { onHit }),
    });
    this.#labs.push(lab);
    return lab;
  }

  #writeHeader(): void {
    const { target, journal, seed, experiments, version, bound } = this.#options;
    journal.write({
      record: 'probe',
      version: JOURNAL_VERSION,
      tool: version,
      runId: this.#runId,
      startedAt: this.#startedAt,
      endpoint: endpointOf(target),
      model: target.model,
      route: target.route,
      tenants: target.tenants.map(({ name }) => name),
      seed,
      experiments: experiments.map(({ name }) => name),
      required: this.#required,
      bound,
    });
  }

  /** Those that the verdict is drawn from: where none of the required ones was asked for, those that were. */
  get #required(): readonly string[] {
    const { experiments } = this.#options;
    const required = experiments.filter((each) => each.required);
    return (required.length > 0 ? required : experiments).map(({ name }) => name);
  }

  #writePlan(plan: readonly PlannedExperiment[], knowledge: Knowledge): void {
    const { journal, experiments } = this.#options;
    const { advertised, advertisedFrom, pool, acceptLimit, engine, engineVersion, nodes, ruler, streams, smallMs } =
      knowledge;
    journal.write({
      record: 'knowledge',
      advertised,
      advertisedFrom,
      pool,
      acceptLimit,
      engine,
      engineVersion,
      nodes,
      counts: ruler !== null,
      streams,
      smallMs,
    });
    const withMethod = plan.map((each, i) => ({ ...each, method: experiments[i]!.method }));
    journal.write({ record: 'plan', experiments: withMethod });
  }

  async #outcome(results: readonly ExperimentResult[], stopped: string | null): Promise<ProbeOutcome> {
    await this.close();
    const hits = [...this.#options.earlier.hits, ...this.#labs.flatMap((lab) => lab.hits)];
    this.#options.journal.write({ record: 'end', why: stopped });
    return {
      runId: this.#runId,
      startedAt: this.#startedAt,
      verdict: verdictOfRun(results, this.#required, hits.length),
      results,
      hits,
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

function planned(experiment: Experiment, lab: Lab, required: boolean): PlannedExperiment {
  const unfit = experiment.unfit(lab);
  const { name } = experiment;
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
    unfinished: true,
  };
}

/** What ends an experiment from outside of it. */
function isEnd(thrown: unknown): thrown is Error {
  return thrown instanceof BudgetSpent || thrown instanceof ForeignContent || thrown instanceof Throttled;
}

/** So that each experiment has chance of its own, whichever others run. */
function hashOf(name: string): number {
  let hash = 0;
  for (const char of name) hash = (Math.imul(hash, 31) + char.charCodeAt(0)) | 0;
  return hash;
}
