/**
 * Which experiments of the probe catch which fault, and after how many requests? Each fault of the catalogue in `cofferdam serve`, its
 * guards off, and small endpoints with a weakness, probed with the default plan as from outside; then the server as it comes, `--clean`
 * times with seeds of their own.
 *
 *   npm run bench:probe -- [--only=NAME,...] [--clean=20] [--seed=1] [--results=FILE]
 *
 * The whole takes about an hour, so that each run is written to FILE (JSON lines, default .cofferdam/bench-probe.jsonl) when it ends, and
 * is not made again: to go on, start it again; to make one again, take its line out. NAME is a fault, a mock (`hang`) or `clean`.
 * Exit code 1 where a fault that must be caught is not, or a clean server is accused.
 */
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { FAULTS } from '../src/handoff/faults.js';
import { MOCKS, type Probed, probeMock, probeServer } from './probe-runs.js';

/** Those that a probe from outside must catch, in so many requests of the experiment that does. */
const MUST: readonly string[] = [
  'rejected-stays-alive',
  'reuse-before-drain',
  'stale-handle',
  'room-collision',
  'count-unchecked',
  'unsalted-prefix',
  ...Object.keys(MOCKS),
];
const REQUESTS_MUST = 500;

interface Saved extends Probed {
  readonly name: string;
  readonly seed: number;
}

const options = new Map(process.argv.slice(2).map((text) => text.replace(/^--/, '').split('=') as [string, string]));
const seed = Number(options.get('seed') ?? 1);
const clean = Number(options.get('clean') ?? 20);
const results = options.get('results') ?? '.cofferdam/bench-probe.jsonl';
const only = options.get('only')?.split(',') ?? null;
const folder = mkdtempSync(join(tmpdir(), 'cofferdam-bench-probe-'));

function saved(): Saved[] {
  if (!existsSync(results)) return [];
  const lines = readFileSync(results, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Saved);
}

async function made(name: string, ofSeed: number, make: (record: string) => Promise<Probed>): Promise<Saved> {
  const before = saved().find((each) => each.name === name && each.seed === ofSeed);
  if (before !== undefined) return before;
  const one: Saved = { name, seed: ofSeed, ...(await make(join(folder, `${saved().length}-${ofSeed}.jsonl`))) };
  mkdirSync(dirname(results), { recursive: true });
  appendFileSync(results, `${JSON.stringify(one)}\n`);
  return one;
}

/** A row of the table; what caught it, first to last. */
function line({ name, seed: ofSeed, verdict, rows, seconds, load }: Saved): string {
  const caught = rows.filter(({ requests }) => requests !== null);
  const words = caught.map(({ name: by, verdict: said, requests }) => `${by} (${said}): ${requests}`).join(', ') || '-';
  return `| ${name} | ${ofSeed} | ${verdict} | ${words} | ${seconds.toFixed(0)} s | ${load.toFixed(1)} |`;
}

const isCaught = ({ rows }: Saved): boolean =>
  rows.some(({ requests }) => requests !== null && requests <= REQUESTS_MUST);

let wrong = 0;
function report(one: Saved, isWrong: boolean, why: string): void {
  if (isWrong) wrong++;
  process.stdout.write(`${line(one)}${isWrong ? ` ${why}` : ''}\n`);
}

try {
  process.stdout.write(
    '| against | seed | verdict | caught by, after requests | time | load |\n| - | - | - | - | - | - |\n',
  );
  for (const name of [...FAULTS, ...Object.keys(MOCKS)]) {
    if (only !== null && !only.includes(name)) continue;
    const behaviour = MOCKS[name];
    const one = await made(name, seed, (record) =>
      behaviour === undefined
        ? probeServer(['--guards', 'off', '--fault', name], seed, record)
        : probeMock(behaviour, seed, record),
    );
    report(one, MUST.includes(name) && !isCaught(one), 'MISSED');
  }
  for (let i = 0; i < clean && (only === null || only.includes('clean')); i++) {
    const one = await made('clean', seed + i, (record) => probeServer([], seed + i, record));
    report(one, one.verdict !== 'isolated', 'NOT ISOLATED');
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = wrong === 0 ? 0 : 1;
