/**
 * Goal: the record is what the schema says, in any typed array, and a step touches nothing else.
 * Method: fields written and read by name, the same events over both kinds of cells, the heap before and after many steps.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Prng } from '../base/prng.js';
import { stepDecode } from './decode.js';
import { stepGateway } from './gateway.js';
import { ALL_GUARDS } from './guards.js';
import {
  type Actor,
  encode,
  getHeader,
  getPage,
  getSlot,
  listAt,
  newView,
  PG,
  pageAt,
  print,
  resetView,
  SCHEMA,
  setSlot,
  shapeOf,
  slotAt,
  type View,
} from './layout.js';
import { E, EventKind, newOut, type Out } from './messages.js';
import { stepPrefill } from './prefill.js';
import { type NamedEvent, packEvent } from './step.js';

const RULES = { faults: 0, guards: ALL_GUARDS };
const STEP = { gateway: stepGateway, prefill: stepPrefill, decode: stepDecode };
const ACTORS: readonly Actor[] = ['gateway', 'prefill', 'decode'];

function shapeFor(actor: Actor, prefixes = false) {
  return actor === 'gateway'
    ? shapeOf(actor, { slots: 2 })
    : shapeOf(actor, { slots: 2, pages: 4, pagesPerSlot: 2, prefixes });
}

test('a record is as wide as its header, slots, lists and pages together', () => {
  for (const actor of ACTORS) {
    for (const prefixes of [false, true]) {
      const shape = shapeFor(actor, prefixes);
      const { header, slot, lists } = SCHEMA[actor];
      const pages = actor === 'gateway' ? 0 : 4 * (prefixes ? 8 : 4);
      assert.equal(shape.width, header.length + 2 * (slot.length + 2 * lists.length) + pages);
    }
  }
});

test('every slot field of the schema has a cell of its own', () => {
  for (const actor of ACTORS) {
    const view = newView(shapeFor(actor), RULES);
    const fields = SCHEMA[actor].slot;
    for (const slot of [0, 1]) for (const [i, field] of fields.entries()) setSlot(view, slot, field, 100 * slot + i);
    for (const slot of [0, 1]) {
      for (const [i, field] of fields.entries()) assert.equal(getSlot(view, slot, field), 100 * slot + i);
    }
    assert.equal(getHeader(view, SCHEMA[actor].header[0]), 1, 'the header was not touched');
  }
});

test('slots, lists and pages do not overlap', () => {
  const view = newView(shapeFor('prefill', true), RULES);
  const starts = [
    ...[0, 1].flatMap((slot) => [slotAt(view, slot), ...[0, 1, 2].map((list) => listAt(view, slot, list))]),
    ...[0, 1, 2, 3].map((page) => pageAt(view, page)),
  ];
  const sorted = [...starts].sort((a, b) => a - b);
  assert.deepEqual(starts, sorted);
  assert.equal(new Set(starts).size, starts.length);
  assert.equal(pageAt(view, 3) + PG.hash + 1, view.shape.width);
});

test('a name that the schema does not have is a programmer error', () => {
  const view = newView(shapeFor('decode'), RULES);
  assert.throws(() => getSlot(view, 0, 'salted'), /a decode slot has no field salted/);
  assert.throws(() => setSlot(view, 0, 'posted', 1), /a decode slot has no field posted/);
  assert.throws(() => getHeader(view, 'phase'), /a decode record has no header field phase/);
});

test('a shape without slots or without pages is refused', () => {
  assert.throws(() => shapeOf('gateway', { slots: 0 }), /at least one slot/);
  assert.throws(() => shapeOf('decode', { slots: 1 }), /a pool needs pages/);
});

test('a fresh record has its pages free, lowest first, and incarnations of 1', () => {
  const view = newView(shapeFor('decode'), RULES);
  assert.equal(getHeader(view, 'incarnation'), 1);
  assert.equal(getHeader(view, 'freeHead'), 1);
  assert.equal(getHeader(view, 'freeCount'), 4);
  assert.deepEqual(
    [0, 1, 2, 3].map((page) => getPage(view, page, 'next')),
    [2, 3, 4, 0],
  );
  resetView(view, 7, 3);
  assert.equal(getHeader(view, 'incarnation'), 7);
  assert.equal(getHeader(view, 'prefillIncarnation'), 3);
});

test('encode is a copy of the record alone, also in the middle of a larger array', () => {
  const shape = shapeFor('decode');
  const cells = new Uint8Array(shape.width + 20).fill(9);
  const view = newView(shape, RULES, cells, 10);
  const copy = encode(view);
  assert.deepEqual([...copy], [...encode(newView(shape, RULES))]);
  copy[0] = 77;
  assert.equal(getHeader(view, 'incarnation'), 1);
  assert.equal(cells[9], 9);
  assert.equal(cells[10 + shape.width], 9);
});

test('print names every field of the schema with its value', () => {
  for (const actor of ACTORS) {
    const view = newView(shapeFor(actor, true), RULES);
    setSlot(view, 1, 'tenant', 42);
    const text = print(view);
    assert.match(text, /tenant=42/);
    const { header, slot, lists } = SCHEMA[actor];
    for (const name of [...header, ...slot, ...lists]) assert.ok(text.includes(` ${name}=`), `${actor} prints ${name}`);
    assert.equal(text.split('\n').length, 3 + (actor === 'gateway' ? 0 : 4));
  }
});

/** A request's life as each actor sees it; small numbers, so that bytes hold them. */
const LIFE: Readonly<Record<Actor, readonly NamedEvent[]>> = {
  gateway: [
    { kind: 'submit', room: 3, tokens: 2, promptPages: 2, pages: 2, tenant: 1, code: 9 },
    { kind: 'started', attempt: 1, from: 1, tokens: 2, code: 2 },
    { kind: 'prefillClosed', attempt: 1, from: 1, code: 1 },
    { kind: 'decodeClosed', attempt: 1, from: 1, code: 1, tokens: 2, pages: 2 },
  ],
  prefill: [
    { kind: 'start', attempt: 1, to: 1, room: 3, tokens: 2, promptPages: 2, pages: 2, tenant: 1 },
    {
      kind: 'lease',
      attempt: 1,
      from: 1,
      to: 1,
      list: [
        [3, 0],
        [2, 5],
      ],
    },
    { kind: 'admit', attempt: 1 },
    { kind: 'chunk', attempt: 1, pages: 2, tokens: 2 },
    { kind: 'settled', attempt: 1, pages: 2 },
    { kind: 'committed', attempt: 1, from: 1, to: 1 },
  ],
  decode: [
    { kind: 'start', attempt: 1, to: 1, room: 3, tokens: 2, promptPages: 2, pages: 2, tenant: 1 },
    { kind: 'admit', attempt: 1 },
    { kind: 'complete', attempt: 1, from: 1, to: 1, room: 3, tokens: 2 },
    { kind: 'verified', attempt: 1 },
    { kind: 'readBegin', attempt: 1 },
    { kind: 'readEnd', attempt: 1 },
    { kind: 'finish', attempt: 1 },
  ],
};

test('bytes and 32-bit cells step alike, and nothing outside the record is touched', () => {
  for (const actor of ACTORS) {
    const shape = shapeFor(actor);
    const wide = newView(shape, RULES);
    const bytes = new Uint8Array(shape.width + 16).fill(200);
    const narrow = newView(shape, RULES, bytes, 8);
    const outs = [newOut(2), newOut(2)];
    for (const event of LIFE[actor]) {
      for (const [i, view] of [wide, narrow].entries()) {
        outs[i].length = 0;
        STEP[actor](view, packEvent(event), outs[i]);
      }
      assert.deepEqual([...encode(narrow)], [...encode(wide)], `${actor} after ${event.kind}`);
      assert.deepEqual(outs[0], outs[1]);
    }
    assert.deepEqual([...bytes.slice(0, 8), ...bytes.slice(8 + shape.width)], Array(16).fill(200));
  }
});

test('the event is only read', () => {
  for (const actor of ACTORS) {
    const view = newView(shapeFor(actor), RULES);
    for (const event of LIFE[actor]) {
      const packed = packEvent(event);
      const before = packed.slice();
      STEP[actor](view, packed, newOut(2));
      assert.deepEqual(packed, before);
    }
  }
});

test('the same record and event give the same step, whatever happened elsewhere', () => {
  const prng = new Prng(7);
  for (const actor of ACTORS) {
    const first = newView(shapeFor(actor), RULES);
    const second = newView(shapeFor(actor), RULES);
    const other = newView(shapeFor(actor), RULES);
    for (const event of LIFE[actor]) {
      STEP[actor](first, packEvent(event), newOut(2));
      STEP[actor](other, packEvent({ ...event, slot: prng.below(2) }), newOut(2));
      STEP[actor](second, packEvent(event), newOut(2));
      assert.deepEqual(encode(first), encode(second));
    }
  }
});

const HOT_STEPS = 200_000;
/** Bytes: a tenth of one small object a step. What the test runner and the compiler allocate meanwhile is well below. */
const HEAP_GROWTH_MAX = 2_000_000;

test(`${HOT_STEPS} hot steps of each machine leave the heap as it was`, () => {
  for (const actor of ACTORS) {
    const view = newView(shapeFor(actor), RULES);
    const out = newOut(2);
    const events = LIFE[actor].map(packEvent);
    runHot(actor, view, events, out, 20_000);
    const before = process.memoryUsage().heapUsed;
    runHot(actor, view, events, out, HOT_STEPS);
    const growth = process.memoryUsage().heapUsed - before;
    assert.ok(growth < HEAP_GROWTH_MAX, `${actor} allocated ${growth} bytes in ${HOT_STEPS} steps`);
  }
});

function runHot(actor: Actor, view: View, events: readonly Int32Array[], out: Out, steps: number): void {
  const step = STEP[actor];
  let attempt = 0;
  for (let i = 0; i < steps; i++) {
    const at = i % events.length;
    if (at === 0) attempt++;
    const event = events[at];
    if (event[E.kind] !== EventKind.submit) event[E.attempt] = attempt;
    out.length = 0;
    step(view, event, out);
  }
}
