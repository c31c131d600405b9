/**
 * Goal: a second model of the handoff protocol, written by hand from its documentation and checked by SPIN, gives the same verdicts as
 * `cofferdam verify` gives of the code that runs. Method: the worlds of `small` without a fault, then each fault of the catalogue in its
 * scope, with the guards against it off and with every guard on; then both checkers' rates on one scope, one after the other.
 *
 *   npm run test:spin             all of it; exit code 1 where the two differ, 3 where SPIN or a C compiler is missing
 *   npm run test:spin -- rates    the rates alone
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type FaultName, FAULTS, CATALOGUE } from '../../src/handoff/faults.js';
import { runFaults, runInPlace, runJob, soundJobs } from '../../src/verify/campaign.js';
import { scopeOf, scopeOfFault, type ScopeName, type World } from '../../src/verify/scopes.js';
import { buildPan, type PanRun, whyNoSpin } from './pan.js';

const MAIN = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url));
const RATE_ROUNDS = 5;
/** Of SPIN's rate, what ours is to be at least. */
const RATE_GOAL = 0.5;
/** Its graph is too large to be searched for circles in the time that this takes. */
const WITHOUT_CIRCLES = 'faults';

const folder = mkdtempSync(join(tmpdir(), 'cofferdam-spin-'));
const say = (text: string): void => void process.stdout.write(`${text}\n`);
let built = 0;
let differences = 0;

/** SPIN's verdict on a world: broken assertions, and, where `circles`, whether everything can settle. */
function spin(world: World, switches: readonly string[], circles: boolean): PanRun {
  const safety = buildPan(join(folder, String(built++)), world, switches, false).run();
  if (safety.verdict !== 'holds' || !circles) return safety;
  const live = buildPan(join(folder, String(built++)), world, switches, true).run();
  return { ...live, distinct: safety.distinct };
}

function row(title: string, ours: string, oursCount: number, theirs: PanRun): void {
  const isSame = ours === theirs.verdict;
  if (!isSame) differences++;
  const count = (states: number): string => states.toLocaleString('en').padStart(11);
  say(
    `${isSame ? 'same  ' : 'DIFFER'}  ${title.padEnd(64)} ${ours.padEnd(10)} ${count(oursCount)}   ${theirs.verdict.padEnd(10)} ${count(theirs.distinct)}  ${theirs.words.slice(0, 44)}`,
  );
}

function worldOf(name: ScopeName): World {
  const [first] = scopeOf(name).worlds;
  if (first === undefined) throw new Error(`the scope ${name} has no world`);
  return first.world;
}

function withoutFault(): void {
  for (const job of soundJobs(scopeOf('small'))) {
    const found = runJob(job);
    row(`no fault: ${job.title}`, found.verdict, found.distinct, spin(job.scope, [], true));
  }
}

async function withFault(fault: FaultName): Promise<void> {
  const scope = scopeOfFault(fault);
  const world = worldOf(scope);
  const [found] = await runFaults([fault], runInPlace);
  if (found === undefined) throw new Error('a fault without a finding');
  const on = `-DFAULT_${fault.replaceAll('-', '_')}`;
  const off = ['-DHARM', on, ...CATALOGUE[fault].guards.map((guard) => `-DOFF_${guard}`)];
  const circles = scope !== WITHOUT_CIRCLES;
  row(`${fault}, its guards off`, found.off.verdict, found.off.distinct, spin(world, off, circles));
  row(`${fault}, every guard on`, found.on.verdict, found.on.distinct, spin(world, [on], circles));
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] as number;

/** A fresh process each time, SPIN's build and ours in turn, each by the CPU time of what explores, over all worlds of the scope. */
function ratesOn(name: ScopeName): void {
  const pans = scopeOf(name).worlds.map(({ world }, index) =>
    buildPan(join(folder, `rates-${name}-${index}`), world, [], false, 3, false),
  );
  const found: { ours: number[]; theirs: number[] } = { ours: [], theirs: [] };
  for (let round = 0; round < RATE_ROUNDS; round++) {
    const runs = pans.map((pan) => pan.run());
    const sum = (of: (run: PanRun) => number): number => runs.reduce((total, run) => total + of(run), 0);
    found.theirs.push(Math.round(sum(({ distinct }) => distinct) / sum(({ cpuS }) => cpuS)));
    const ran = spawnSync(process.execPath, [MAIN, 'verify', '--scope', name, '--output', 'json'], {
      encoding: 'utf8',
    });
    found.ours.push((JSON.parse(ran.stdout) as { rate: number }).rate);
  }
  const line = (title: string, values: readonly number[]): void =>
    say(`  ${title.padEnd(34)} ${values.join(' ')}  median ${median(values)}`);
  say(`\ndistinct states a CPU-second on the scope \`${name}\`, no reduction, invariants on:`);
  line('cofferdam verify (keeps the edges)', found.ours);
  line('SPIN, -O3 -DNOREDUCE', found.theirs);
  const ratio = median(found.ours) / median(found.theirs);
  say(`  ours is ${ratio.toFixed(2)} of SPIN's (goal ${RATE_GOAL}: ${ratio >= RATE_GOAL ? 'met' : 'not met'}).`);
}

/** `faults` is one world of 1.2 million states; `default` has worlds of several millions, as real runs do. */
function rates(): void {
  for (const name of ['faults', 'default'] as const) ratesOn(name);
}

const missing = whyNoSpin();
if (missing !== null) {
  say(`not run: ${missing}.`);
  process.exitCode = 3;
} else {
  try {
    if (process.argv[2] !== 'rates') {
      say(`        ${''.padEnd(64)} ${'cofferdam verify'.padEnd(24)} SPIN`);
      withoutFault();
      for (const fault of FAULTS) await withFault(fault);
      say(differences === 0 ? 'every verdict is the same.' : `${differences} verdicts differ.`);
    }
    rates();
    if (differences > 0) process.exitCode = 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
