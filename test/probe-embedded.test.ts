/**
 * Goal: what the prober says of the server that comes with it: a shared prefix cache is seen from outside, a salted one is not called
 * so, and what runs only when asked holds its ground. Method: the real program in a process of its own, over loopback.
 * `COFFERDAM_LONG=1` runs all of it, in some two minutes.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SystemClock } from '../src/base/clock.js';
import type { Experiment, ExperimentResult } from '../src/probe/experiment.js';
import { longContext } from '../src/probe/experiments/long-context.js';
import { parkAndReturn } from '../src/probe/experiments/park-and-return.js';
import { prefixTiming } from '../src/probe/experiments/prefix-timing.js';
import { restart } from '../src/probe/experiments/restart.js';
import { NOTHING_TOLD } from '../src/probe/knowledge.js';
import { runProbe } from '../src/probe/run.js';
import { type Served, startServe } from './support/program.js';
import { NOTHING_EARLIER } from '../src/probe/resume.js';

const SEED = Number(process.env.SEED ?? 83);
const skip = process.env.COFFERDAM_LONG !== '1';
const clock = new SystemClock();
const TENANTS = ['acme', 'globex'].map((name) => ({ name, key: `probe-key-of-${name}` }));
const FLAGS = TENANTS.flatMap(({ name, key }) => ['--tenant', `${name}=${key}`]);

const started = (...flags: readonly string[]): Promise<Served> => startServe([...FLAGS, ...flags]);

interface Saying {
  readonly say: (line: string) => void;
}

async function probed(url: string, experiment: Experiment, saying: Saying | null = null): Promise<ExperimentResult> {
  const { results } = await runProbe({
    target: { origin: new URL(url), tenants: TENANTS, model: 'lab', route: 'completions' },
    told: NOTHING_TOLD,
    experiments: [experiment],
    limits: { requests: 5000, tokens: 5_000_000, together: 32, durationMs: 120_000 },
    seed: SEED,
    bound: 0.05,
    keepText: false,
    allowDestructive: false,
    interactive: saying !== null,
    version: 'test',
    clock,
    journal: { write: () => {}, close: () => {} },
    earlier: NOTHING_EARLIER,
    confirm: () => Promise.resolve(true),
    say: saying?.say ?? (() => {}),
  });
  assert.equal(results.length, 1);
  return results[0]!;
}

async function against(flags: readonly string[], experiment: Experiment): Promise<ExperimentResult> {
  const served = await started(...flags);
  try {
    return await probed(served.facts.url, experiment);
  } finally {
    await served.stop();
  }
}

describe(`the prober against the embedded server (seed ${SEED})`, () => {
  test('sees a prefix cache that forgot its salt, within 500 requests', async () => {
    const result = await against(['--guards', 'off', '--fault', 'unsalted-prefix'], prefixTiming);
    assert.equal(result.verdict, 'leaks', result.evidence.join('\n'));
    assert.ok(result.sent <= 500 && Number(result.figures?.crossHitsReported) >= 12);
  });

  test('says isolated of the salted one, and no cache seen of none', { skip }, async () => {
    const plain = await against([], prefixTiming);
    assert.equal(plain.verdict, 'isolated', plain.evidence.join('\n'));
    assert.ok(Number(plain.figures?.controlHitsReported) > 12 && plain.figures?.crossHitsReported === 0);
    assert.equal((await against(['--no-prefix-cache'], prefixTiming)).verdict, 'no-cache-seen');
  });

  test('sees pages that are shared on a weak hash', { skip }, async () => {
    const result = await against(['--guards', 'off', '--fault', 'prefix-hash-collision'], prefixTiming);
    assert.equal(result.verdict, 'leaks', result.evidence.join('\n'));
  });

  test('the whole advertised context is read, and conversations return to their own', { skip }, async () => {
    for (const experiment of [longContext, parkAndReturn]) {
      const result = await against([], experiment);
      assert.equal(result.verdict, 'isolated', `${result.name}: ${result.control} ${result.evidence.join('\n')}`);
    }
  });

  test('a restart in the middle of long prompts leaves nothing for others', { skip }, async () => {
    let served = await started();
    const { url } = served.facts;
    const again: Promise<Served>[] = [];
    const say = (line: string): void => {
      if (!line.includes('restart one node now')) return;
      served.child.kill('SIGKILL');
      again.push(served.ended.then(() => started('--port', new URL(url).port)));
    };
    try {
      const result = await probed(url, restart, { say });
      assert.equal(again.length, 1);
      served = await again[0]!;
      assert.equal(result.verdict, 'isolated', `${result.control} ${result.evidence.join('\n')}`);
      assert.ok(Number(result.figures?.afterAnswered) >= 30);
    } finally {
      await served.stop();
    }
  });
});
