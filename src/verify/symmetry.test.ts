/**
 * Goal: exploring one state of each orbit is exploring them all. Method: all states without symmetry, sorted into orbits, are as many as
 * the orbits that the run under symmetry meets; pinned counts; faults are found at the same depth.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FaultName } from '../handoff/faults.js';
import { faultJobs, type Job, modelOf, runJob, soundJobs } from './campaign.js';
import { explore } from './explore.js';
import { renamingsOf } from './models/handoff-symmetry.js';
import { scopeOf, scopeOfFault, type ScopeName } from './scopes.js';
import { Fingerprint } from './table.js';

/** The orbits of all states that a run without symmetry meets. */
function orbitsOf(job: Job): number {
  const model = modelOf(job);
  const twin = modelOf({ ...job, symmetry: true });
  const print = new Fingerprint();
  const always = model.properties.always.bind(model.properties);
  const orbits = new Set<string>();
  model.properties.always = (touched) => {
    let least = '';
    for (let image = 0; image < (twin.symmetry?.count ?? 0); image++) {
      twin.cells.set(model.cells);
      twin.symmetry?.image(image);
      print.of(twin.record.words, twin.wordsUsed());
      const name = `${print.low} ${print.high}`;
      if (least === '' || name < least) least = name;
    }
    orbits.add(least);
    return always(touched);
  };
  explore(model, { liveness: false });
  return orbits.size;
}

/** Distinct states of each world under symmetry. */
const PINNED: readonly (readonly [ScopeName, readonly number[]])[] = [
  ['small', [23_804, 33_064, 53_682, 96_056]],
  ['handles', [25_459]],
  ['restarts', [136_234]],
];

for (const [name, counts] of PINNED) {
  for (const [at, job] of soundJobs(scopeOf(name), { symmetry: true }).entries()) {
    test(`under symmetry ${name} holds: ${job.title} (${counts[at]} states)`, () => {
      const found = runJob(job);
      assert.deepEqual([found.verdict, found.reasons, found.distinct, found.stuck], ['holds', [], counts[at], 0]);
    });
  }
}

const IS_LONG = process.env.COFFERDAM_LONG === '1';

for (const name of ['handles', 'retries', ...(IS_LONG ? (['prefixes'] as const) : [])] as const) {
  test(`the orbits of all states of ${name} are those that a run under symmetry meets`, () => {
    const [job] = soundJobs(scopeOf(name));
    assert.equal(orbitsOf(job), runJob({ ...job, symmetry: true }).distinct);
  });
}

for (const fault of ['room-collision', 'stale-handle', 'unfenced-restart', 'unsalted-prefix'] as FaultName[]) {
  test(`${fault} is found under symmetry after as many steps as without`, () => {
    const [off] = faultJobs(fault, scopeOf(scopeOfFault(fault))).off;
    const depth = (symmetry: boolean): number | undefined => runJob({ ...off, symmetry }).violation?.path.length;
    assert.equal(depth(true), depth(false));
  });
}

test('requests may change names where they are alike, tenants along with them', () => {
  const [a, b] = [1, 2].map((tenant) => ({ tenant, pages: 1, hash: 1 }));
  const orders = (...requests: (typeof a)[]): string[] => renamingsOf(requests).map(({ request }) => request.join(''));
  assert.deepEqual(orders(a, b), ['01', '10']);
  assert.deepEqual(orders(a, { ...b, pages: 2 }), ['01']);
  assert.deepEqual(orders(a, b, a), ['012', '210']);
});
