/**
 * Goal: the protocol that runs holds in every order of events of the named scopes, and every fault of the catalogue is caught in them.
 * Method: `verify` itself. Counts are pinned: another count is another protocol or another world; find out why before it is pinned again.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CATALOGUE, FAULTS, type FaultName } from '../handoff/faults.js';
import { ALL_GUARDS, guardBit } from '../handoff/guards.js';
import {
  brokenJobs,
  faultJobs,
  judge,
  modelOf,
  runFaults,
  runInPlace,
  runJob,
  soundJobs,
  summarize,
} from './campaign.js';
import { diagramOf } from './diagram.js';
import { isScopeName, SCOPE_NAMES, scopeOf, scopeOfFault, type ScopeName } from './scopes.js';
import { storyOf } from './story.js';
import { onThreads } from './threads.js';

const IS_LONG = process.env.COFFERDAM_LONG === '1';

/** Distinct states of each world. */
const PINNED: Readonly<Partial<Record<ScopeName, readonly number[]>>> = {
  small: [23_804, 33_785, 107_831, 203_265],
  alone: [12_241],
  oversized: [691],
  restarts: [272_477],
  retries: [58_155],
  handles: [77_003],
  ...(IS_LONG
    ? {
        faults: [1_216_630],
        default: [1_989_811, 4_456_059, 4_415_423, 1_555_345, 2_286_190, 710_303, 170_477, 1_416_569],
      }
    : {}),
};

for (const [name, counts] of Object.entries(PINNED) as [ScopeName, readonly number[]][]) {
  const jobs = soundJobs(scopeOf(name));
  for (const [at, job] of jobs.entries()) {
    test(`${name}: the protocol holds, liveness included: ${job.title} (${counts[at]} states)`, (context) => {
      const found = runJob(job);
      assert.deepEqual([found.verdict, found.reasons, found.distinct, found.stuck], ['holds', [], counts[at], 0]);
      context.diagnostic(`${found.rate} distinct states a CPU-second, invariants on, symmetry off`);
    });
  }
}

/** What breaks first with the guards off, and after how many steps. */
const CAUGHT: Readonly<Record<FaultName, readonly [string, number]>> = {
  'rejected-stays-alive': ['noForeignRead', 11],
  'count-unchecked': ['noForeignRead', 11],
  'silent-abort': ['noForeignRead', 10],
  'reuse-before-drain': ['noForeignRead', 22],
  'timeout-authorises-reuse': ['noForeignRead', 23],
  'room-collision': ['noForeignRead', 14],
  'stale-handle': ['noForeignRead', 5],
  'retry-keeps-attempt': ['noForeignRead', 15],
  'unfenced-restart': ['noForeignRead', 20],
  'torn-write': ['noForeignRead', 13],
  'unannounced-rejection': ['everythingCanSettle', 5],
  'unsalted-prefix': ['prefixesStayInsideOneTenant', 16],
  'prefix-hash-collision': ['prefixesStayInsideOneTenant', 16],
};

for (const fault of FAULTS) {
  const [invariant, steps] = CAUGHT[fault];
  const [job] = faultJobs(fault, scopeOf(scopeOfFault(fault))).off;

  test(`${fault} with its guards off: ${invariant} breaks after ${steps} steps, and its story can be told`, () => {
    const { violation } = runJob(job);
    assert.ok(violation !== null);
    assert.deepEqual([violation.invariant, violation.path.length], [invariant, steps]);
    const story = storyOf(modelOf(job), violation.path, violation.words);
    assert.equal(story.steps.length, steps);
    assert.equal(diagramOf(story).split('\n').length, steps + 3);
    assert.ok(story.pages.length > 0);
  });
}

/** Those whose scope is small; in a long run all of them. */
const QUICK = FAULTS.filter((fault) => ['alone', 'oversized', 'retries', 'handles'].includes(scopeOfFault(fault)));

for (const fault of IS_LONG ? FAULTS : QUICK) {
  test(`${fault} is caught: it breaks the protocol with its guards off, and does not with them on`, async () => {
    const [finding] = await runFaults([fault], runInPlace);
    assert.equal(finding.verdict, 'caught', finding.on.results[0].found.violation?.words);
  });
}

test('the story of a late write names every use of the page by its step', () => {
  const [job] = faultJobs('reuse-before-drain', scopeOf('faults')).off;
  const { violation } = runJob(job);
  assert.ok(violation !== null);
  const story = storyOf(modelOf(job), violation.path, violation.words);
  assert.deepEqual(story.pages, [
    "page 0 of decode was leased to A at step 4, freed by the abort of A at step 7, leased to B at step 13, written by B's chunk at step 17, written by A's late chunk at step 19, read by B at step 21, read to the end by B at step 22",
  ]);
});

test('a fault that nothing here triggers is missed, and one that breaks through its guards is unguarded', () => {
  const on = (guards: number): ReturnType<typeof summarize> =>
    summarize(brokenJobs(scopeOf('oversized'), { faults: 1, guards }).map((job) => ({ job, found: runJob(job) })));
  const whole = on(ALL_GUARDS);
  const broken = on(0);
  assert.equal(judge('rejected-stays-alive', 'oversized', whole, whole).verdict, 'missed');
  assert.equal(judge('rejected-stays-alive', 'oversized', broken, broken).verdict, 'unguarded');
  assert.equal(judge('rejected-stays-alive', 'oversized', broken, whole).verdict, 'caught');
  assert.equal(on(ALL_GUARDS & ~guardBit('admission')).verdict, 'holds', 'one guard off is not enough');
});

test('a run whose memory ends says incomplete, and gives up liveness first', () => {
  const [job] = soundJobs(scopeOf('faults'), { memoryBytesMax: 70 << 20 });
  const found = runJob(job);
  assert.equal(found.verdict, 'incomplete');
  assert.match(found.reasons.join(), /liveness: its edges do not fit/);
  assert.equal(found.stuck, null);
});

test('threads find what is found in place, in the order of the jobs', async () => {
  const jobs = ['oversized', 'alone'].flatMap((name) => soundJobs(scopeOf(name as ScopeName)));
  const counts = (await onThreads(2)(jobs)).map(({ found }) => found.distinct);
  assert.deepEqual(counts, [691, 12_241]);
});

test('every fault names a scope that there is, and every scope has two tenants or a second attempt', () => {
  for (const fault of FAULTS) {
    const { scope } = CATALOGUE[fault];
    assert.ok(scope === undefined || isScopeName(scope), fault);
  }
  for (const name of SCOPE_NAMES) {
    for (const { world } of scopeOf(name).worlds) assert.ok(world.prefillPages <= world.decodePages, name);
  }
});
