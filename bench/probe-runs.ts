/** One run of the probe from outside, against a server of ours with a fault, or against a small endpoint with a weakness; what it says. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { SystemClock } from '../src/base/clock.js';
import { type Behaviour, CONTEXT, startEndpoint, VARIABLES } from '../test/support/probe-endpoint.js';

const MAIN = fileURLToPath(new URL('../src/cli/main.js', import.meta.url));
const RUN_MS_MAX = 900_000;
const TENANTS = ['--tenant', 'a=env:KEY_A', '--tenant', 'b=env:KEY_B'];
const ENV = { ...process.env, ...VARIABLES };
const clock = new SystemClock();

/** Kinds of answers that the boundary names, and that are findings though the experiment then has no power. */
const NO_ANSWER = /^(?:truncated|placeholder|empty|wrong|hung): (\d+) answers? .*\((q-\d+) and on\)/;

/** What an experiment said; `requests`: of its own, up to the first that shows it; null: it caught nothing. */
export interface Row {
  readonly name: string;
  readonly verdict: string;
  readonly sent: number;
  readonly requests: number | null;
}

export interface Probed {
  readonly verdict: string;
  readonly rows: readonly Row[];
  readonly seconds: number;
  /** Of the machine over the last minute. */
  readonly load: number;
}

const overLong: (reply: ReturnType<Behaviour>) => Behaviour = (reply) => (_, usual) =>
  usual.status === 400 ? reply : usual;

/** Endpoints that answer what does not fit. */
export const MOCKS: Readonly<Record<string, Behaviour>> = {
  'silent truncation': overLong({ text: ' and so on.', usage: { prompt_tokens: CONTEXT - 1, completion_tokens: 11 } }),
  'empty 200': (posted, usual) =>
    usual.status === 400 ? { text: '', usage: { prompt_tokens: posted.prompt.length, completion_tokens: 0 } } : usual,
  hang: overLong('hang'),
};

/** `cofferdam serve` with these flags, probed with the default plan. `record` is the path of a new file. */
export async function probeServer(flags: readonly string[], seed: number, record: string): Promise<Probed> {
  const [child, url] = await startServer(flags);
  try {
    return await probe(url, seed, record);
  } finally {
    await new Promise<void>((resolve) => {
      child.once('exit', () => resolve());
      child.kill('SIGTERM');
    });
  }
}

export async function probeMock(behaviour: Behaviour, seed: number, record: string): Promise<Probed> {
  const endpoint = await startEndpoint(behaviour);
  try {
    return await probe(endpoint.url, seed, record);
  } finally {
    await endpoint.close();
  }
}

function startServer(flags: readonly string[]): Promise<[ChildProcess, string]> {
  const args = [MAIN, 'serve', '--port', '0', '--ops-port', '0', '--output', 'json', ...TENANTS, ...flags];
  const child = spawn(process.execPath, args, { env: ENV, stdio: ['ignore', 'pipe', 'ignore'] });
  return new Promise((resolve, reject) => {
    let said = '';
    child.stdout.on('data', (chunk: Buffer) => {
      said += chunk.toString('utf8');
      const end = said.indexOf('\n');
      if (end >= 0) resolve([child, (JSON.parse(said.slice(0, end)) as { url: string }).url]);
    });
    child.once('exit', (code) => reject(new Error(`The server ended with ${code} before it listened.`)));
  });
}

async function probe(url: string, seed: number, record: string): Promise<Probed> {
  const startMs = clock.nowMs();
  const args = [MAIN, 'probe', url, ...TENANTS, '--model', 'lab', '--output', 'json', '--yes'];
  const out = await new Promise<string>((resolve, reject) => {
    const child = spawn(process.execPath, [...args, '--record', record, '--seed', String(seed)], {
      env: ENV,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: RUN_MS_MAX,
    });
    const said = { out: '', err: '' };
    child.stdout.on('data', (chunk: Buffer) => (said.out += chunk.toString('utf8')));
    child.stderr.on('data', (chunk: Buffer) => (said.err += chunk.toString('utf8')));
    child.once('close', (code) => {
      if (said.out !== '') resolve(said.out);
      else reject(new Error(`The probe ended with ${code} and no report: ${said.err.slice(-400)}`));
    });
  });
  const report = JSON.parse(out) as {
    verdict: string;
    experiments: { name: string; verdict: string; sent: number; evidence: string[] }[];
  };
  const seen = requestsSeen(record);
  return {
    verdict: report.verdict,
    rows: report.experiments.map(({ name, verdict, sent, evidence }) => {
      const of = seen.get(name) ?? { ids: [], firstHit: null };
      const noAnswer = evidence.map((sentence) => NO_ANSWER.exec(sentence)?.[2]).find((id) => id !== undefined);
      const bad = verdict === 'leaks' || verdict === 'starves';
      const byAnswer = noAnswer === undefined ? null : of.ids.indexOf(noAnswer) + 1;
      return { name, verdict, sent, requests: of.firstHit ?? byAnswer ?? (bad ? sent : null) };
    }),
    seconds: (clock.nowMs() - startMs) / 1000,
    load: loadavg()[0]!,
  };
}

/** By experiment: its requests in order, and how many of them were sent when the first held something foreign. */
function requestsSeen(record: string): Map<string, { readonly ids: string[]; firstHit: number | null }> {
  const seen = new Map<string, { readonly ids: string[]; firstHit: number | null }>();
  for (const line of readFileSync(record, 'utf8').split('\n')) {
    if (!/^\{"record":"(?:request|hit)"/.test(line)) continue;
    const { record: kind, experiment, id } = JSON.parse(line) as { record: string; experiment: string; id: string };
    const of = seen.get(experiment) ?? { ids: [], firstHit: null };
    if (kind === 'request') of.ids.push(id);
    else of.firstHit ??= of.ids.length;
    seen.set(experiment, of);
  }
  return seen;
}
