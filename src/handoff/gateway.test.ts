/** Goal: one request, one result, and a slot that is used again only when nothing of it is left. Method: scripted events, exact effects. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isStreaming } from './gateway.js';
import { Result, type ResultName } from './messages.js';
import { Scripted, type ScriptedOptions } from './scripted.js';
import type { NamedEvent } from './step.js';

const SUBMIT: NamedEvent = {
  kind: 'submit',
  room: 5,
  tokens: 9,
  promptPages: 2,
  pages: 3,
  tenant: 1,
  salt: 1,
  code: 9,
};
const STARTED: NamedEvent = { kind: 'started', attempt: 1, from: 1, tokens: 9, code: 9 };

const prefillClosed = (result: ResultName, attempt = 1, from = 1): NamedEvent => ({
  kind: 'prefillClosed',
  attempt,
  from,
  code: Result[result],
});
const decodeClosed = (result: ResultName, attempt = 1, from = 1): NamedEvent => ({
  kind: 'decodeClosed',
  attempt,
  from,
  tokens: 9,
  pages: 9,
  code: Result[result],
});

function submitted(retries = 0, options: ScriptedOptions = {}): Scripted {
  const gateway = new Scripted('gateway', options);
  gateway.do({ ...SUBMIT, from: retries });
  return gateway;
}

test('a request that fits is started at decode and at prefill, under attempt 1', () => {
  const gateway = new Scripted('gateway');
  assert.deepEqual(gateway.do(SUBMIT), ['decode: start', 'prefill: start']);
  assert.equal(gateway.phase(), 'open');
  for (const effect of gateway.effects) {
    const { attempt, to, room, tokens, promptPages, pages, tenant, salt } = effect;
    assert.deepEqual([attempt, to, room, tokens, promptPages, pages, tenant, salt], [1, 1, 5, 9, 2, 3, 1, 1]);
  }
});

test('a token may leave only while its own attempt streams', () => {
  const gateway = submitted();
  const streams = (attempt: number): boolean => isStreaming(gateway.state, 0, attempt);
  assert.deepEqual([0, 1, 2].map(streams), [false, false, false], 'open');
  gateway.do(STARTED);
  assert.deepEqual([0, 1, 2].map(streams), [false, true, false]);
  gateway.do({ kind: 'clientGone' });
  assert.deepEqual([0, 1, 2].map(streams), [false, false, false], 'closing');
});

test('a request longer than the limit is refused, and nothing else ever happens to it', () => {
  const gateway = new Scripted('gateway');
  assert.deepEqual(gateway.do({ ...SUBMIT, tokens: 10 }), ['guard: admission', 'client: refused', 'slotFree']);
  assert.equal(gateway.phase(), 'idle');
  for (const event of [STARTED, prefillClosed('finished'), decodeClosed('finished'), { kind: 'timer' } as const]) {
    assert.deepEqual(gateway.do(event), []);
  }
  assert.equal(gateway.slot('terminals'), 1);
});

test('a slot that is in use takes no second request', () => {
  const gateway = submitted();
  assert.deepEqual(gateway.do({ ...SUBMIT, tenant: 2 }), []);
  assert.equal(gateway.slot('tenant'), 1);
});

test('an answer starts once, ends once, and frees the slot when both sides have closed', () => {
  const gateway = submitted();
  assert.deepEqual(gateway.do(STARTED), ['clientStarted']);
  assert.deepEqual(gateway.do(STARTED), [], 'repeated');
  assert.deepEqual(gateway.do(prefillClosed('finished')), []);
  assert.deepEqual(gateway.do(decodeClosed('finished')), ['client: finished', 'slotFree']);
  assert.deepEqual(gateway.do(decodeClosed('finished')), [], 'repeated');
  assert.equal(gateway.slot('terminals'), 1);
});

test('a slot whose prefill has not closed stays closing, and asks again with each timer', () => {
  const gateway = submitted();
  gateway.do(STARTED);
  assert.deepEqual(gateway.do(decodeClosed('finished')), ['client: finished', 'prefill: abort']);
  assert.equal(gateway.phase(), 'closing');
  assert.deepEqual(gateway.do({ kind: 'timer' }), ['prefill: abort']);
  assert.deepEqual(gateway.do(prefillClosed('finished')), ['slotFree']);
});

test('an answer whose start was lost still starts before it ends', () => {
  const gateway = submitted();
  gateway.do(prefillClosed('finished'));
  assert.deepEqual(gateway.do(decodeClosed('finished')), ['clientStarted', 'client: finished', 'slotFree']);
});

test('an answer whose start was lost passes the usage check all the same', () => {
  const gateway = submitted();
  gateway.do(prefillClosed('finished'));
  const effects = gateway.do({ ...decodeClosed('finished'), pages: 1 });
  assert.deepEqual(effects, ['guard: usage', 'client: badUsage', 'slotFree']);
});

test("a count of decode or prefill that is not the gateway's ends the request before its first token", () => {
  for (const wrong of [{ tokens: 8 }, { code: 1 }]) {
    const gateway = submitted();
    const effects = gateway.do({ ...STARTED, ...wrong });
    assert.deepEqual(effects, ['guard: usage', 'client: badUsage', 'prefill: abort', 'decode: abort']);
  }
});

test('a client that leaves has both sides aborted, at any point, and gets one result', () => {
  for (const before of [[], [STARTED]]) {
    const gateway = submitted();
    for (const event of before) gateway.do(event);
    assert.deepEqual(gateway.do({ kind: 'clientGone' }), ['client: aborted', 'prefill: abort', 'decode: abort']);
    assert.deepEqual(gateway.do({ kind: 'clientGone' }), [], 'leaving twice');
    assert.deepEqual(gateway.do(STARTED), [], 'a start that comes too late');
    assert.deepEqual(gateway.do(decodeClosed('aborted')), []);
    assert.deepEqual(gateway.do(prefillClosed('aborted')), ['slotFree']);
    assert.equal(gateway.slot('terminals'), 1);
  }
});

test('a refusal by prefill reaches the client, and decode is told to return its lease', () => {
  const gateway = submitted();
  assert.deepEqual(gateway.do(prefillClosed('refused')), ['client: refused', 'decode: abort']);
  assert.deepEqual(gateway.do(decodeClosed('refused')), ['slotFree']);
});

test('a failure that decode announces reaches the client before the pages have come back', () => {
  const gateway = submitted();
  assert.deepEqual(gateway.do({ kind: 'failing', attempt: 1, from: 1, code: Result.badCount }), [
    'client: badCount',
    'prefill: abort',
    'decode: abort',
  ]);
});

test("a prefill that decode had aborted does not speak for the client's result", () => {
  const gateway = submitted();
  assert.deepEqual(gateway.do(prefillClosed('aborted')), [], 'decode has the reason');
  assert.deepEqual(gateway.do(decodeClosed('badTag')), ['client: badTag', 'slotFree']);
});

test('a failure without a reason counts as given up', () => {
  const gateway = submitted();
  assert.equal(gateway.do({ kind: 'failing', attempt: 1, from: 1, code: 0 })[0], 'client: abandoned');
});

test('a peer that restarts makes another attempt under a new number, when both sides have closed the first', () => {
  const gateway = submitted(1);
  assert.deepEqual(gateway.do({ kind: 'prefillDown', from: 2 }), ['decode: abort']);
  assert.equal(gateway.phase(), 'closing');
  assert.deepEqual(gateway.do(decodeClosed('peerDown')), ['decode: start', 'prefill: start']);
  assert.equal(gateway.slot('attempt'), 2);
  assert.equal(gateway.effects[1]?.to, 2, "under prefill's new incarnation");
  assert.deepEqual(gateway.do(STARTED), [], 'the first attempt speaks no more');
});

test('attempts are bounded: when none is left the client gets the reason', () => {
  const gateway = submitted(1);
  gateway.do({ kind: 'prefillDown', from: 2 });
  gateway.do(decodeClosed('peerDown'));
  assert.deepEqual(gateway.do({ kind: 'prefillDown', from: 3 }), ['client: peerDown', 'decode: abort']);
});

test('no number of attempts below zero is ever granted', () => {
  const gateway = submitted(-3);
  assert.equal(gateway.do({ kind: 'decodeDown', from: 2 })[0], 'client: peerDown');
});

test('nothing is tried again once the answer has begun', () => {
  const gateway = submitted(3);
  gateway.do(STARTED);
  assert.deepEqual(gateway.do({ kind: 'decodeDown', from: 2 }), ['client: peerDown', 'prefill: abort']);
});

test('a prefill that restarts behind a running answer does not disturb it', () => {
  const gateway = submitted();
  gateway.do(STARTED);
  assert.deepEqual(gateway.do({ kind: 'prefillDown', from: 2 }), []);
  assert.deepEqual(gateway.do(decodeClosed('finished')), ['client: finished', 'slotFree']);
});

test('a client that leaves between two attempts ends the request', () => {
  const gateway = submitted(1);
  gateway.do({ kind: 'prefillDown', from: 2 });
  assert.deepEqual(gateway.do({ kind: 'clientGone' }), ['client: aborted', 'decode: abort']);
  assert.deepEqual(gateway.do(decodeClosed('aborted')), ['slotFree']);
  assert.equal(gateway.slot('attempt'), 1);
});

test('words of another attempt or another life of the peer change nothing', () => {
  const gateway = submitted();
  const before = gateway.state.cells;
  for (const stale of [{ attempt: 0 }, { attempt: 2 }, { from: 0 }, { from: 2 }]) {
    const events: NamedEvent[] = [
      STARTED,
      prefillClosed('refused'),
      decodeClosed('finished'),
      { kind: 'failing', attempt: 1, from: 1, code: Result.badTag },
    ];
    for (const event of events) assert.deepEqual(gateway.do({ ...event, ...stale }), []);
  }
  assert.deepEqual(gateway.state.cells, before);
  assert.deepEqual(gateway.do({ kind: 'prefillDown', from: 1 }), [], 'a restart that is known');
});

test('what may have been lost is asked for again while the request is open', () => {
  const gateway = submitted();
  assert.deepEqual(gateway.do({ kind: 'timer' }), ['decode: start', 'prefill: start']);
  gateway.do(prefillClosed('finished'));
  assert.deepEqual(gateway.do({ kind: 'timer' }), ['decode: start']);
});

test('a slot that is used again counts on', () => {
  const gateway = submitted();
  gateway.do(STARTED);
  gateway.do(prefillClosed('finished'));
  gateway.do(decodeClosed('finished'));
  assert.deepEqual(gateway.do({ ...SUBMIT, tenant: 2 }), ['decode: start', 'prefill: start']);
  assert.equal(gateway.slot('attempt'), 2);
  assert.equal(gateway.slot('terminals'), 0);
});
