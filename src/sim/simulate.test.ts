/**
 * Goal: simulated worlds of the engine that runs hold, the same seed is the same world everywhere, and with a fault let loose the
 * harm is seen. Method: the simulator itself; fresh seeds are printed, past ones are kept. COFFERDAM_LONG=1: a minute of fresh seeds.
 */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { FAULTS, type FaultName, guardsAgainst } from '../handoff/faults.js';
import { ALL_GUARDS } from '../handoff/guards.js';
import { runShare } from './campaign.js';
import { type SimOptions, TROUBLES } from './plan.js';
import { replayLine, shrink } from './shrink.js';
import type { SimInvariant } from './violation.js';
import { type SimCounts, simulate } from './world.js';

const IS_LONG = process.env.COFFERDAM_LONG === '1';
const FRESH_MS = IS_LONG ? 60_000 : 3000;

/** Small worlds, so that many of them fit a test. */
function world(seed: number, change: Partial<SimOptions> = {}): SimOptions {
  return { seed, steps: 8000, requests: 200, fault: null, guards: ALL_GUARDS, without: [], ...change };
}

/** Another hash is another plan, another engine or another order of events: find out which before it is pinned again. */
const PINNED: Readonly<Record<number, string>> = {
  1: '49533a4e496aee40',
  2: '5cb9373e10d58dc8',
  7: '0b7f71cc576ced47',
  11: '65a6c15980fc3b1e',
  4000000000: '10084a93cb2ebeac',
};

test('the same seed is the same world, byte by byte, on every version of Node', () => {
  for (const [seed, hash] of Object.entries(PINNED))
    assert.equal(simulate(world(Number(seed))).hash, hash, `seed ${seed}`);
  const [first, second] = [trace(7), trace(7)];
  assert.equal(first.text, second.text);
  assert.equal(first.hash, simulate(world(7)).hash, 'whether or not somebody reads the trace');
  assert.equal(createHash('sha256').update(first.text).digest('hex').slice(0, 16), '6ca3c20b55dd03c7');
  assert.notEqual(first.hash, trace(8).hash);
  for (const line of first.text.trimEnd().split('\n').slice(0, 200)) assert.equal(typeof JSON.parse(line).do, 'string');
});

function trace(seed: number): { readonly text: string; readonly hash: string } {
  const lines: string[] = [];
  const { hash } = simulate(world(seed), (line) => lines.push(line));
  return { text: lines.join(''), hash };
}

/** Worlds that once broke, and what they found. */
const PAST: Readonly<Record<number, string>> = {
  19: 'a request that waited for a slot was dropped when another was submitted from within the release of that slot',
  22: 'the same',
  33: 'the same',
  3: 'prefill did not learn that decode lives again where it still had writes on the wire, and no request ended any more',
  27: 'the same',
  59: 'the same',
};

test('worlds that once broke hold', () => {
  for (const [seed, found] of Object.entries(PAST)) {
    assert.equal(simulate(world(Number(seed))).violation, null, `seed ${seed}: ${found}`);
  }
});

test('fresh worlds hold, and every trouble and every outcome is met in them', (context) => {
  const seed = randomBytes(4).readUInt32BE();
  context.diagnostic(`cofferdam verify --simulate --seed ${seed} --duration 3s --steps 8000 --requests 200`);
  const campaign = { options: world(seed), worldsMax: Number.MAX_SAFE_INTEGER, durationMs: FRESH_MS };
  const { worlds, counts, failed, cpuS } = runShare({ campaign, first: 0, stride: 1, stop: new SharedArrayBuffer(4) });
  context.diagnostic(
    `${worlds} worlds, ${counts.requests} requests, ${Math.round((counts.requests / cpuS) * 60)} a CPU-minute`,
  );
  assert.deepEqual(failed?.violation ?? null, null, failed === null ? '' : replayLine(world(failed.seed)));
  assertSeen(counts);
});

/** A world in which nothing happens would hold as well. */
function assertSeen(counts: SimCounts): void {
  for (const [name, value] of Object.entries(counts) as [keyof SimCounts, number][]) {
    if (name === 'spoiled') assert.equal(value, 0, 'no answer is wrong or cut short');
    else assert.ok(value > 0, `${name} was never seen`);
  }
}

/** A seed in which the harm comes soon, and what it is. */
const SEEN: Readonly<Record<FaultName, readonly [number, SimInvariant]>> = {
  'rejected-stays-alive': [258, 'noForeignRead'],
  'count-unchecked': [121, 'noForeignRead'],
  'silent-abort': [121, 'noForeignRead'],
  'reuse-before-drain': [61, 'noForeignRead'],
  'timeout-authorises-reuse': [190, 'noForeignRead'],
  'room-collision': [333, 'noForeignRead'],
  'stale-handle': [212, 'noForeignRead'],
  'retry-keeps-attempt': [13, 'noForeignRead'],
  'unfenced-restart': [24, 'noForeignRead'],
  'torn-write': [14, 'noForeignRead'],
  'unannounced-rejection': [3, 'everythingComesToRest'],
  'unsalted-prefix': [47, 'noForeignPrefix'],
  'prefix-hash-collision': [251, 'noForeignPrefix'],
};

for (const fault of FAULTS) {
  const [seed, invariant] = SEEN[fault];
  test(`${fault}: ${invariant} is broken with its guards off, and nothing is with every guard on`, () => {
    const guards = ALL_GUARDS & ~guardsAgainst([fault]);
    assert.equal(simulate(world(seed, { fault, guards })).violation?.invariant, invariant);
    for (const one of IS_LONG ? Array.from({ length: 40 }, (_, i) => i + 1) : [seed, 1]) {
      assert.equal(simulate(world(one, { fault })).violation, null, replayLine(world(one, { fault })));
    }
    assert.equal(
      simulate(world(seed, { guards })).violation,
      null,
      'without the fault there is nothing to guard against',
    );
  });
}

test('a foreign read is seen by content where neither tag nor checksum is compared', () => {
  const { violation } = simulate(world(258, { fault: 'rejected-stays-alive', guards: 0 }));
  assert.equal(violation?.invariant, 'noForeignRead');
  assert.match(violation?.words ?? '', /^token \d+ of request \d+ of tenant \d+ does not follow from its own content/);
});

test('what breaks is shrunk to a world of few requests and troubles, and its line replays it', () => {
  const options = world(333, {
    fault: 'room-collision',
    guards: ALL_GUARDS & ~guardsAgainst(['room-collision']),
    steps: 30_000,
  });
  const failed = simulate(options);
  const { options: small, result } = shrink(options, failed);
  assert.equal(result.violation?.invariant, failed.violation?.invariant);
  assert.ok(
    result.counts.requests <= failed.counts.requests && result.counts.requests <= 8,
    `${result.counts.requests} requests`,
  );
  assert.ok(small.steps <= (failed.violation?.step ?? 0) + 1);
  assert.ok(small.without.length > 0 && small.without.length <= TROUBLES.length);
  assert.equal(simulate(small).hash, result.hash);
  const line = replayLine(small);
  assert.match(
    line,
    /^cofferdam verify --simulate --seed 333 --steps \d+ --requests \d+ --fault room-collision --guards off --without [a-z,-]+$/,
  );
});
