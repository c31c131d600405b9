/** `cofferdam probe`: the plan, the run and its reports. */
import { existsSync } from 'node:fs';
import { assess } from '../audit/assess.js';
import { gather } from '../audit/gather/gather.js';
import { RULES } from '../audit/registry.js';
import { SystemClock } from '../base/clock.js';
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { checkOutputs } from '../findings/outputs.js';
import { readRun } from '../probe/convert.js';
import { appendJournal, type Journal, openJournal } from '../probe/journal.js';
import { NOTHING_TOLD, type Told } from '../probe/knowledge.js';
import type { Knowledge } from '../probe/lab.js';
import { planLines } from '../probe/plan.js';
import { Progress } from '../probe/progress.js';
import { RecordBuilder } from '../probe/record.js';
import { EXPERIMENTS } from '../probe/registry.js';
import { type FirstHit, openScript, replaysBetter, type ScriptFile, scriptOf } from '../probe/repro.js';
import { type Earlier, earlierOf, NOTHING_EARLIER } from '../probe/resume.js';
import { type PlannedExperiment, type RunControl, runProbe } from '../probe/run.js';
import { exitCodeOfProbe } from '../probe/verdict.js';
import { type CliIo, EXIT } from './io.js';
import type { ProbeVerbOptions } from './probe-options.js';
import { writeProbeReports } from './probe-report.js';

/** Resolves with the exit code. */
export async function runProbeVerb(options: ProbeVerbOptions, io: CliIo, version: string): Promise<number> {
  if (!options.loopback && !options.yes && !options.dryRun && io.ask === undefined) {
    throw new CodedError(
      'usage',
      'Expected `--yes` with an endpoint beyond loopback where nobody can be asked, got none. `--dry-run` prints the plan.',
    );
  }
  await checkOutputs(options.outputs);
  const run = new VerbRun(options, io, version);
  return run.run();
}

/** One call of the verb: what is open while it runs. */
class VerbRun {
  readonly #options: ProbeVerbOptions;
  readonly #io: CliIo;
  readonly #version: string;
  readonly #clock = new SystemClock();
  #builder = new RecordBuilder();
  readonly #progress: Progress;
  #control: RunControl | null = null;
  /** Why the record ends before the run did; null: it does not. */
  #unwritten: string | null = null;
  #firstHit: FirstHit | null = null;

  constructor(options: ProbeVerbOptions, io: CliIo, version: string) {
    this.#options = options;
    this.#io = io;
    this.#version = version;
    this.#progress = new Progress(this.#clock, {
      write: (text) => io.err(text),
      isTerminal: io.errIsTerminal ?? false,
      columns: Number(io.variables.COLUMNS ?? 100) || 100,
    });
  }

  async run(): Promise<number> {
    const options = this.#options;
    const script = options.repro === null || options.dryRun ? null : openScript(options.repro);
    let journal: Journal | null = null;
    try {
      const [earlier, opened] = this.#open();
      journal = opened;
      await this.#probe(earlier, journal);
      const record = this.#builder.result()!;
      if (options.dryRun) return record.knowledge === null ? EXIT.unchecked : EXIT.clean;
      await writeProbeReports(record, options.outputs, this.#io);
      if (script !== null) this.#writeScript(script);
      return exitCodeOfProbe(record.verdict);
    } finally {
      script?.close();
      journal?.close();
    }
  }

  async #probe(earlier: Earlier, journal: Journal): Promise<void> {
    const { target, only, limits, seed, bound, keepText, allowDestructive, dryRun } = this.#options;
    let signals: SignalStop | null = null;
    try {
      const outcome = await runProbe({
        target,
        told: await readEngines(this.#options, this.#clock),
        experiments: EXPERIMENTS.filter(({ name }) => only.includes(name)),
        limits,
        seed,
        bound,
        keepText,
        allowDestructive,
        interactive: this.#io.ask !== undefined,
        version: this.#version,
        clock: this.#clock,
        journal: { write: (record) => this.#write(record, journal), close: () => {} },
        earlier,
        confirm: (plan, knowledge) => this.#confirm(plan, knowledge),
        say: (line) => this.#progress.say(line),
        onStart: (control) => {
          this.#control = control;
          signals = new SignalStop(control, this.#progress);
        },
        onHit: (hit, requests) => {
          if (replaysBetter(this.#firstHit, { hit, requests })) this.#firstHit = { hit, requests };
        },
      });
      if (outcome.stopped !== null && !(dryRun && outcome.knowledge !== null))
        this.#progress.say(`stopped: ${outcome.stopped}`);
    } finally {
      this.#progress.clear();
      (signals as SignalStop | null)?.remove();
    }
  }

  /** What can not be written ends the run, and is reported all the same. */
  #write(record: Parameters<Journal['write']>[0], journal: Journal): void {
    try {
      if (this.#unwritten === null) journal.write(record);
    } catch (thrown) {
      const { code } = thrown as NodeJS.ErrnoException;
      if (code === undefined) throw thrown;
      this.#unwritten = `the record of the run can not be written (${code})`;
      this.#control?.stop(this.#unwritten);
    }
    this.#builder.take(record);
    this.#progress.take(record);
  }

  /** The earlier record, where there is one, and the file to write to. A dry run writes none that was not named. */
  #open(): [Earlier, Journal] {
    const { resume, record, dryRun, target } = this.#options;
    if (resume === null) return [NOTHING_EARLIER, this.#newJournal(record, dryRun)];
    const before = readRun(resume, '--resume');
    const earlier = earlierOf(before, target);
    for (const note of before.notes) this.#io.err(`note: ${note}\n`);
    const names = earlier.results.map(({ name }) => name);
    this.#io.err(`taken over from ${shown(resume)}: ${names.length === 0 ? 'no experiment' : names.join(', ')}\n`);
    if (dryRun || record !== null) return [earlier, this.#newJournal(record, dryRun)];
    this.#builder = before.builder;
    return [earlier, appendJournal(resume, before.wholeBytes, before.endsInLine)];
  }

  #newJournal(record: string | null, dryRun: boolean): Journal {
    if (dryRun && record === null) return { write: () => {}, close: () => {} };
    const path = record ?? freeName(this.#clock);
    const journal = openJournal(path);
    this.#io.err(`record: ${path}\n`);
    return journal;
  }

  async #confirm(plan: readonly PlannedExperiment[], knowledge: Knowledge): Promise<boolean> {
    const { limits, price, bound, dryRun, yes, loopback } = this.#options;
    const { spent } = this.#control!.budget;
    for (const line of planLines(plan, { knowledge, limits, spent, price, bound })) this.#progress.say(line);
    if (dryRun) return false;
    this.#progress.plan(plan);
    if (yes || loopback || this.#io.ask === undefined) return true;
    const answer = await this.#io.ask('Send all this to the endpoint? [y/N] ');
    return /^y(?:es)?$/i.test(answer?.trim() ?? '');
  }

  #writeScript(script: ScriptFile): void {
    const { repro, target } = this.#options;
    if (this.#firstHit === null) this.#io.err('note: no hit of this run can be replayed, so there is no script\n');
    else {
      script.write(scriptOf(target, this.#firstHit, this.#version));
      this.#io.err(`script: ${repro}\n`);
    }
  }
}

/** The first signal ends the run and reports what was done; the next one ends the process, as always. */
class SignalStop {
  readonly #stop: () => void;

  constructor(control: RunControl, progress: Progress) {
    this.#stop = () => {
      this.remove();
      progress.say('stopping: what was done is reported; once more ends at once');
      control.stop('the operator stopped it');
    };
    process.once('SIGINT', this.#stop).once('SIGTERM', this.#stop);
  }

  remove(): void {
    process.off('SIGINT', this.#stop).off('SIGTERM', this.#stop);
  }
}

function freeName(clock: SystemClock): string {
  const stamp = new Date(clock.wallMs()).toISOString().replace(/[-:]/g, '').replace(/\..*/, '');
  for (let i = 1; ; i++) {
    const name = `probe-${stamp}${i === 1 ? '' : `-${i}`}.jsonl`;
    if (!existsSync(name)) return name;
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
