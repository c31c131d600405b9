/**
 * Goal: nothing is decoded that was not verified, and no page comes back without one of the three proofs.
 * Method: scripted events, exact effects and page numbers.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DecodePhase, leaseList, stepDecode, Verdict } from './decode.js';
import { ALL_GUARDS } from './guards.js';
import { newView, PageState, resetView, setSlot, shapeOf } from './layout.js';
import { newOut, Result } from './messages.js';
import { Scripted, type ScriptedOptions } from './scripted.js';
import { type NamedEvent, packEvent } from './step.js';

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
const ADMIT: NamedEvent = { kind: 'admit', attempt: 1 };
const fromPrefill = (kind: 'complete' | 'reject' | 'drained', more: Partial<NamedEvent> = {}): NamedEvent => ({
  kind,
  attempt: 1,
  from: 1,
  to: 1,
  room: 5,
  ...more,
});
const COMPLETE = fromPrefill('complete', { tokens: 9 });
const REJECT = fromPrefill('reject');
const DRAINED = fromPrefill('drained');
const VERIFIED: NamedEvent = { kind: 'verified', attempt: 1 };
const ABORT: NamedEvent = { kind: 'abort', attempt: 1, to: 1 };
const DECODING: readonly NamedEvent[] = [START, ADMIT, COMPLETE, VERIFIED];
const TIMEOUT: NamedEvent = { kind: 'timeout', attempt: 1 };
const TIMER: NamedEvent = { kind: 'timer' };

function after(events: readonly NamedEvent[], options: ScriptedOptions = {}): Scripted {
  const decode = new Scripted('decode', options);
  for (const event of events) decode.do(event);
  return decode;
}

function leasedPairs(decode: Scripted, slot: number, count: number): number[] {
  const cells = new Int32Array(2 * count);
  leaseList(decode.state, slot, cells, 0);
  return [...cells];
}

test('a lease names the pages of the prompt with their epochs, and no page of the output', () => {
  const decode = after([START]);
  assert.equal(decode.phase(), 'waiting');
  assert.deepEqual(decode.do(ADMIT), ['prefill: lease']);
  assert.equal(decode.phase(), 'leased');
  assert.deepEqual(decode.held(), [0, 1, 2]);
  const { attempt, room, tokens, promptPages, count, to } = decode.effects[0]!;
  assert.deepEqual(
    { attempt, room, tokens, promptPages, count, to },
    {
      attempt: 1,
      room: 5,
      tokens: 9,
      promptPages: 2,
      count: 2,
      to: 1,
    },
  );
  assert.deepEqual(leasedPairs(decode, 0, 3), [0, 0, 1, 0, 0, 0]);
});

test('a page that comes back is leased again under a new epoch', () => {
  const decode = after([...DECODING, { kind: 'finish', attempt: 1 }, { ...START, slot: 1 }, { ...ADMIT, slot: 1 }]);
  assert.deepEqual(decode.held(1), [0, 1, 2]);
  assert.deepEqual(leasedPairs(decode, 1, 2), [0, 1, 1, 1]);
});

test('a request that the pool can never hold is refused, and one that makes no sense too', () => {
  for (const size of [{ pages: 5 }, { promptPages: 0 }, { promptPages: 4 }, { promptPages: -1, pages: -1 }]) {
    const decode = new Scripted('decode');
    assert.deepEqual(decode.do({ ...START, ...size }), ['guard: rejection', 'gateway: decodeClosed refused']);
    assert.equal(decode.free(), 4);
  }
});

test('a slot gets its lease only with pages for prompt and output, and holds none until then', () => {
  const decode = after([START, ADMIT, { ...START, slot: 1 }]);
  assert.deepEqual(decode.do({ ...ADMIT, slot: 1 }), []);
  assert.equal(decode.phase(1), 'waiting');
  assert.equal(decode.slot('held', 1), 0);
});

test('what prefill completed is verified before anything is decoded', () => {
  const decode = after([START, ADMIT]);
  assert.deepEqual(decode.do(COMPLETE), ['verify']);
  assert.equal(decode.phase(), 'verifying');
  assert.deepEqual(decode.do({ kind: 'readBegin', attempt: 1 }), []);
  assert.deepEqual(decode.do({ ...VERIFIED, attempt: 2 }), [], 'what was compared for another attempt says nothing');
  assert.deepEqual(decode.do(VERIFIED), ['prefill: committed', 'startDecode', 'gateway: started']);
  assert.equal(decode.phase(), 'decoding');
  const { tokens, code } = decode.effects[2]!;
  assert.deepEqual([tokens, code], [9, 9], 'both counts go to the gateway');
});

test('a count that is not the one admitted fails closed, before any token', () => {
  const decode = after([START, ADMIT]);
  const effects = decode.do({ ...COMPLETE, tokens: 1 });
  assert.deepEqual(effects, ['guard: count', 'gateway: failing badCount', 'prefill: drain']);
  assert.equal(decode.phase(), 'draining');
});

test('a tag or checksum that is not its own fails closed, before any token', () => {
  for (const [code, guard, result] of [
    [Verdict.badTag, 'tag', 'badTag'],
    [Verdict.badChecksum, 'checksum', 'badChecksum'],
    [Verdict.badTag | Verdict.badChecksum, 'tag', 'badTag'],
  ] as const) {
    const decode = after([START, ADMIT, COMPLETE]);
    const effects = decode.do({ ...VERIFIED, code });
    assert.deepEqual(effects, [`guard: ${guard}`, `gateway: failing ${result}`, 'prefill: drain']);
    assert.equal(decode.free(), 1, 'the pages stay out of the free list');
  }
});

test('a page that is not its own before the read or before the token leaves ends the request, never in an answer', () => {
  for (const [before, kind] of [
    [[], 'readBegin'],
    [[{ kind: 'readBegin', attempt: 1 }], 'readEnd'],
  ] as const) {
    const decode = after([...DECODING, ...before]);
    const effects = decode.do({ kind, attempt: 1, code: Verdict.badTag });
    assert.deepEqual(effects, ['guard: tag', 'pagesFreed', 'gateway: decodeClosed badTag']);
    assert.equal(decode.phase(), 'idle');
  }
});

test('a step reads between two looks, and a finish waits for the second', () => {
  const decode = after([...DECODING, { kind: 'readBegin', attempt: 1 }]);
  assert.equal(decode.phase(), 'reading');
  assert.deepEqual(decode.do({ kind: 'finish', attempt: 1 }), []);
  decode.do({ kind: 'readEnd', attempt: 1 });
  assert.deepEqual(decode.do({ kind: 'finish', attempt: 1 }), ['pagesFreed', 'gateway: decodeClosed finished']);
  assert.equal(decode.effects[1]?.pages, 9, 'with what prefill completed');
  assert.equal(decode.free(), 4);
});

const TRANSFERS: readonly (readonly NamedEvent[])[] = [
  [START, ADMIT],
  [START, ADMIT, COMPLETE],
];

test('an abort in mid-transfer drains: no page comes back before the proof', () => {
  for (const events of TRANSFERS) {
    const decode = after(events);
    assert.deepEqual(decode.do(ABORT), ['prefill: drain']);
    assert.deepEqual([decode.phase(), decode.free()], ['draining', 1]);
    assert.deepEqual(
      [0, 1, 2, 3].map((page) => decode.page(page, 'state')),
      [PageState.draining, PageState.draining, PageState.draining, PageState.free],
    );
    assert.deepEqual(decode.do(COMPLETE), [], 'too late');
    assert.deepEqual(decode.do(VERIFIED), [], 'too late');
    assert.deepEqual(decode.do(ABORT), []);
    assert.deepEqual(decode.do(TIMER), ['prefill: drain'], 'asked again');
    assert.equal(decode.free(), 1);
  }
});

test('a timeout raises an alarm and gives nothing back', () => {
  const decode = after([START, ADMIT, ABORT]);
  assert.deepEqual(decode.do(TIMEOUT), ['alarm']);
  assert.deepEqual([decode.phase(), decode.free()], ['draining', 1]);
});

test('the first proof: prefill refused, and never posted', () => {
  for (const events of [[START], [START, ADMIT], [START, ADMIT, ABORT]]) {
    const decode = after(events);
    assert.equal(decode.do(REJECT).at(-1), 'gateway: decodeClosed refused');
    assert.deepEqual([decode.phase(), decode.free()], ['idle', 4]);
  }
});

test('the second proof: prefill says that nothing it posted can still land', () => {
  const decode = after([START, ADMIT, ABORT]);
  assert.deepEqual(decode.do(DRAINED), ['pagesFreed', 'gateway: decodeClosed aborted']);
  assert.equal(decode.free(), 4);
  for (const events of TRANSFERS) {
    assert.deepEqual(after(events).do(DRAINED), ['pagesFreed', 'gateway: decodeClosed abandoned']);
  }
});

test('the third proof: the registration of the dead incarnation is revoked before its pages go back', () => {
  for (const events of [...TRANSFERS, [START, ADMIT, ABORT]]) {
    const decode = after(events);
    const effects = decode.do({ kind: 'prefillDown', from: 2 });
    assert.deepEqual(effects.slice(0, 3), ['revoke 1', 'register 2', 'pagesFreed']);
    assert.match(effects[3] ?? '', /decodeClosed (peerDown|aborted)/);
    assert.equal(decode.free(), 4);
    assert.deepEqual(decode.do({ kind: 'prefillDown', from: 2 }), [], 'known');
  }
});

test('a prefill that restarts does not disturb what has been verified, nor what waits for pages', () => {
  const decode = after(DECODING);
  decode.do({ ...START, slot: 1 });
  assert.deepEqual(decode.do({ kind: 'prefillDown', from: 2 }), ['revoke 1', 'register 2']);
  assert.deepEqual([decode.phase(0), decode.phase(1)], ['decoding', 'waiting']);
});

test('an abort of what decodes gives the pages back at once: its transfer is over', () => {
  const decode = after(DECODING);
  assert.deepEqual(decode.do(ABORT), ['pagesFreed', 'gateway: decodeClosed aborted']);
  assert.equal(decode.free(), 4);
});

test('an attempt that is aborted before it was seen is closed for good', () => {
  const decode = new Scripted('decode');
  assert.deepEqual(decode.do(ABORT), ['gateway: decodeClosed aborted']);
  assert.deepEqual(decode.do(START), ['gateway: decodeClosed aborted']);
  assert.equal(decode.phase(), 'idle');
});

test('a message of prefill speaks for a slot only under its attempt, its room and the incarnation that was leased to', () => {
  const decode = after([START, ADMIT]);
  const before = decode.state.cells;
  for (const stale of [{ attempt: 0 }, { attempt: 2 }, { from: 2 }, { to: 2 }, { slot: 1 }]) {
    for (const event of [REJECT, DRAINED]) assert.deepEqual(decode.do({ ...event, ...stale }), []);
  }
  for (const stale of [{ attempt: 2 }, { from: 2 }, { to: 2 }, { room: 6 }]) {
    assert.deepEqual(decode.do({ ...COMPLETE, ...stale }), []);
  }
  assert.deepEqual(decode.state.cells, before);
});

test('an abort for another life of this node, or of an attempt that is not the one at work, changes nothing', () => {
  for (const events of [[], [START], [START, ADMIT], DECODING]) {
    const again = events.map((event) => ({ ...event, attempt: 2 }));
    for (const stale of [{ attempt: 2, to: 2 }, { attempt: 1 }, { attempt: 3 }]) {
      if (events.length === 0 && stale.to === undefined) continue;
      const decode = after(again);
      const before = decode.state.cells;
      assert.deepEqual(decode.do({ ...ABORT, ...stale }), []);
      assert.deepEqual(decode.state.cells, before);
    }
  }
});

test('what the runner says of another attempt is not heard', () => {
  assert.deepEqual(after(DECODING).do({ kind: 'finish', attempt: 2 }), []);
  assert.deepEqual(after(DECODING).do({ kind: 'readBegin', attempt: 2 }), []);
  assert.deepEqual(after([START, ADMIT, ABORT]).do({ ...TIMEOUT, attempt: 2 }), []);
  assert.deepEqual(after([START]).do({ ...ADMIT, attempt: 2 }), []);
});

test('a proof or an alarm counts only while a transfer is open or drains', () => {
  const read: readonly NamedEvent[] = [...DECODING, { kind: 'readBegin', attempt: 1 }];
  const over: readonly NamedEvent[] = [...DECODING, { kind: 'finish', attempt: 1 }];
  for (const events of [[], DECODING, read, over]) {
    for (const event of [DRAINED, REJECT, TIMEOUT]) assert.deepEqual(after(events).do({ ...event }), []);
  }
  for (const event of [DRAINED, TIMEOUT]) assert.deepEqual(after([START]).do(event), []);
  assert.deepEqual(after([START, ADMIT]).do(TIMEOUT), []);
});

test('a message that is about no slot changes nothing, whatever lies in front of the record', () => {
  const shape = shapeOf('decode', { slots: 2, pages: 4, pagesPerSlot: 4, prefixes: false });
  for (const phase of [DecodePhase.waiting, DecodePhase.leased, DecodePhase.verifying, DecodePhase.draining]) {
    const front = 4 * shape.slotWidth;
    const cells = new Uint8Array(front + shape.width).fill(phase, 0, front);
    const view = newView(shape, { faults: 0, guards: ALL_GUARDS }, cells, front);
    resetView(view, 1, 1);
    const before = Uint8Array.from(cells);
    const out = newOut(2, 4);
    for (const event of [REJECT, DRAINED, COMPLETE]) stepDecode(view, packEvent({ ...event, to: 2 }), out);
    assert.equal(out.length, 0);
    assert.deepEqual(cells, before);
  }
});

test('the gateway that asks again hears the last word that it may have missed', () => {
  const last = (events: readonly NamedEvent[]): string[] => after(events).do(START);
  assert.deepEqual(last([START]), []);
  assert.deepEqual(last([START, ADMIT]), []);
  assert.deepEqual(last(DECODING), ['gateway: started']);
  assert.deepEqual(last([START, ADMIT, { ...COMPLETE, tokens: 1 }]), ['gateway: failing badCount']);
  assert.deepEqual(last([...DECODING, { kind: 'finish', attempt: 1 }]), ['gateway: decodeClosed finished']);
});

test('a lease that may have been lost is sent again', () => {
  assert.deepEqual(after([START, ADMIT]).do(TIMER), ['prefill: lease']);
  assert.deepEqual(after(DECODING).do(TIMER), []);
});

test('a completion that is repeated hears that it was committed, or that nobody wants it', () => {
  assert.deepEqual(after(DECODING).do(COMPLETE), ['prefill: committed']);
  assert.deepEqual(after([...DECODING, { kind: 'finish', attempt: 1 }]).do(COMPLETE), ['prefill: committed']);
  assert.deepEqual(after([...DECODING, ABORT]).do(COMPLETE), ['prefill: drain']);
});

test('a completion of an older attempt, from a life of prefill that the gateway never met, is told to drain', () => {
  // Found by the explorer: prefill restarted, took the lease of an attempt that the gateway had closed by that very restart, and
  // waited for the commit of it for ever, while everybody else had gone on to the next attempt.
  const decode = after([...DECODING, ABORT, { ...START, attempt: 2 }]);
  assert.deepEqual(decode.do({ ...COMPLETE, from: 3 }), ['prefill: drain']);
  const { attempt, to } = decode.effects[0]!;
  assert.deepEqual([attempt, to], [1, 3]);
  assert.equal(decode.phase(), 'waiting');
});

test('a completion of an older attempt that was meant for another life of this node is not answered', () => {
  const decode = after([...DECODING, ABORT, { ...START, attempt: 2 }]);
  assert.deepEqual(decode.do({ ...COMPLETE, from: 3, to: 2 }), []);
});

test('a handle authorises nothing, and a prefix that the slot held is let go', () => {
  const decode = after([...SEALED_FIRST, START, HIT], { prefixes: true });
  assert.equal(decode.page(0, 'refs'), 1);
  const effects = decode.do({ kind: 'attach', attempt: 1, list: [[2, 0]] });
  assert.deepEqual(effects, ['pagesFreed', 'guard: lease', 'gateway: decodeClosed badLease']);
  assert.equal(decode.page(0, 'refs'), 0);
});

test('a handle for another attempt, or for a slot that has its lease, changes nothing', () => {
  for (const [events, attempt] of [
    [[START], 2],
    [[START, ADMIT], 1],
  ] as const) {
    const decode = after(events);
    assert.deepEqual(decode.do({ kind: 'attach', attempt, list: [[2, 0]] }), []);
  }
});

test('under the fault a handle lends what it names, and what it named is nobody’s to give back', () => {
  const decode = after([START], { faults: ['stale-handle'], guards: [] });
  decode.do({ kind: 'attach', attempt: 1, list: [[2, 0]] });
  assert.deepEqual(decode.held(), [2]);
  assert.equal(decode.slot('attached'), 1);
  assert.equal(decode.slot('peer'), 1);
  decode.do(ABORT);
  assert.equal(decode.free(), 4);
  assert.equal(decode.slot('attached'), 0);
  assert.deepEqual(decode.list(0, 0), [0, 0, 0, 0]);
});

test('a start for another life of this node changes nothing', () => {
  const decode = after([]);
  assert.deepEqual(decode.do({ ...START, to: 2 }), []);
  assert.equal(decode.phase(), 'idle');
});

/** Slot 1 has sealed its first page, page 0, under hash 77. */
const SEALED_FIRST: readonly NamedEvent[] = [
  ...DECODING.map((event) => ({ ...event, slot: 1 })),
  { kind: 'finish', slot: 1, attempt: 1, list: [[0, 77]] },
];
const HIT: NamedEvent = { kind: 'hit', attempt: 1, list: [[0, 77]] };

test('places listed at the end are sealed once each, the rest go back', () => {
  const decode = after(DECODING, { prefixes: true });
  const effects = decode.do({
    kind: 'finish',
    attempt: 1,
    list: [
      [0, 77],
      [0, 78],
      [2, 79],
      [3, 1],
      [-1, 1],
    ],
  });
  assert.deepEqual(effects, [
    'seal page 0 hash 77',
    'seal page 2 hash 79',
    'pagesFreed',
    'gateway: decodeClosed finished',
  ]);
  assert.equal(decode.free(), 2);
  assert.deepEqual([decode.page(0, 'tenant'), decode.page(0, 'salt'), decode.page(0, 'epoch')], [1, 11, 0]);
});

test('a shared page is read by its tenant, and the lease does not name it: nobody writes it', () => {
  const decode = after([...SEALED_FIRST, START, HIT, ADMIT], { prefixes: true });
  assert.deepEqual(decode.held(), [0, 1, 2]);
  assert.equal(decode.slot('prefix'), 1);
  const { code, count } = decode.effects[0]!;
  assert.deepEqual([code, count], [1, 1]);
  assert.deepEqual(leasedPairs(decode, 0, 1), [1, 1]);
  for (const event of [COMPLETE, VERIFIED, { kind: 'finish', attempt: 1 } as const]) decode.do(event);
  assert.equal(decode.page(0, 'refs'), 0);
  decode.do({ kind: 'evict', pages: 0 });
  assert.equal(decode.free(), 4);
});

test('a sealed page is not shared with another tenant, another salt or another hash', () => {
  // The guard speaks where the hash matched and the tenant did not: another hash is no attempt at another's page.
  for (const [who, hash, said] of [
    [{ tenant: 2 }, 77, ['guard: salt']],
    [{ salt: 12 }, 77, ['guard: salt']],
    [{ tenant: 2 }, 78, []],
    [{}, 78, []],
  ] as const) {
    const decode = after([...SEALED_FIRST, { ...START, ...who }], { prefixes: true });
    assert.deepEqual(decode.do({ ...HIT, list: [[0, hash]] }), said);
    assert.equal(decode.slot('prefix'), 0);
  }
  const own = after([...SEALED_FIRST, START], { prefixes: true });
  assert.deepEqual(own.do(HIT), [], 'a tenant that takes its own page is no finding');
});

test('a page that is not sealed is no prefix, even where its tenant, salt and hash are the ones asked for', () => {
  // Free and leased pages carry zeros there, and so may a request.
  const decode = after(
    [
      { ...START, slot: 1 },
      { ...ADMIT, slot: 1 },
      { ...START, tenant: 0, salt: 0 },
    ],
    {
      prefixes: true,
    },
  );
  for (const page of [0, 3]) decode.do({ ...HIT, list: [[page, 0]] });
  assert.equal(decode.slot('prefix'), 0);
  assert.deepEqual([decode.page(0, 'refs'), decode.page(3, 'refs')], [0, 0]);
});

test('a prefix is never longer than the prompt', () => {
  const both: NamedEvent = {
    kind: 'finish',
    slot: 1,
    attempt: 1,
    list: [
      [0, 77],
      [1, 78],
    ],
  };
  const hit: NamedEvent = {
    ...HIT,
    list: [
      [0, 77],
      [1, 78],
    ],
  };
  const decode = after([...SEALED_FIRST.slice(0, -1), both, { ...START, promptPages: 1, pages: 1 }, hit], {
    prefixes: true,
  });
  assert.equal(decode.slot('prefix'), 1);
  assert.deepEqual(decode.do(ADMIT), ['prefill: lease']);
});

test('a page number outside of the pool is no page, whatever lies there', () => {
  const decode = after([{ ...START, tenant: 0, salt: 0 }], { prefixes: true });
  // The cells in front of the first page are those of the last slot; this one looks like the state of a sealed page.
  setSlot(decode.state, 1, 'peer', PageState.sealed);
  for (const page of [-1, -2, 4, 5]) decode.do({ ...HIT, list: [[page, 0]] });
  assert.equal(decode.slot('prefix'), 0);
});

test('a draining slot keeps its prefix until the proof, and the sealed page never drains', () => {
  const decode = after([...SEALED_FIRST, START, HIT, ADMIT, ABORT], { prefixes: true });
  assert.equal(decode.page(0, 'refs'), 1);
  decode.do(DRAINED);
  assert.equal(decode.page(0, 'refs'), 0);
  assert.equal(decode.free(), 3);
});

test('two slots that each hold a prefix and wait for pages do not wait for each other for ever', () => {
  // A pool of four: two tenants have sealed two pages each. Both want a third page; only an eviction can give one.
  const options: ScriptedOptions = { prefixes: true };
  const decode = new Scripted('decode', options);
  const size = { promptPages: 2, pages: 2 };
  for (const [slot, tenant] of [
    [0, 1],
    [1, 2],
  ] as const) {
    for (const event of DECODING) decode.do({ ...event, ...size, slot, tenant });
    decode.do({
      kind: 'finish',
      slot,
      attempt: 1,
      list: [
        [0, 70 + tenant],
        [1, 80 + tenant],
      ],
    });
  }
  assert.equal(decode.free(), 0);
  const pagesOf = {
    1: [
      [0, 71],
      [1, 81],
    ],
    2: [
      [2, 72],
      [3, 82],
    ],
  } as const;
  for (const [slot, tenant] of [
    [0, 1],
    [1, 2],
  ] as const) {
    decode.do({ ...START, slot, tenant, attempt: 2 });
    decode.do({ kind: 'hit', slot, attempt: 2, list: pagesOf[tenant] });
    decode.do({ kind: 'admit', slot, attempt: 2 });
    assert.equal(decode.phase(slot), 'waiting');
  }
  decode.do({ kind: 'evict', pages: 3 });
  decode.do({ kind: 'hit', slot: 0, attempt: 2, list: pagesOf[1] });
  assert.deepEqual(decode.do({ kind: 'admit', slot: 0, attempt: 2 }), ['prefill: lease']);
});

test('the result that a slot closed with stays until its next attempt', () => {
  const decode = after([...DECODING, { kind: 'finish', attempt: 1 }]);
  assert.equal(decode.slot('result'), Result.finished);
});
