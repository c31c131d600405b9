/**
 * Goal: the explorer finds what is there, shortest first, and says where it stopped; the handoff holds in small scopes, explored whole.
 * Method: tiny worlds with planted mistakes; scopes of the real machines with pinned counts; each fault with its guards off and on.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FaultName, faultBits, guardsAgainst } from '../handoff/faults.js';
import { ALL_GUARDS } from '../handoff/guards.js';
import { type Exploration, explore } from './explore.js';
import type { Model } from './model.js';
import { HandoffModel, type HandoffScope } from './models/handoff.js';

/** One byte that counts from 0: action 1 adds one, action 2 doubles; ends at 20. */
function counting(changes: Partial<Model> = {}): Model {
  return {
    width: 1,
    sometimes: [{ name: 'ten is reached', holds: (cells, at) => cells[at] === 10 }],
    init: (cells, at) => {
      cells[at] = 0;
    },
    actions: (_cells, _at, into) => {
      into[0] = 1;
      into[1] = 2;
      return 2;
    },
    next: (cells, at, action, next, nextAt) => {
      const value = action === 1 ? cells[at] + 1 : cells[at] * 2;
      next[nextAt] = value;
      return value !== cells[at] && value <= 20;
    },
    broken: () => null,
    settled: (cells, at) => cells[at] === 20,
    inWords: (action, cells, at) => `${action === 1 ? 'add' : 'double'} at ${cells[at]}`,
    ...changes,
  };
}

test('a space that is explored whole holds, with every state counted once', () => {
  const found = explore(counting(), { statesMax: 21 });
  assert.equal(found.verdict, 'holds');
  assert.equal(found.distinct, 21);
  assert.deepEqual(found.reached, { 'ten is reached': true });
});

test('states are visited breadth first, so the depth is the longest of the shortest paths', () => {
  const order: number[] = [];
  const found = explore(
    counting({
      broken: (cells, at) => {
        order.push(cells[at]);
        return null;
      },
    }),
    { statesMax: 100 },
  );
  assert.deepEqual(order.slice(0, 8), [0, 1, 2, 3, 4, 6, 5, 8]);
  assert.equal(found.depth, 7);
});

test('a planted violation is found with its shortest path', () => {
  const found = explore(counting({ broken: (cells, at) => (cells[at] === 12 ? 'twelve' : null) }), { statesMax: 100 });
  assert.equal(found.verdict, 'violated');
  assert.equal(found.broken?.words, 'twelve');
  assert.deepEqual(found.broken?.path, ['add at 0', 'add at 1', 'add at 2', 'double at 3', 'double at 6']);
});

test('a planted livelock is found: states that run in a circle and can never settle', () => {
  // From 7 on nothing leads but 7 -> 8 -> 7; it is reached over 6, which could also have gone elsewhere.
  const livelock = counting({
    next: (cells, at, action, next, nextAt) => {
      const value = cells[at];
      const to = value === 7 ? 8 : value === 8 ? 7 : action === 1 ? value + 1 : value * 2;
      next[nextAt] = to;
      return to !== value && to <= 20;
    },
    settled: (cells, at) => cells[at] === 12,
  });
  const found = explore(livelock, { statesMax: 100 });
  assert.equal(found.verdict, 'violated');
  assert.equal(found.broken, null);
  assert.ok((found.stuck?.count ?? 0) >= 2);
  assert.equal(found.stuck?.path.at(-1), 'double at 4', 'eight is the nearest of them');
});

test('a space with more states than the bound is incomplete, and nothing is said about what can settle', () => {
  const found = explore(counting({ settled: () => false }), { statesMax: 20 });
  assert.equal(found.verdict, 'incomplete');
  assert.equal(found.distinct, 20);
  assert.equal(found.stuck, null);
});

const ONE: HandoffScope = {
  slots: 1,
  prefillPages: 1,
  decodePages: 1,
  promptPages: [1],
  tenants: [1],
  retries: 0,
  aborts: 0,
  losses: 0,
  repeats: 0,
  prefillCrashes: 0,
  decodeCrashes: 0,
  abandons: 0,
  messagesMax: 6,
  limit: 9,
  rules: { faults: 0, guards: ALL_GUARDS },
};
/** Two tenants whose requests need the same page of decode. */
const TWO: HandoffScope = { ...ONE, slots: 2, promptPages: [1, 1], tenants: [1, 2], messagesMax: 4 };

const STATES_MAX = 600_000;

/** Scopes that are explored whole. A count that changes means that the protocol did: find out why before it is pinned again. */
const PINNED: readonly { readonly what: string; readonly scope: HandoffScope; readonly distinct: number }[] = [
  {
    what: 'one request, a message lost, one repeated, a client that leaves, a prefill that restarts',
    scope: { ...ONE, aborts: 1, losses: 1, repeats: 1, prefillCrashes: 1, messagesMax: 8 },
    distinct: 479_860,
  },
  {
    what: 'one request of two pages, a message lost, a client that leaves, a prefill that gives up',
    scope: { ...ONE, promptPages: [2], prefillPages: 2, decodePages: 2, aborts: 1, losses: 1, abandons: 1 },
    distinct: 22_143,
  },
  {
    what: 'one request with a second attempt, both nodes restart',
    scope: { ...ONE, retries: 1, prefillCrashes: 1, decodeCrashes: 1, messagesMax: 3 },
    distinct: 104_112,
  },
  {
    what: 'two requests over one page, decode restarts, a wire that holds two messages',
    scope: { ...TWO, decodeCrashes: 1, messagesMax: 2 },
    distinct: 75_023,
  },
];

for (const { what, scope, distinct } of PINNED) {
  test(`the handoff holds: ${what} (${distinct} states)`, () => {
    const found = explore(new HandoffModel(scope), { statesMax: STATES_MAX });
    assert.deepEqual(verdictOf(found), { verdict: 'holds', broken: null, stuck: 0 });
    assert.equal(found.distinct, distinct);
    assert.equal(found.reached['a request streams'], true);
  });
}

function verdictOf(found: Exploration): { verdict: string; broken: string | null; stuck: number } {
  return { verdict: found.verdict, broken: found.broken?.words ?? null, stuck: found.stuck?.count ?? 0 };
}

const SMOKE_STATES = 150_000;

test(`${SMOKE_STATES} states of two requests over one page are explored with every invariant on`, (context) => {
  const scope: HandoffScope = { ...TWO, aborts: 1, losses: 1, abandons: 1, messagesMax: 8 };
  const before = process.cpuUsage();
  const found = explore(new HandoffModel(scope), { statesMax: SMOKE_STATES });
  const { user, system } = process.cpuUsage(before);
  const rate = Math.round(found.distinct / ((user + system) / 1e6));
  context.diagnostic(`${found.distinct} distinct states, ${rate} per CPU-second`);
  assert.deepEqual(verdictOf(found), { verdict: 'incomplete', broken: null, stuck: 0 });
  assert.ok(found.distinct >= 100_000);
});

const LARGE: Partial<HandoffScope> = { promptPages: [2, 2], prefillPages: 2, decodePages: 2 };
/** What each fault needs to show. Torn payloads, handles and prefixes are no part of this model. */
const FAULT_SCOPES: Partial<Record<FaultName, HandoffScope>> = {
  'rejected-stays-alive': { ...ONE, promptPages: [2], decodePages: 2, limit: 1 },
  'count-unchecked': { ...ONE, ...LARGE, promptPages: [2] },
  'silent-abort': { ...ONE, ...LARGE, promptPages: [2], abandons: 1 },
  'reuse-before-drain': { ...TWO, prefillPages: 2, aborts: 1 },
  'timeout-authorises-reuse': { ...TWO, prefillPages: 2, aborts: 1 },
  'room-collision': { ...TWO, prefillPages: 2, decodePages: 2 },
  'retry-keeps-attempt': { ...ONE, retries: 1, prefillCrashes: 1, repeats: 1 },
  'unfenced-restart': { ...TWO, prefillPages: 2, prefillCrashes: 1 },
  'unannounced-rejection': { ...ONE, promptPages: [2], decodePages: 2, limit: 1 },
};
const FAULT_STATES_MAX = 60_000;

for (const [name, scope] of Object.entries(FAULT_SCOPES) as [FaultName, HandoffScope][]) {
  const faults = faultBits([name]);

  test(`${name} is found with its guards off`, (context) => {
    const guards = ALL_GUARDS & ~guardsAgainst([name]);
    const found = explore(new HandoffModel({ ...scope, rules: { faults, guards } }), { statesMax: STATES_MAX });
    assert.equal(found.verdict, 'violated');
    const path = found.broken?.path ?? found.stuck?.path ?? [];
    context.diagnostic(`${found.broken?.words ?? 'can never settle'}, after ${path.length} actions`);
    assert.ok(path.length > 0);
  });

  test(`${name} is not found with every guard on, in up to ${FAULT_STATES_MAX} states`, (context) => {
    const found = explore(new HandoffModel({ ...scope, rules: { faults, guards: ALL_GUARDS } }), {
      statesMax: FAULT_STATES_MAX,
    });
    context.diagnostic(`${found.verdict} after ${found.distinct} states`);
    assert.notEqual(found.verdict, 'violated', found.broken?.words ?? found.stuck?.path.join('\n'));
  });
}
