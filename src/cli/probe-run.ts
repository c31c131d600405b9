/** `cofferdam probe`: the plan, the run and its report. */
import { gather } from '../audit/gather/gather.js';
import { assess } from '../audit/assess.js';
import { RULES } from '../audit/registry.js';
import { SystemClock } from '../base/clock.js';
import { NOTHING_TOLD, type Told } from '../probe/knowledge.js';
import type { Knowledge } from '../probe/lab.js';
import { openJournal } from '../probe/journal.js';
import { EXPERIMENTS } from '../probe/registry.js';
import { type PlannedExperiment, type ProbeOutcome, runProbe } from '../probe/run.js';
import { exitCodeOfProbe } from '../probe/verdict.js';
import type { CliIo } from './io.js';
import type { ProbeVerbOptions } from './probe-options.js';

/** Resolves with the exit code. */
export async function runProbeVerb(options: ProbeVerbOptions, io: CliIo, version: string): Promise<number> {
  const clock = new SystemClock();
  const told = await readEngines(options, clock);
  const journal = openJournal(options.record ?? `probe-${clock.wallMs()}.jsonl`);
  try {
    const outcome = await runProbe({
      target: options.target,
      told,
      experiments: EXPERIMENTS.filter(({ name }) => options.only.includes(name)),
      limits: options.limits,
      seed: options.seed,
      bound: options.bound,
      keepText: options.keepText,
      allowDestructive: options.allowDestructive,
      version,
      clock,
      journal,
      earlier: [],
      confirm: (plan, knowledge) => Promise.resolve(showPlan(plan, knowledge, io) && !options.dryRun),
      say: (line) => io.err(`${line}\n`),
      onBudget: (budget) => process.once('SIGINT', () => budget.stop('the operator stopped it')),
    });
    show(outcome, io);
    return exitCodeOfProbe(outcome.verdict);
  } finally {
    journal.close();
  }
}

/** White box: what the engines that the operator named say of themselves. */
async function readEngines(options: ProbeVerbOptions, clock: SystemClock): Promise<Told> {
  if (options.engines.length === 0) return { ...NOTHING_TOLD, advertised: options.advertised };
  const fleet = await gather(
    {
      targets: options.engines,
      commands: [],
      pools: [],
      advertised: null,
      headers: new Map(),
      waitMs: 0,
    },
    { clock },
  );
  const { nodes } = assess(fleet, RULES);
  const least = (values: readonly (number | null)[]): number | null => {
    const known = values.filter((value) => value !== null);
    return known.length === 0 ? null : Math.min(...known);
  };
  return {
    advertised: options.advertised ?? least(nodes.map(({ advertised }) => advertised)),
    pool: least(nodes.map(({ pool }) => pool)),
    acceptLimit: least(nodes.map(({ acceptLimit }) => acceptLimit)),
    engine: nodes[0]?.engine ?? null,
    engineVersion: nodes[0]?.version ?? null,
    nodes: nodes.map(({ name }) => name),
  };
}

function showPlan(plan: readonly PlannedExperiment[], knowledge: Knowledge, io: CliIo): boolean {
  io.err(`advertised ${knowledge.advertised ?? 'unknown'}, pool ${knowledge.pool ?? 'unknown'}\n`);
  for (const { name, unfit, plan: each } of plan) {
    io.err(
      unfit === null
        ? `${name}: at most ${each.requests} requests, ${each.tokens} tokens\n`
        : `${name}: not run, ${unfit}\n`,
    );
  }
  return true;
}

function show(outcome: ProbeOutcome, io: CliIo): void {
  io.out(`${JSON.stringify({ verdict: outcome.verdict, experiments: outcome.results }, null, 2)}\n`);
}
