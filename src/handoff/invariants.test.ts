/**
 * Goal: no event, however wrong, breaks a record; and each invariant sees what it is there to see.
 * Method: random events of any kind with any numbers, mixed with likely ones, from a seed; then records broken by hand.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Prng } from '../base/prng.js';
import { DECODE_EVENTS, stepDecode } from './decode.js';
import { GATEWAY_EVENTS, stepGateway } from './gateway.js';
import { ALL_GUARDS } from './guards.js';
import {
  decodeStartsOnAVerifiedCount,
  everyPageIsAccountedFor,
  firstBroken,
  idleDecodeHoldsNothing,
  idlePrefillHoldsNothing,
  oneTerminalResult,
  ownersMatchLists,
  prefixesStayInsideOneTenant,
  refsMatchPrefixes,
  writesAreCounted,
} from './invariants.js';
import {
  type Actor,
  DS,
  FREE_COUNT,
  FREE_HEAD,
  newView,
  PG,
  PS,
  pageAt,
  print,
  setSlot,
  shapeOf,
  slotAt,
  type View,
} from './layout.js';
import { takePage } from './ledger.js';
import { E, EffectKind, EVENT_FIXED_WIDTH, EventKind, eventInWords, newOut } from './messages.js';
import { PREFILL_EVENTS, stepPrefill } from './prefill.js';

const STEP = { gateway: stepGateway, prefill: stepPrefill, decode: stepDecode };
const EVENTS = { gateway: GATEWAY_EVENTS, prefill: PREFILL_EVENTS, decode: DECODE_EVENTS };
const SEED = Number(process.env.SEED ?? 59);
const RUNS = 40;
const EVENTS_A_RUN = 1500;
const SLOTS = 3;
const PAGES = 6;
const PAGES_PER_SLOT = 3;
const KIND_MAX = Math.max(...Object.values(EventKind)) + 2;

function fresh(actor: Actor, prefixes: boolean): View {
  const options =
    actor === 'gateway' ? { slots: SLOTS } : { slots: SLOTS, pages: PAGES, pagesPerSlot: PAGES_PER_SLOT, prefixes };
  return newView(shapeOf(actor, options), { faults: 0, guards: ALL_GUARDS });
}

/** Any number at all, now and then; else a small one, so that something happens. */
function anyNumber(prng: Prng): number {
  if (prng.chance(0.02)) return prng.pick([-1, -2_147_483_648, 2_147_483_647, 65_536, 255, 256]);
  return prng.below(5) - (prng.chance(0.1) ? 1 : 0);
}

/** What comes next where all goes well, by phase. */
const LIKELY: Readonly<Record<Actor, readonly (readonly (keyof typeof EventKind)[])[]>> = {
  gateway: [['submit'], ['started', 'prefillClosed'], ['decodeClosed'], ['prefillClosed', 'decodeClosed']],
  prefill: [['start', 'lease'], ['lease', 'hit', 'admit'], ['chunk'], ['settled'], ['committed'], ['settled']],
  decode: [['start'], ['hit', 'admit'], ['complete'], ['verified'], ['finish', 'readBegin'], ['readEnd'], ['drained']],
};

function randomKind(actor: Actor, phase: number, prng: Prng): number {
  if (prng.chance(0.5)) return EventKind[prng.pick(LIKELY[actor][phase])];
  return prng.chance(0.8) ? EventKind[prng.pick(EVENTS[actor])] : prng.below(KIND_MAX + 1);
}

/** Fields that a machine compares are mostly as they are, so that events get past the first look. */
function randomEvent(view: View, prng: Prng, event: Int32Array): void {
  for (let i = 0; i < event.length; i++) event[i] = anyNumber(prng);
  const slot = prng.below(SLOTS);
  const [phase, known] = view.cells.slice(slotAt(view, slot), slotAt(view, slot) + 2);
  event[E.kind] = randomKind(view.shape.actor, phase, prng);
  event[E.slot] = slot;
  const isNew = event[E.kind] === EventKind.start && phase === 0;
  event[E.attempt] = prng.chance(0.1) ? anyNumber(prng) : known + (isNew ? 1 : 0);
  if (prng.chance(0.9)) {
    event[E.to] = view.cells[view.at];
    event[E.from] = view.cells[view.at + 1];
    event[E.room] = 1;
    event[E.tenant] = 1 + prng.below(2);
    event[E.salt] = event[E.tenant];
  }
  if (prng.chance(0.9)) {
    event[E.tokens] = 2;
    event[E.promptPages] = 1 + prng.below(2);
    event[E.pages] = event[E.promptPages] + prng.below(2);
    event[E.count] = prng.below(PAGES_PER_SLOT + 1);
    event[E.code] = prng.chance(0.8) ? 0 : anyNumber(prng);
    // Places in order and two hashes, so that what is sealed is found again.
    for (let i = 0; i < PAGES_PER_SLOT && prng.chance(0.8); i++) {
      event[E.list + 2 * i] = event[E.kind] === EventKind.hit ? prng.below(PAGES) : i;
      event[E.list + 2 * i + 1] = prng.below(2);
    }
  }
  // Restarts of the peer with numbers out of reach would make every later message stale.
  const isDown = event[E.kind] === EventKind.prefillDown || event[E.kind] === EventKind.decodeDown;
  if (isDown) event[E.from] = view.cells[view.at + 1] + prng.below(2);
  if (event[E.attempt] > known + 1) event[E.attempt] = known + 1;
}

for (const actor of ['gateway', 'prefill', 'decode'] as const) {
  for (const prefixes of actor === 'gateway' ? [false] : [false, true]) {
    const what = `${actor}${prefixes ? ' with sealed pages' : ''}`;
    test(`no run of random events breaks the record of ${what} or throws (seed ${SEED})`, () => {
      const seen = new Set<number>();
      let hits = 0;
      for (let run = 0; run < RUNS; run++) {
        const prng = new Prng(SEED + run);
        const view = fresh(actor, prefixes);
        const out = newOut(SLOTS, PAGES_PER_SLOT);
        const event = new Int32Array(EVENT_FIXED_WIDTH + 2 * PAGES_PER_SLOT);
        for (let i = 0; i < EVENTS_A_RUN; i++) {
          randomEvent(view, prng, event);
          out.length = 0;
          STEP[actor](view, event, out);
          for (let effect = 0; effect < out.length; effect++) seen.add(out.cells[effect * (EVENT_FIXED_WIDTH + 1)]);
          hits += hasPrefix(view) ? 1 : 0;
          const broken = firstBroken(view);
          if (broken === null) continue;
          assert.fail(
            `SEED=${SEED + run}, event ${i} (${eventInWords(event)}; ${event.join(' ')}): ${broken}\n${print(view)}`,
          );
        }
      }
      const wanted = {
        gateway: [EffectKind.clientStarted, EffectKind.clientEnd, EffectKind.slotFree],
        prefill: [EffectKind.post, EffectKind.pagesFreed, EffectKind.sendDecode],
        decode: [EffectKind.verify, EffectKind.startDecode, EffectKind.alarm, EffectKind.revoke, EffectKind.pagesFreed],
      }[actor];
      for (const effect of prefixes ? [...wanted, EffectKind.seal] : wanted) {
        assert.ok(seen.has(effect), `the run means something: effect ${effect} was seen`);
      }
      assert.equal(hits > 0, prefixes, 'prefixes were shared where there are any');
    });
  }
}

function hasPrefix(view: View): boolean {
  if (!view.shape.prefixes) return false;
  const prefix = view.shape.actor === 'decode' ? DS.prefix : PS.prefix;
  for (let slot = 0; slot < SLOTS; slot++) if (view.cells[slotAt(view, slot) + prefix] > 0) return true;
  return false;
}

test('a pool that does not add up is seen', () => {
  const view = fresh('decode', false);
  assert.equal(everyPageIsAccountedFor(view), null);
  view.cells[view.at + FREE_COUNT]--;
  assert.match(everyPageIsAccountedFor(view) ?? '', /free count says 5, 6 pages are free/);
});

test('a free list that runs in a circle, or that holds a page which is not free, is seen', () => {
  const view = fresh('decode', false);
  view.cells[pageAt(view, 1) + PG.next] = 1;
  assert.match(everyPageIsAccountedFor(view) ?? '', /in a circle/);
  const other = fresh('decode', false);
  takePage(other, 0);
  other.cells[other.at + FREE_HEAD] = 1;
  assert.match(everyPageIsAccountedFor(other) ?? '', /listed as free and is not/);
});

test('a page in the list of a slot that does not own it, or owned and in no list, is seen', () => {
  const view = fresh('decode', false);
  const page = takePage(view, 0);
  assert.match(ownersMatchLists(view) ?? '', /1 pages have an owner, 0 are/);
  setSlot(view, 1, 'held', 1);
  view.cells[slotAt(view, 1) + view.shape.listBase] = page;
  assert.match(ownersMatchLists(view) ?? '', /slot 1 and is not its own/);
});

test('a reader that is not counted, and a reader of another tenant, are seen', () => {
  const view = fresh('decode', true);
  const cell = pageAt(view, takePage(view, 0));
  view.cells[cell + PG.state] = 3;
  view.cells[cell + PG.tenant] = 7;
  setSlot(view, 0, 'prefix', 1);
  setSlot(view, 0, 'tenant', 8);
  assert.match(refsMatchPrefixes(view) ?? '', /counts 0 readers, has 1/);
  assert.match(prefixesStayInsideOneTenant(view) ?? '', /of another tenant/);
});

test('writes that settle before they are posted, or are posted past the prompt, are seen', () => {
  const view = fresh('prefill', false);
  setSlot(view, 0, 'settled', 1);
  assert.match(writesAreCounted(view) ?? '', /settled more/);
  setSlot(view, 0, 'posted', 1);
  assert.match(writesAreCounted(view) ?? '', /posted more/);
});

test('an idle slot that holds pages or has writes on the wire is seen', () => {
  const prefill = fresh('prefill', false);
  setSlot(prefill, 0, 'posted', 1);
  assert.match(idlePrefillHoldsNothing(prefill) ?? '', /writes on the wire/);
  setSlot(prefill, 0, 'held', 1);
  assert.match(idlePrefillHoldsNothing(prefill) ?? '', /holds pages/);
  const decode = fresh('decode', false);
  setSlot(decode, 0, 'held', 1);
  assert.match(idleDecodeHoldsNothing(decode) ?? '', /holds pages/);
});

test('a decode over a count that was not verified is seen', () => {
  const view = fresh('decode', false);
  setSlot(view, 0, 'tokens', 9);
  setSlot(view, 0, 'completed', 1);
  for (const phase of [4, 5]) {
    view.cells[slotAt(view, 0) + DS.phase] = phase;
    assert.match(decodeStartsOnAVerifiedCount(view) ?? '', /decodes 9 tokens, prefill completed 1/);
  }
});

test('a second terminal result, and a slot that closes without one, are seen', () => {
  const view = fresh('gateway', false);
  setSlot(view, 0, 'terminals', 2);
  assert.match(oneTerminalResult(view) ?? '', /ended 2 times/);
  setSlot(view, 0, 'terminals', 0);
  setSlot(view, 0, 'phase', 3);
  assert.match(oneTerminalResult(view) ?? '', /closes with 0 results/);
});
