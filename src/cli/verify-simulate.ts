/** `cofferdam verify --simulate`: seeded worlds of the code that runs; a world that breaks is shrunk and told with the line that replays it. */
import { CATALOGUE, guardsAgainst } from '../handoff/faults.js';
import { ALL_GUARDS } from '../handoff/guards.js';
import { runCampaign, SIM_THREADS_DEFAULT } from '../sim/campaign.js';
import type { SimOptions } from '../sim/plan.js';
import { replayLine, shrink, type Shrunk } from '../sim/shrink.js';
import type { SimReport } from '../sim/share.js';
import { simulate } from '../sim/world.js';
import type { VerifyFlags } from './flags.js';
import { type CliIo, EXIT } from './io.js';
import { parseSimulateOptions, type SimulateOptions } from './simulate-options.js';

type Side = 'on' | 'off';

/** A campaign with its guards on or off. */
interface Run {
  readonly side: Side;
  readonly report: SimReport;
  readonly shrunk: Shrunk | null;
}

/** Resolves with the exit code: 0 nothing broke (and the fault was found), 1 something did, or the fault was missed. */
export async function runSimulate(flags: VerifyFlags, io: CliIo): Promise<number> {
  const options = parseSimulateOptions(flags);
  if (options.output === 'trace') return writeTrace(options, io);
  const runs: Run[] = [];
  for (const side of sidesOf(options)) {
    const run = await runSide(options, side);
    runs.push(run);
    if (options.output === 'table') io.out(`${runLines(options, run).join('\n')}\n`);
  }
  const verdict = verdictOf(options, runs);
  if (options.output === 'json') io.out(`${JSON.stringify(reportJson(options, runs, verdict))}\n`);
  else io.out(`${verdict}\n`);
  return verdict === 'holds' || verdict === 'caught' ? EXIT.clean : EXIT.findings;
}

function sidesOf({ fault, guards }: SimulateOptions): Side[] {
  if (guards !== null) return [guards];
  return fault === null ? ['on'] : ['off', 'on'];
}

function worldOf({ seed, steps, requests, fault, without }: SimulateOptions, side: Side): SimOptions {
  const off = fault === null ? 0 : ALL_GUARDS & ~guardsAgainst([fault]);
  return { seed, steps, requests, fault, guards: side === 'on' ? ALL_GUARDS : off, without };
}

async function runSide(options: SimulateOptions, side: Side): Promise<Run> {
  const world = worldOf(options, side);
  const { durationMs } = options;
  const worldsMax = durationMs === null ? 1 : Number.MAX_SAFE_INTEGER;
  const report = await runCampaign({ options: world, worldsMax, durationMs }, SIM_THREADS_DEFAULT);
  const { failed } = report;
  return { side, report, shrunk: failed === null ? null : shrink({ ...world, seed: failed.seed }, failed) };
}

function writeTrace(options: SimulateOptions, io: CliIo): number {
  const result = simulate(worldOf(options, options.guards ?? 'on'), (line) => io.out(line));
  const { violation, hash } = result;
  io.err(
    violation === null
      ? `holds; trace ${hash}\n`
      : `violated: ${violation.invariant}: ${violation.words}; trace ${hash}\n`,
  );
  return violation === null ? EXIT.clean : EXIT.findings;
}

type Verdict = 'holds' | 'violated' | 'caught' | 'missed' | 'unguarded';

function verdictOf({ fault, guards }: SimulateOptions, runs: readonly Run[]): Verdict {
  const isBroken = (side: Side): boolean => runs.some((run) => run.side === side && run.shrunk !== null);
  if (fault === null || guards !== null) return isBroken('on') || isBroken('off') ? 'violated' : 'holds';
  if (isBroken('on')) return 'unguarded';
  return isBroken('off') ? 'caught' : 'missed';
}

function perCpuMinute({ counts, cpuS }: SimReport): number {
  return Math.round((counts.requests / Math.max(0.001, cpuS)) * 60);
}

const number = (value: number): string => value.toLocaleString('en-US');

function perMinute({ counts, wallMs }: SimReport): number {
  return Math.round((counts.requests / Math.max(1, wallMs)) * 60_000);
}

function runLines(options: SimulateOptions, { side, report, shrunk }: Run): string[] {
  const { worlds, counts, hash, wallMs } = report;
  const rules =
    options.fault === null
      ? `every guard ${side}`
      : `${options.fault} with ${side === 'on' ? 'every guard on' : `${CATALOGUE[options.fault].guards.join(', ')} off`}`;
  const last = worlds === 1 ? '' : ` and on`;
  const lines = [
    `seed ${options.seed}${last}, ${rules}: ${number(worlds)} worlds, ${number(counts.requests)} requests in ${(wallMs / 1000).toFixed(1)} s, ${number(perMinute(report))} a minute, ${number(perCpuMinute(report))} a CPU-minute`,
    `  ${number(counts.finished)} answered, ${number(counts.aborted)} aborted, ${number(counts.refused)} refused, ${number(counts.failed)} failed, ${number(counts.turnedAway)} turned away at the gateway; ${number(counts.cachedTokens)} tokens from kept pages`,
    `  ${number(counts.lost)} messages lost, ${number(counts.repeated)} repeated, ${number(counts.overtaken)} overtaken; ${number(counts.landed)} writes landed, ${number(counts.refusedWrites)} refused; ${number(counts.restarts)} restarts`,
  ];
  if (counts.spoiled > 0) lines.push(`  ${number(counts.spoiled)} answers wrong inside their own tenant, or cut short`);
  if (hash !== null) lines.push(`  trace ${hash}`);
  if (shrunk === null) return lines;
  const { violation, counts: left } = shrunk.result;
  lines.push(
    `  ${violation?.invariant}: ${violation?.words}`,
    `  shrunk to ${number(left.requests)} requests and ${number(left.steps)} steps after ${shrunk.tries} tries: ${replayLine(shrunk.options)}`,
  );
  return lines;
}

function reportJson(options: SimulateOptions, runs: readonly Run[], verdict: Verdict): object {
  const { seed, steps, requests, fault, without } = options;
  return {
    seed,
    steps,
    requests,
    fault,
    without,
    verdict,
    runs: runs.map(({ side, report, shrunk }) => ({
      guards: side,
      worlds: report.worlds,
      requestsAMinute: perMinute(report),
      requestsACpuMinute: perCpuMinute(report),
      wallMs: Math.round(report.wallMs),
      trace: report.hash,
      counts: report.counts,
      violation:
        shrunk === null
          ? null
          : {
              seed: shrunk.options.seed,
              ...shrunk.result.violation,
              requests: shrunk.result.counts.requests,
              replay: replayLine(shrunk.options),
            },
    })),
  };
}
