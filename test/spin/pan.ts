/** SPIN on test/spin/handoff.pml: builds its verifier for one scope and one set of switches, runs it, reads what it says. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { World } from '../../src/verify/scopes.js';

const MODEL = fileURLToPath(new URL('../../../test/spin/handoff.pml', import.meta.url));
const BUILD_TIMEOUT_MS = 120_000;
const RUN_TIMEOUT_MS = 300_000;

/** What pan found. `words`: its own line about the first error; empty where there is none. */
export interface PanRun {
  readonly verdict: 'holds' | 'violated' | 'incomplete';
  readonly words: string;
  readonly distinct: number;
  /** User and system time of the verifier alone. */
  readonly cpuS: number;
}

/** A verifier that is built; `run` may be called again and again. */
export interface Pan {
  run(): PanRun;
}

/** What is missing for SPIN to run, in words, or null. */
export function whyNoSpin(): string | null {
  for (const [command, flag, from] of [
    ['spin', '-V', 'SPIN (Debian: apt-get install spin)'],
    ['gcc', '--version', 'a C compiler (gcc)'],
  ] as const) {
    if (spawnSync(command, [flag]).status !== 0) return `\`${command}\` was not found: this comparison needs ${from}`;
  }
  return null;
}

/** The scope as the model's switches. */
function switchesOf(world: World): string[] {
  const numbers: Record<string, number> = {
    SLOTS: world.slots,
    REQUESTS: world.requests.length,
    PP: world.prefillPages,
    DP: world.decodePages,
    LIMIT: world.limit,
    RETRIES: world.retries,
    ABORTS: world.aborts,
    LOSSES: world.losses,
    REPEATS: world.repeats,
    PCRASHES: world.prefillCrashes,
    DCRASHES: world.decodeCrashes,
    ABANDONS: world.abandons,
    HANDLES: world.handles,
    TEARS: world.tears,
    PREFIXES: Number(world.prefixes),
    WIRE: world.messagesMax,
  };
  for (const [index, { tenant, pages, hash }] of world.requests.entries()) {
    numbers[`T${index}`] = tenant;
    numbers[`N${index}`] = pages;
    numbers[`H${index}`] = hash;
  }
  return Object.entries(numbers).map(([name, value]) => `-D${name}=${value}`);
}

function must(command: string, args: readonly string[], cwd: string): void {
  const ran = spawnSync(command, args, { cwd, encoding: 'utf8', timeout: BUILD_TIMEOUT_MS });
  const said = `${ran.stdout}${ran.stderr}`;
  if (ran.status !== 0 || /Error:/.test(said)) throw new Error(`${command} ended with ${ran.status}: ${said.trim()}`);
}

/**
 * Builds a verifier in `folder`, without partial-order reduction. `isLive`: it looks for circles in which nothing settles, not for
 * broken assertions alone. `level`: the compiler's -O. `isSafetyOnly`: it leaves out what a search for circles would need.
 */
export function buildPan(
  folder: string,
  world: World,
  switches: readonly string[],
  isLive: boolean,
  level: 1 | 3 = 1,
  isSafetyOnly: boolean = !isLive,
): Pan {
  mkdirSync(folder, { recursive: true });
  must('spin', [...switchesOf(world), ...switches, ...(isLive ? ['-DLIVE'] : []), '-a', MODEL], folder);
  const options = isSafetyOnly ? ['-DSAFETY'] : [];
  must('gcc', [`-O${level}`, '-w', '-DNOREDUCE', '-DMEMLIM=3000', ...options, '-o', 'pan', 'pan.c'], folder);
  return { run: () => runPan(folder, isLive) };
}

function runPan(folder: string, isLive: boolean): PanRun {
  // `times` writes the CPU time of the shell's children in its second line.
  const script = `./pan -m4000000 -w24 ${isLive ? '-a' : ''} > said.txt 2>&1; times`;
  const ran = spawnSync('sh', ['-c', script], { cwd: folder, encoding: 'utf8', timeout: RUN_TIMEOUT_MS });
  const said = readFileSync(join(folder, 'said.txt'), 'utf8');
  const errors = Number(/errors: (\d+)/.exec(said)?.[1] ?? Number.NaN);
  const words = /^pan:\d+: (.*)$/m.exec(said)?.[1] ?? '';
  const isCut = ran.status !== 0 || Number.isNaN(errors) || /out of memory|max search depth too small/.test(said);
  const children = ran.stdout.trim().split('\n')[1] ?? '';
  const [user = Number.NaN, system = Number.NaN] = [...children.matchAll(/(\d+)m([\d.]+)s/g)].map(
    ([, minutes, seconds]) => Number(minutes) * 60 + Number(seconds),
  );
  return {
    verdict: errors > 0 ? 'violated' : isCut ? 'incomplete' : 'holds',
    words: errors > 0 ? words : '',
    distinct: Number(/^\s*([\d.e+]+) states, stored/m.exec(said)?.[1] ?? Number.NaN),
    cpuS: user + system,
  };
}
