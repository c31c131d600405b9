/**
 * Goal: what Cofferdam promises in front of real engines is shown on them. Method: each engine is installed from public registries, serves
 * the lab model on this machine's CPU, and is asked the same thing twice: as today's balancers ask it, and through Cofferdam.
 *
 *   npm run test:engines                          every scenario, one after the other
 *   npm run test:engines -- sglang-pd llama-pool  these
 *   npm run test:engines -- --help                the options
 *
 * Exit codes: 0 every row is as expected, 1 one is not, 2 wrong usage, 3 something could not run.
 */
import { SystemClock } from '../../src/base/clock.js';
import { Prng } from '../../src/base/prng.js';
import { EngineSets } from './engine-sets.js';
import { openFolder } from './folder.js';
import { HELP, type Options, parseOptions } from './options.js';
import { Processes } from './processes.js';
import { reportText } from './report.js';
import { CouldNotRun } from './could-not-run.js';
import type { Bench, Row, Scenario, ScenarioReport } from './scenario.js';
import { SCENARIOS } from './scenarios.js';

const clock = new SystemClock();
const say = (text: string): void => void process.stderr.write(`${new Date(clock.wallMs()).toISOString()} ${text}\n`);

async function runOne(
  scenario: Scenario,
  options: Options,
  processes: Processes,
  sets: EngineSets,
): Promise<ScenarioReport> {
  const { name, title, engines } = scenario;
  const rows: Row[] = [];
  const startMs = clock.nowMs();
  const startedAt = new Date(clock.wallMs()).toISOString();
  const bench: Bench = {
    folder: openFolder(options.folder),
    processes,
    clock,
    chance: new Prng(options.seed),
    sides: options.sides,
    engines: (setUp, start) => sets.get(setUp, start),
    say,
    row: (row) => {
      rows.push(row);
      say(
        `${row.isAsExpected ? 'as expected' : 'NOT AS EXPECTED'} | ${row.side} | ${row.sent} | ${row.cameBack} | ${row.heldBack}`,
      );
    },
  };
  say(`${name}: ${title}`);
  let couldNotRun: string | null = null;
  try {
    await scenario.run(bench);
  } catch (thrown) {
    if (!(thrown instanceof CouldNotRun))
      say(thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown));
    couldNotRun = thrown instanceof Error ? thrown.message : String(thrown);
    say(`could not run: ${couldNotRun}`);
    // In what state they are is not known.
    await sets.end();
  }
  await sets.endOthers();
  const seconds = Math.round((clock.nowMs() - startMs) / 1000);
  return { name, title, engines, startedAt, seconds, rows, couldNotRun };
}

async function main(options: Options): Promise<number> {
  const folder = openFolder(options.folder);
  const logs = folder.logs(new Date(clock.wallMs()).toISOString().replaceAll(/[-:]|\.\d+/g, ''));
  const processes = new Processes(clock, logs, say);
  const sets = new EngineSets(processes);
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(name, () => {
      processes.kill();
      process.kill(process.pid, name);
    });
  }
  process.on('exit', () => processes.kill());
  say(`seed ${options.seed}, logs in ${logs}`);
  const reports: ScenarioReport[] = [];
  for (const scenario of SCENARIOS.filter(({ name }) => options.names.includes(name))) {
    reports.push(await runOne(scenario, options, processes, sets));
  }
  await sets.end();
  process.stdout.write(reportText(reports, options));
  if (reports.some(({ rows }) => rows.some(({ isAsExpected }) => !isAsExpected))) return 1;
  return reports.some(({ couldNotRun }) => couldNotRun !== null) ? 3 : 0;
}

const parsed = parseOptions(process.argv.slice(2), SCENARIOS);
if (parsed.kind === 'help') process.stdout.write(HELP(SCENARIOS));
else if (parsed.kind === 'wrong') {
  process.stderr.write(`${parsed.why}\n`);
  process.exitCode = 2;
} else process.exitCode = await main(parsed.options);
