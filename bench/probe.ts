/**
 * Which experiments of the probe catch which fault, and after how many requests? Each fault of the catalogue in `cofferdam serve`, its
 * guards off, probed with the default plan as from outside; then the server as it comes, `CLEAN` times with seeds of their own.
 *
 *   npm run build && node dist/bench/probe.js [--fault=NAME] [--clean=N] [--seed=N]
 *
 * Exit code 1 where a fault that must be caught is not, or a clean server is accused.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SystemClock } from '../src/base/clock.js';
import { FAULTS } from '../src/handoff/faults.js';

const MAIN = fileURLToPath(new URL('../src/cli/main.js', import.meta.url));
/** Those that a probe from outside must catch. */
const MUST: readonly string[] = [
  'rejected-stays-alive',
  'reuse-before-drain',
  'stale-handle',
  'room-collision',
  'count-unchecked',
  'unsalted-prefix',
];
const REQUESTS_MUST = 500;
const CLEAN_DEFAULT = 20;
const RUN_MS_MAX = 600_000;
const KEYS = { KEY_A: 'key-of-tenant-a-1', KEY_B: 'key-of-tenant-b-1' } as const;
const PROBE_FLAGS = '--tenant a=env:KEY_A --tenant b=env:KEY_B --model lab --output json --yes'.split(' ');
const clock = new SystemClock();
const folder = mkdtempSync(join(tmpdir(), 'cofferdam-bench-probe-'));
const print = (line: string): boolean => process.stdout.write(`${line}\n`);

interface Row {
  readonly name: string;
  readonly verdict: string;
  readonly sent: number;
}

interface Probed {
  readonly verdict: string;
  readonly rows: readonly Row[];
  /** By experiment: which of its requests was the first with something foreign in its answer. */
  readonly hits: ReadonlyMap<string, number>;
  readonly seconds: number;
}

class Served {
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
  }

  static start(flags: readonly string[]): Promise<Served> {
    const tenants = ['--tenant', 'a=env:KEY_A', '--tenant', 'b=env:KEY_B'];
    const child = spawn(
      process.execPath,
      [MAIN, 'serve', '--port', '0', '--ops-port', '0', '--output', 'json', ...tenants, ...flags],
      { env: { ...process.env, ...KEYS }, stdio: ['ignore', 'pipe', 'ignore'] },
    );
    return new Promise((resolve, reject) => {
      let said = '';
      child.stdout!.on('data', (chunk: Buffer) => {
        said += chunk.toString('utf8');
        if (said.includes('\n'))
          resolve(new Served(child, (JSON.parse(said.split('\n', 1)[0]!) as { url: string }).url));
      });
      child.once('exit', (code) => reject(new Error(`The server ended with ${code} before it listened.`)));
    });
  }

  end(): Promise<void> {
    return new Promise((resolve) => {
      this.#child.once('exit', () => resolve());
      this.#child.kill('SIGTERM');
    });
  }
}

let records = 0;

async function probe(flags: readonly string[], seed: number): Promise<Probed> {
  const served = await Served.start(flags);
  try {
    const record = join(folder, `${records++}.jsonl`);
    const startMs = clock.nowMs();
    const ran = spawnSync(
      process.execPath,
      [MAIN, 'probe', served.url, ...PROBE_FLAGS, '--record', record, '--seed', String(seed)],
      { env: { ...process.env, ...KEYS }, encoding: 'utf8', timeout: RUN_MS_MAX, maxBuffer: 64 * 1024 * 1024 },
    );
    const report = JSON.parse(ran.stdout) as { verdict: string; experiments: Row[] };
    return {
      verdict: report.verdict,
      rows: report.experiments,
      hits: firstHits(record),
      seconds: (clock.nowMs() - startMs) / 1000,
    };
  } finally {
    await served.end();
  }
}

/** By experiment: which of its requests was the first with something foreign in its answer. */
function firstHits(record: string): Map<string, number> {
  const sent = new Map<string, number>();
  const hits = new Map<string, number>();
  for (const line of readFileSync(record, 'utf8').split('\n')) {
    if (!/^\{"record":"(?:request|hit)"/.test(line)) continue;
    const { record: kind, experiment } = JSON.parse(line) as { record: string; experiment: string };
    if (kind === 'request') sent.set(experiment, (sent.get(experiment) ?? 0) + 1);
    else if (!hits.has(experiment)) hits.set(experiment, sent.get(experiment) ?? 1);
  }
  return hits;
}

/**
 * Requests of the first experiment that caught it: up to its first answer with something foreign in it, or all that it sent where there
 * was none.
 */
function requestsToCatch({ rows, hits }: Probed): number | null {
  const row = rows.find(({ verdict }) => verdict === 'leaks' || verdict === 'starves');
  return row === undefined ? null : (hits.get(row.name) ?? row.sent);
}

const options = new Map(process.argv.slice(2).map((text) => text.replace(/^--/, '').split('=') as [string, string]));
const seed = Number(options.get('seed') ?? 1);
const faults = options.has('fault') ? [options.get('fault')!] : options.has('clean') ? [] : FAULTS;
let wrong = 0;
try {
  print(`${'fault'.padEnd(26)} ${'verdict'.padEnd(10)} ${'requests'.padStart(8)} ${'seconds'.padStart(8)}  caught by`);
  for (const fault of faults) {
    const probed = await probe(['--guards', 'off', '--fault', fault], seed);
    const by = probed.rows.filter(({ verdict }) => verdict === 'leaks' || verdict === 'starves');
    const requests = requestsToCatch(probed);
    const isMissed = MUST.includes(fault) && (requests === null || requests > REQUESTS_MUST);
    if (isMissed) wrong++;
    const words =
      by.map(({ name, verdict }) => `${name} (${verdict})`).join(', ') ||
      probed.rows.map(({ name, verdict }) => `${name}: ${verdict}`).join(', ');
    print(
      `${fault.padEnd(26)} ${probed.verdict.padEnd(10)} ${String(requests ?? '-').padStart(8)} ${probed.seconds.toFixed(0).padStart(8)}  ${words}${isMissed ? '  MISSED' : ''}`,
    );
  }
  const clean = options.has('fault') ? 0 : Number(options.get('clean') ?? CLEAN_DEFAULT);
  for (let run = 0; run < clean; run++) {
    const probed = await probe([], seed + run);
    if (probed.verdict !== 'isolated') wrong++;
    print(
      `${`no fault, seed ${seed + run}`.padEnd(26)} ${probed.verdict.padEnd(10)} ${''.padStart(8)} ${probed.seconds.toFixed(0).padStart(8)}`,
    );
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = wrong === 0 ? 0 : 1;
