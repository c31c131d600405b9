/**
 * Goal: the protocol that runs holds in every order of events of the named scopes, and every fault of the catalogue is caught in them.
 * Method: `verify` itself. Counts are pinned: another count is another protocol or another world.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FAULTS, type FaultName } from '../handoff/faults.js';
import { tell } from './tell.js';
import { FAULT_SCOPES, SCOPE_NAMES, SCOPES, type ScopeName } from './scopes.js';
import { modelOf, rulesOf, verifyFault, verifyScope } from './verify.js';

const IS_LONG = process.env.COFFERDAM_LONG === '1';

const PINNED: readonly (readonly [ScopeName, number])[] = [
  ['small', 169_721],
  ['chunks', 186_497],
  ...(IS_LONG ? ([['faults', 693_101]] as const) : []),
];

for (const [scope, distinct] of PINNED) {
  test(`the scope ${scope} holds whole, liveness included, in ${distinct} distinct states`, (context) => {
    const found = verifyScope(scope);
    assert.deepEqual([found.verdict, found.reasons, found.distinct, found.stuck], ['holds', [], distinct, 0]);
    context.diagnostic(`${found.rate} distinct states a CPU-second, invariants on, symmetry off`);
  });
}

test('the scope faults has at least 500,000 distinct states without a fault', () => {
  assert.equal(SCOPES.faults.slots, 1);
  const found = verifyScope('faults', { statesMax: 500_000, liveness: false });
  assert.deepEqual([found.verdict, found.distinct >= 500_000], ['incomplete', true]);
});

/** In every run the small ones, in a long run all of them. */
const QUICK: readonly FaultName[] = [
  'rejected-stays-alive',
  'count-unchecked',
  'retry-keeps-attempt',
  'unfenced-restart',
  'unannounced-rejection',
];

for (const fault of IS_LONG ? FAULTS : QUICK) {
  test(`${fault} is caught: it breaks the protocol with its guards off, and does not with them on`, () => {
    const report = verifyFault(fault);
    assert.equal(
      report.verdict,
      'caught',
      JSON.stringify([report.off.verdict, report.on.verdict, report.on.violation]),
    );
  });
}

for (const fault of FAULTS) {
  test(`${fault} breaks the protocol with its guards off, and its story can be told`, () => {
    const { off } = verifyFault(fault, { statesMax: 40_000, liveness: fault === 'unannounced-rejection' });
    assert.equal(off.verdict, 'violated');
    const path = off.violation?.path ?? [];
    const story = tell(modelOf(FAULT_SCOPES[fault], rulesOf(fault, 'off')), path);
    assert.equal(story.steps.length, path.length);
    assert.equal(story.diagram.length, path.length + 1);
    for (const [step, line] of story.steps.entries()) assert.ok(line.trimStart().startsWith(`${step + 1}. `), line);
  });
}

test('a run whose memory ends says incomplete, and gives up liveness first', () => {
  const found = verifyScope('faults', { memoryBytesMax: 64 << 20 });
  assert.equal(found.verdict, 'incomplete');
  assert.match(found.reasons.join(), /liveness: its edges do not fit|the bound of \d+ bytes/);
});

test('every scope has two tenants or retries, and prefill no larger than decode', () => {
  for (const name of SCOPE_NAMES) {
    const { requests, prefillPages, decodePages, retries } = SCOPES[name];
    assert.ok(new Set(requests.map(({ tenant }) => tenant)).size === 2 || retries > 0, name);
    assert.ok(prefillPages <= decodePages, name);
  }
});
