/**
 * Goal: a run of the engine in its threads can be traced while it serves, and its trace conforms: storms of aborts, and nodes that die
 * with work in them. Method: real threads; the trace is read back, held against the protocol, and no receipt may stand before its sending.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Prng } from '../base/prng.js';
import { TraceReader, type TraceRecord, TraceWriter } from '../handoff/trace.js';
import { Conformance } from '../verify/conform.js';
import { engineConfig, type EngineOptions } from './config.js';
import { ask, type Asked, clock, recall, until } from './harness.test.help.js';
import { ThreadedEngine } from './threaded-engine.js';
import { TraceJoin } from './tracing.js';

const SEED = Number(process.env.SEED ?? 31);
const BOUNDED = { timeout: 30_000 } as const;
const SIZES = { context: 1024, prefillPool: 1024, decodePool: 2048, runningMax: 8 } as const;

async function traced(options: EngineOptions = {}): Promise<{ engine: ThreadedEngine; lines: string[] }> {
  const lines: string[] = [];
  const trace = new TraceWriter((line) => lines.push(line));
  const config = engineConfig({ ...SIZES, ...options });
  return { engine: await ThreadedEngine.start({ config, clock, trace }), lines };
}

function recordsOf(lines: readonly string[]): TraceRecord[] {
  const reader = new TraceReader();
  const records = lines.map((line) => reader.take(line)).filter((record) => record !== null);
  assert.ok(reader.isWhole, 'the trace has its last line');
  return records;
}

/**
 * Explains the records and asserts that each could be explained where it stands, and not only later; but for what waits until a node
 * that was said to be back has begun.
 */
function assertConforms(records: readonly TraceRecord[], restarts = false): void {
  const conformance = new Conformance();
  let steps = 0;
  for (const record of records) {
    conformance.take(record);
    assert.equal(conformance.deviation, null);
    if ('event' in record) steps++;
    if (!restarts) assert.equal(conformance.explained, steps, `record ${record.n} stands before what it needs`);
  }
  conformance.finish();
  assert.equal(conformance.explained, steps);
  assert.equal(conformance.deviation, null);
}

/** Requests of two tenants, of which many leave at some moment. */
function storm(engine: ThreadedEngine, chance: Prng, count: number): Asked[] {
  return Array.from({ length: count }, (_, i) => {
    const { prompt } = recall(chance, chance.between(80, 600));
    const leavesAt = chance.chance(0.6) ? chance.below(12) : -1;
    const onToken = (one: Asked): void => {
      if (one.tokens.length === leavesAt) one.run.abort();
    };
    const asked = ask(engine, prompt, {
      tenant: 1 + (i % 2),
      salt: String(1 + (i % 2)).repeat(64),
      maxTokens: 24,
      onToken,
    });
    if (leavesAt === 0) asked.run.abort();
    return asked;
  });
}

test(`a storm of aborts through the threads conforms, in the order of the file (seed ${SEED})`, BOUNDED, async () => {
  const { engine, lines } = await traced();
  const asked = storm(engine, new Prng(SEED), 40);
  await Promise.all(asked.map(({ whenReleased }) => whenReleased));
  await engine.close();
  const records = recordsOf(lines);
  assertConforms(records);
  assert.deepEqual(new Set(records.map(({ actor }) => actor)), new Set(['gateway', 'prefill', 'decode']));
  assert.ok(records.length > 500, `${records.length} records`);
  assert.doesNotMatch(lines.join('\n'), /KVC-|password/);
  // The tenants' salts are digits; their beginnings are what the machines compare.
  for (const salt of ['11111111', '22222222']) {
    assert.doesNotMatch(lines.join('\n'), new RegExp(`:${Number.parseInt(salt, 16) >>> 1}\\b`));
  }
  assert.match(lines.join('\n'), /"salt":[1-9]/);
});

for (const role of ['prefill', 'decode'] as const) {
  test(
    `a ${role} that dies in the middle of it conforms, and its next life is in the trace (seed ${SEED})`,
    BOUNDED,
    async () => {
      const { engine, lines } = await traced();
      const chance = new Prng(SEED + 1);
      const asked = storm(engine, chance, 16);
      await until(() => lines.length > 100, 'the storm is under way');
      await engine.crash(role);
      asked.push(...storm(engine, chance, 8));
      await Promise.all(asked.map(({ whenReleased }) => whenReleased));
      await until(() => engine.incarnation(role) === 2, 'the node is back');
      await engine.close();
      const records = recordsOf(lines);
      assertConforms(records, true);
      assert.ok(records.some((record) => 'life' in record && record.actor === role && record.life === 2));
    },
  );
}

test(
  `a fault in prefill's thread is named by the record in which prefill deviates (seed ${SEED})`,
  BOUNDED,
  async () => {
    const { engine, lines } = await traced({ faults: ['count-unchecked'] });
    const { prompt } = recall(new Prng(SEED), 600);
    await ask(engine, prompt).whenReleased;
    await engine.close();
    const conformance = new Conformance();
    for (const record of recordsOf(lines)) conformance.take(record);
    assert.match(conformance.deviation?.words ?? 'it conforms', /^prefill takes "(?:chunk|settled)"/);
  },
);

test('a run that is ended in its middle has a whole trace of what was', BOUNDED, async () => {
  const { engine, lines } = await traced();
  const asked = storm(engine, new Prng(SEED + 2), 16);
  await until(() => lines.length > 60, 'the storm is under way');
  await engine.close();
  await Promise.all(asked.map(({ whenReleased }) => whenReleased));
  assertConforms(recordsOf(lines));
});

test('records of threads are joined by their stamps, and a stamp that died with its thread is not waited for', () => {
  const lines: string[] = [];
  const join = new TraceJoin(new TraceWriter((line) => lines.push(line)));
  const letter = (stamp: number): { stamp: number; tail: string } => ({ stamp, tail: `"s":${stamp}}` });
  const stamps = (): number[] => lines.slice(1).map((line) => (JSON.parse(line) as { s: number }).s);
  const counter = new BigInt64Array(join.share.stamps);
  join.begins('prefill');
  join.begins('decode');
  Atomics.add(counter, 0, 6n);
  join.take('decode', letter(1));
  assert.deepEqual(stamps(), [], 'stamp 0 may still come from prefill');
  join.take('prefill', letter(0));
  assert.deepEqual(stamps(), [0, 1]);
  join.take('decode', letter(4));
  join.take('prefill', letter(2));
  assert.deepEqual(stamps(), [0, 1, 2], 'stamp 3 may still come from prefill');
  join.ended('prefill');
  assert.deepEqual(stamps(), [0, 1, 2, 4]);
  join.begins('prefill');
  Atomics.add(counter, 0, 2n);
  join.take('decode', letter(7));
  assert.deepEqual(stamps(), [0, 1, 2, 4], 'stamp 6 may be of the new prefill');
  join.take('prefill', letter(6));
  assert.deepEqual(
    stamps(),
    [0, 1, 2, 4, 6, 7],
    'stamp 5 is nobody’s: decode is past it, and the new prefill began above it',
  );
});
