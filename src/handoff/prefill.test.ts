/**
 * Goal: prefill's two promises: `complete` only when its own writes have settled, `drained` only when nothing can still land.
 * Method: scripted events, exact effects and page numbers.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Result } from './messages.js';
import { Scripted, type ScriptedOptions } from './scripted.js';
import type { NamedEvent } from './step.js';

const START: NamedEvent = {
  kind: 'start',
  attempt: 1,
  to: 1,
  room: 5,
  tokens: 9,
  promptPages: 2,
  pages: 3,
  tenant: 1,
  salt: 11,
};
/** Decode's pages 6 and 4, under epochs 1 and 2. */
const LEASE: NamedEvent = {
  ...START,
  kind: 'lease',
  from: 1,
  list: [
    [6, 1],
    [4, 2],
  ],
};
const ADMIT: NamedEvent = { kind: 'admit', attempt: 1 };
const chunk = (pages: number, tokens = 0): NamedEvent => ({ kind: 'chunk', attempt: 1, pages, tokens });
const settled = (pages: number): NamedEvent => ({ kind: 'settled', attempt: 1, pages });
const COMMITTED: NamedEvent = { kind: 'committed', attempt: 1, from: 1, to: 1 };
const ABORT: NamedEvent = { kind: 'abort', attempt: 1, to: 1 };
const DRAIN: NamedEvent = { kind: 'drain', attempt: 1, from: 1, to: 1 };

function after(events: readonly NamedEvent[], options: ScriptedOptions = {}): Scripted {
  const prefill = new Scripted('prefill', options);
  for (const event of events) prefill.do(event);
  return prefill;
}

test('nothing is computed or written without a lease', () => {
  const prefill = after([START]);
  assert.equal(prefill.phase(), 'waiting');
  assert.deepEqual(prefill.do(ADMIT), []);
  assert.deepEqual(prefill.do(chunk(1)), []);
  assert.equal(prefill.phase(), 'waiting');
  assert.equal(prefill.free(), 4);
});

test('a prompt is computed into pages of its own and posted chunk by chunk into the pages of the lease', () => {
  const prefill = after([START, LEASE, ADMIT]);
  assert.equal(prefill.phase(), 'computing');
  assert.deepEqual(prefill.held(0, 0), [0, 1], 'source');
  assert.deepEqual(prefill.held(0, 1), [6, 4], 'target');
  assert.deepEqual(prefill.held(0, 2), [1, 2], 'epoch');
  assert.deepEqual(prefill.do(chunk(1)), ['post 0+1']);
  assert.deepEqual(prefill.do(chunk(5)), ['post 1+1'], 'no more than the prompt has');
  assert.equal(prefill.phase(), 'flushing');
});

test('complete is said only when every write has settled, with the tokens that were computed', () => {
  const prefill = after([START, LEASE, ADMIT, chunk(2)]);
  assert.deepEqual(prefill.do(settled(1)), []);
  assert.deepEqual(prefill.do(settled(1)), ['pagesFreed', 'decode: complete']);
  assert.equal(prefill.effects[1]?.tokens, 9);
  assert.equal(prefill.effects[1]?.room, 5);
  assert.equal(prefill.free(), 4);
  assert.deepEqual(prefill.do({ kind: 'timer' }), ['decode: complete'], 'asked again');
  assert.deepEqual(prefill.do(COMMITTED), ['gateway: prefillClosed finished']);
  assert.equal(prefill.phase(), 'idle');
});

test('writes settle only once each, and never backwards', () => {
  const prefill = after([START, LEASE, ADMIT, chunk(1)]);
  for (const pages of [0, -1, 9, -1]) prefill.do(settled(pages));
  assert.deepEqual([prefill.slot('posted'), prefill.slot('settled')], [1, 1]);
  for (const pages of [0, -1]) assert.deepEqual(prefill.do(chunk(pages)), []);
  assert.equal(prefill.slot('posted'), 1);
});

test('a prompt that does not fit is rejected: the original error goes to the gateway and to decode, nothing is posted', () => {
  const prefill = new Scripted('prefill');
  const effects = prefill.do({ ...START, promptPages: 5, pages: 5 });
  assert.deepEqual(effects, ['guard: rejection', 'gateway: prefillClosed refused', 'decode: reject']);
  assert.equal(prefill.phase(), 'idle');
  assert.deepEqual(prefill.do({ ...LEASE, promptPages: 5 }), ['decode: reject'], 'a lease that comes later');
  assert.deepEqual(prefill.do({ ...START, promptPages: 5 }), ['gateway: prefillClosed refused'], 'asked again');
});

test('a lease stands for a start that was lost, and repeats of either change nothing', () => {
  const prefill = after([LEASE]);
  assert.equal(prefill.phase(), 'waiting');
  const before = prefill.state.cells;
  assert.deepEqual(prefill.do(START), []);
  assert.deepEqual(
    prefill.do({
      ...LEASE,
      list: [
        [3, 3],
        [2, 2],
      ],
    }),
    [],
  );
  assert.deepEqual(prefill.state.cells, before, 'the first lease stands');
});

test('a lease that names too few pages is none', () => {
  const prefill = after([START]);
  prefill.do({ ...LEASE, list: [[6, 1]] });
  assert.equal(prefill.slot('peer'), 0);
  prefill.do({ ...LEASE, code: 3 });
  prefill.do({ ...LEASE, code: -1 });
  assert.equal(prefill.slot('peer'), 0);
});

test('a place that decode shares with others is computed and never written', () => {
  const prefill = after([START, { ...LEASE, code: 1, list: [[6, 1]] }, ADMIT]);
  assert.deepEqual(prefill.do(chunk(2)), ['post 1+1']);
  assert.deepEqual(prefill.held(0, 1), [0, 6], 'the page named stands for the second place');
  assert.deepEqual(prefill.do(settled(1)), ['pagesFreed', 'decode: complete']);
});

test('a prompt of which decode has every place completes without a write', () => {
  const prefill = after([START, { ...LEASE, code: 2, list: [] }, ADMIT]);
  assert.deepEqual(prefill.do(chunk(1)), ['pagesFreed', 'decode: complete']);
});

test('a chunk of nothing changes nothing, even where a fault takes the first chunk for the whole', () => {
  for (const faults of [[], ['count-unchecked']] as const) {
    const prefill = after([START, LEASE, ADMIT], { faults });
    for (const pages of [0, -1]) assert.deepEqual(prefill.do(chunk(pages)), []);
    assert.equal(prefill.phase(), 'computing');
  }
});

test('what the runner says of another attempt is not heard', () => {
  const computing = after([START, LEASE, ADMIT, chunk(1)]);
  const before = computing.state.cells;
  for (const event of [settled(1), chunk(1), { kind: 'abandon' } as const]) {
    for (const attempt of [0, 2]) assert.deepEqual(computing.do({ ...event, attempt }), []);
  }
  assert.deepEqual(computing.state.cells, before);
  assert.deepEqual(after([START, LEASE]).do({ ...ADMIT, attempt: 2 }), []);
  assert.deepEqual(after([START]).do({ kind: 'abandon', attempt: 2 }), []);
});

test('a slot starts to compute only with pages for all of its prompt', () => {
  const second: NamedEvent[] = [START, LEASE, ADMIT].map((event) => ({ ...event, slot: 1 }));
  const prefill = after([START, LEASE, ADMIT, ...second], { pages: 3 });
  assert.equal(prefill.phase(1), 'waiting');
  assert.equal(prefill.free(), 1, 'and holds none until then');
  for (const event of [chunk(2), settled(2)]) prefill.do(event);
  prefill.do({ ...ADMIT, slot: 1 });
  assert.equal(prefill.phase(1), 'computing');
});

test('an abort with nothing on the wire ends at once and tells both sides', () => {
  for (const events of [
    [START, LEASE],
    [START, LEASE, ADMIT],
  ]) {
    const prefill = after(events);
    const effects = prefill.do(ABORT).filter((word) => word !== 'pagesFreed');
    assert.deepEqual(effects, ['gateway: prefillClosed aborted', 'decode: drained']);
    assert.equal(prefill.free(), 4);
  }
});

test('an abort with writes on the wire waits until the last has settled, and posts no more', () => {
  const prefill = after([START, LEASE, ADMIT, chunk(1)]);
  assert.deepEqual(prefill.do(ABORT), []);
  assert.equal(prefill.phase(), 'stopping');
  assert.deepEqual(prefill.do(chunk(1)), [], 'no more is posted');
  assert.deepEqual(prefill.do(DRAIN), [], 'drained would be a lie');
  assert.deepEqual(prefill.do(settled(1)), ['pagesFreed', 'gateway: prefillClosed aborted', 'decode: drained']);
  assert.deepEqual(prefill.do(DRAIN), ['decode: drained'], 'asked again');
  assert.deepEqual(prefill.do(ABORT), ['gateway: prefillClosed aborted'], 'asked again');
});

test('an attempt that was aborted or drained before it was seen is closed for good', () => {
  for (const [event, answer] of [
    [ABORT, 'gateway: prefillClosed aborted'],
    [DRAIN, 'decode: drained'],
  ] as const) {
    const prefill = new Scripted('prefill');
    assert.deepEqual(prefill.do(event), [answer]);
    assert.deepEqual(prefill.do(START), ['gateway: prefillClosed aborted']);
    assert.deepEqual(prefill.do(LEASE), ['decode: drained']);
    assert.equal(prefill.phase(), 'idle');
  }
});

test('a drain reaches an attempt whose lease was lost', () => {
  const prefill = after([START]);
  assert.deepEqual(prefill.do(DRAIN), ['gateway: prefillClosed aborted', 'decode: drained']);
});

test('a lease or drain of an older attempt hears that it is over', () => {
  const prefill = after([{ ...START, attempt: 2 }]);
  assert.deepEqual(prefill.do(LEASE), ['decode: drained']);
  assert.equal(prefill.effects[0]?.attempt, 1);
  assert.deepEqual(prefill.do(DRAIN), ['decode: drained']);
  assert.deepEqual(prefill.do(ABORT), []);
  assert.equal(prefill.phase(), 'waiting');
});

test('a slot that waits for its lease does not take one of a newer attempt', () => {
  const prefill = after([START]);
  assert.deepEqual(prefill.do({ ...LEASE, attempt: 2 }), []);
  assert.equal(prefill.slot('peer'), 0);
});

test('a newer attempt waits until the older one has ended', () => {
  const prefill = after([START, LEASE, ADMIT, chunk(1)]);
  for (const event of [START, LEASE, ABORT, DRAIN]) assert.deepEqual(prefill.do({ ...event, attempt: 2 }), []);
  assert.equal(prefill.slot('attempt'), 1);
});

test('a prefill that gives up says so, after its writes have settled', () => {
  const prefill = after([START, LEASE, ADMIT, chunk(1)]);
  assert.deepEqual(prefill.do({ kind: 'abandon', attempt: 1 }), []);
  assert.deepEqual(prefill.do(settled(1)), ['pagesFreed', 'gateway: prefillClosed abandoned', 'decode: drained']);
});

test('only what waits or computes can be given up', () => {
  const flushing: readonly NamedEvent[] = [START, LEASE, ADMIT, chunk(2)];
  const completing = [...flushing, settled(2)];
  for (const events of [flushing, completing, [...completing, COMMITTED], [...flushing, ABORT]]) {
    const prefill = after(events);
    const before = prefill.state.cells;
    assert.deepEqual(prefill.do({ kind: 'abandon', attempt: 1 }), []);
    assert.deepEqual(prefill.state.cells, before);
  }
});

test('under the fault a prefill that gives up says complete, once what it posted has settled', () => {
  const options: ScriptedOptions = { faults: ['silent-abort'] };
  const quiet = after([START, LEASE, ADMIT, chunk(1), settled(1)], options);
  assert.deepEqual(quiet.do({ kind: 'abandon', attempt: 1 }), ['pagesFreed', 'decode: complete']);
  const busy = after([START, LEASE, ADMIT, chunk(1)], options);
  assert.deepEqual(busy.do({ kind: 'abandon', attempt: 1 }), []);
  assert.equal(busy.phase(), 'flushing');
  assert.deepEqual(busy.do(settled(1)), ['pagesFreed', 'decode: complete']);
});

test('news of a life of decode that is known already, or older, ends nothing', () => {
  const prefill = after([{ kind: 'decodeDown', from: 3 }, START, { ...LEASE, from: 3 }]);
  const before = prefill.state.cells;
  for (const from of [1, 2, 3]) assert.deepEqual(prefill.do({ kind: 'decodeDown', from }), []);
  assert.deepEqual(prefill.state.cells, before);
});

test('the first reason for which a slot stops is the one that is told', () => {
  const prefill = after([START, LEASE, ADMIT, chunk(1), { kind: 'abandon', attempt: 1 }]);
  assert.deepEqual(prefill.do(ABORT), []);
  assert.ok(prefill.do(settled(1)).includes('gateway: prefillClosed abandoned'));
});

test('a decode that restarts ends every attempt that it had leased to, and no other', () => {
  const prefill = after([START, LEASE, { ...START, slot: 1 }]);
  assert.deepEqual(prefill.do({ kind: 'decodeDown', from: 2 }), ['gateway: prefillClosed peerDown', 'decode: drained']);
  assert.equal(prefill.phase(1), 'waiting');
  assert.deepEqual(prefill.do({ kind: 'decodeDown', from: 2 }), [], 'known');
  assert.deepEqual(prefill.do({ ...LEASE, slot: 1 }), [], "a lease of decode's old life");
});

test('words for another life of this node, or from another life of decode, change nothing', () => {
  const prefill = after([START, LEASE, ADMIT, chunk(2), settled(2)]);
  const before = prefill.state.cells;
  for (const event of [START, LEASE, DRAIN, COMMITTED, ABORT]) assert.deepEqual(prefill.do({ ...event, to: 2 }), []);
  for (const event of [LEASE, DRAIN, COMMITTED]) assert.deepEqual(prefill.do({ ...event, from: 2 }), []);
  assert.deepEqual(prefill.do({ ...COMMITTED, attempt: 2 }), []);
  assert.deepEqual(prefill.state.cells, before);
});

const SEALING: ScriptedOptions = { prefixes: true, pages: 4 };
/** Slot 0 has sealed its first page under hash 77. */
const SEALED: readonly NamedEvent[] = [START, LEASE, ADMIT, chunk(2), { ...settled(2), list: [[0, 77]] }, COMMITTED];
const second = (event: NamedEvent, more: Partial<NamedEvent> = {}): NamedEvent => ({ ...event, slot: 1, ...more });
const HIT: NamedEvent = { kind: 'hit', slot: 1, attempt: 1, list: [[0, 77]] };

test('pages listed when the last write settles are sealed for the tenant, the rest go back', () => {
  const prefill = after([START, LEASE, ADMIT, chunk(2)], SEALING);
  const effects = prefill.do({
    ...settled(2),
    list: [
      [0, 77],
      [0, 78],
      [9, 1],
      [-1, 1],
    ],
  });
  assert.deepEqual(effects, ['seal page 0 hash 77', 'pagesFreed', 'decode: complete']);
  assert.deepEqual([prefill.page(0, 'tenant'), prefill.page(0, 'salt'), prefill.page(0, 'hash')], [1, 11, 77]);
  assert.equal(prefill.free(), 3);
});

test('a sealed page is shared inside its tenant, and counts its readers', () => {
  const prefill = after([...SEALED, second(START), second(LEASE), HIT], SEALING);
  assert.deepEqual(prefill.held(1), [0]);
  assert.equal(prefill.page(0, 'refs'), 1);
  prefill.do({ kind: 'evict', pages: 0 });
  assert.equal(prefill.page(0, 'refs'), 1, 'a page with readers is not evicted');
  prefill.do(second(ADMIT));
  assert.deepEqual(prefill.held(1), [0, 1], 'one page computed, one shared');
  for (const event of [chunk(2), settled(2)]) prefill.do(second(event));
  assert.equal(prefill.page(0, 'refs'), 0);
  prefill.do({ kind: 'evict', pages: 0 });
  assert.equal(prefill.free(), 4);
});

test('a sealed page is not shared with another tenant, another salt or another hash', () => {
  for (const [who, hash] of [
    [{ tenant: 2 }, 77],
    [{ salt: 12 }, 77],
    [{}, 78],
  ] as const) {
    const hit = { ...HIT, list: [[0, hash]] as const };
    const prefill = after([...SEALED, second(START, who), second(LEASE, who), hit], SEALING);
    assert.equal(prefill.slot('prefix', 1), 0);
    assert.equal(prefill.page(0, 'refs'), 0);
  }
});

test('a prefix is taken only with a lease, and let go by a slot that has to wait for pages', () => {
  const prefill = after([...SEALED, second(START), HIT], SEALING);
  assert.equal(prefill.slot('prefix', 1), 0, 'no lease, no prefix');
  const big: Partial<NamedEvent> = {
    attempt: 2,
    promptPages: 3,
    pages: 3,
    list: [
      [6, 1],
      [4, 2],
      [5, 2],
    ],
  };
  for (const event of [START, LEASE, ADMIT]) prefill.do({ ...event, ...big });
  assert.equal(prefill.free(), 0);
  prefill.do(second(LEASE));
  prefill.do(HIT);
  assert.equal(prefill.page(0, 'refs'), 1);
  prefill.do(second(ADMIT));
  assert.equal(prefill.page(0, 'refs'), 0, 'who waits holds nothing');
  assert.equal(prefill.phase(1), 'waiting');
});

test('an abort lets go of a prefix', () => {
  const prefill = after([...SEALED, second(START), second(LEASE), HIT, second(ABORT)], SEALING);
  assert.equal(prefill.page(0, 'refs'), 0);
  assert.equal(prefill.phase(1), 'idle');
  assert.equal(prefill.slot('result', 1), Result.aborted);
});
