/**
 * Goal: what the checker finds is what the engine does. Method: the shortest counterexample of every fault is explored anew, driven through
 * the real engine in its order of events, and does its harm with the guards off and none with them on. `COFFERDAM_LONG=1` adds every guard
 * on and each guard alone.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Counterexample, counterexampleText, parseCounterexample } from '../handoff/counterexample.js';
import { CATALOGUE, type FaultName, FAULTS, guardsAgainst, type Outcome } from '../handoff/faults.js';
import { ALL_GUARDS, guardBit, type GuardName } from '../handoff/guards.js';
import { faultJobs, runJob } from '../verify/campaign.js';
import { counterexampleOf } from '../verify/counterexample.js';
import { scopeOf, scopeOfFault } from '../verify/scopes.js';
import { driveCounterexample, undriven } from './trace-replay.js';

const SEED = Number(process.env.SEED ?? 1);
const IS_LONG = process.env.COFFERDAM_LONG === '1';

interface Row {
  readonly off: Outcome;
  readonly on: Outcome;
  /** What is read with the guards off; null: nothing that is another's. */
  readonly read: RegExp | null;
  /** Whether a marker of another tenant is in the answer. */
  readonly isTold: boolean;
}

const ROWS: Readonly<Record<FaultName, Row>> = {
  'rejected-stays-alive': {
    off: 'leaked',
    on: 'refused',
    read: /^page 1, written for an earlier request$/,
    isTold: true,
  },
  'count-unchecked': {
    off: 'leaked',
    on: 'failed-closed',
    read: /^page 1, written for an earlier request$/,
    isTold: true,
  },
  'silent-abort': {
    off: 'leaked',
    on: 'failed-closed',
    read: /^page 1, written for an earlier request$/,
    isTold: true,
  },
  'reuse-before-drain': { off: 'leaked', on: 'answered', read: /^page 0, written for A$/, isTold: true },
  'timeout-authorises-reuse': { off: 'leaked', on: 'answered', read: /^page 0, written for A$/, isTold: true },
  // Its own pages land behind the first tokens.
  'room-collision': { off: 'leaked', on: 'answered', read: /^page 1, written for an earlier request$/, isTold: false },
  'stale-handle': { off: 'leaked', on: 'refused', read: /^page 0, written for an earlier request$/, isTold: true },
  // One tenant: what is read is what a dead prefill wrote for the first attempt.
  'retry-keeps-attempt': {
    off: 'leaked',
    on: 'failed-closed',
    read: /^page 0, written for an earlier lease of A$/,
    isTold: false,
  },
  'unfenced-restart': { off: 'leaked', on: 'answered', read: /^page 0, written for A$/, isTold: true },
  'torn-write': {
    off: 'leaked',
    on: 'failed-closed',
    read: /^page 1, of which only the header arrived$/,
    isTold: true,
  },
  'unannounced-rejection': { off: 'hung', on: 'refused', read: null, isTold: false },
  'unsalted-prefix': { off: 'shared', on: 'answered', read: /^page 0, sealed for tenant 1$/, isTold: false },
  'prefix-hash-collision': { off: 'leaked', on: 'answered', read: /^page 0, sealed for tenant 1$/, isTold: true },
};

function counterexample(fault: FaultName): Counterexample {
  const [job] = faultJobs(fault, scopeOf(scopeOfFault(fault))).off;
  assert.ok(job !== undefined);
  const found = counterexampleOf({ job, found: runJob(job) });
  assert.ok(found !== null, 'the fault breaks something');
  // As a file has it.
  return parseCounterexample(counterexampleText(found));
}

for (const fault of FAULTS) {
  test(`the counterexample of ${fault} does on the engine what it does in the checker (seed ${SEED})`, () => {
    const { off, on, read, isTold } = ROWS[fault];
    const found = counterexample(fault);
    assert.equal(undriven(found), null);
    const drive = (guards: number): ReturnType<typeof driveCounterexample> =>
      driveCounterexample(found, { guards, seed: SEED });
    const harm = drive(ALL_GUARDS & ~guardsAgainst([fault]));
    const isAsTold = harm.steps.every(({ fate }) => fate === 'told' || fate === 'early');
    assert.ok(isAsTold, `every step happens: ${JSON.stringify(harm.steps)}`);
    assert.deepEqual([harm.outcome, harm.isAsExpected, harm.isStopped], [off, true, false]);
    assert.equal(harm.markerCharacters >= 12, isTold, `${harm.markerCharacters} characters of a marker`);
    if (read === null) assert.deepEqual([harm.foreignTokens, harm.lostPages > 0], [0, true]);
    else
      assert.ok(harm.foreignTokens > 0 && harm.foreignPages.some((page) => read.test(page)), harm.foreignPages.join());
    // `policy` is no part of the engine. What the first attempt wrote has the bytes that its own completion names, so no checksum differs.
    const isNotHere = (guard: GuardName): boolean =>
      guard === 'policy' || (fault === 'retry-keeps-attempt' && guard === 'checksum');
    const guardSets = IS_LONG ? CATALOGUE[fault].guards.filter((guard) => !isNotHere(guard)).map(guardBit) : [];
    for (const guards of guardSets) assert.equal(drive(guards).isAsExpected, true, `guards ${guards}`);
    if (!IS_LONG && off === 'leaked' && on !== 'refused' && fault !== 'torn-write') return;
    const stopped = drive(ALL_GUARDS);
    assert.deepEqual([stopped.outcome, stopped.isAsExpected, stopped.isStopped], [on, true, true]);
    assert.deepEqual([stopped.foreignTokens, stopped.markerCharacters, stopped.lostPages], [0, 0, 0]);
  });
}

test('what the engine cannot be driven through is named with its step', () => {
  const found = counterexample('stale-handle');
  const step = { n: 6, do: 'decodeRestart', words: 'decode restarts' } as const;
  assert.equal(
    undriven({ ...found, steps: [...found.steps, step] }),
    'step 6 (decode restarts): the engine in one thread has one decode for its life',
  );
});

test('a file that is cut, of another version or kind, or with a step that cannot be is refused by its line', () => {
  const text = counterexampleText(counterexample('stale-handle'));
  const lines = text.trimEnd().split('\n');
  const damaged: readonly (readonly [string, RegExp])[] = [
    ['', /line 1 .* the head of a counterexample, got `an empty file`/],
    ['no trace', /line 1 .* one whole record of JSON/],
    ['{"trace":"cofferdam-handoff","version":1}', /line 1 .* named cofferdam-counterexample, got `cofferdam-handoff`/],
    [text.replace('"version":1', '"version":2'), /line 1 .* version 1, got `2`/],
    [text.replace('"fault":"stale-handle"', '"fault":"stale"'), /line 1 .* a fault of the catalogue/],
    [text.replace(/"slots":\d+/, '"slots":0'), /line 1 .* a world of requests/],
    [lines.slice(0, 4).join('\n'), /line 4 .* the end \(is the file cut\?\)/],
    [text.slice(0, -30), /the file cut\?/],
    [lines.filter((_, at) => at !== 2).join('\n'), /line 6 .* the end of 4 steps, got `5`/],
    [text.replace('"do":"attach"', '"do":"explode"'), /line 4 .* a step that can happen, got `explode`/],
    [text.replace('"event":"start"', '"event":"boom"'), /line 3 .* a message of the protocol/],
    [text.replace('"do":"attach","slot":0', '"do":"attach","slot":7'), /line 4 .* of a slot, got `7`/],
    [text.replace('"request":0', '"request":-1'), /line 2 .* a count as `request`/],
  ];
  for (const [changed, words] of damaged) assert.throws(() => parseCounterexample(changed), words);
});
