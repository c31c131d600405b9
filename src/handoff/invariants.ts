/**
 * What must hold of the records, whatever happened. Written once; used by unit tests, the model checker, the simulator and the
 * running engine when it is idle. Each answers null, or what is broken, in words.
 */
import { DecodePhase } from './decode.js';
import { GatewayPhase } from './gateway.js';
import { DS, FREE_COUNT, FREE_HEAD, GS, listAt, PageState, PG, PS, pageAt, slotAt, type View } from './layout.js';
import { PrefillPhase, SOURCE } from './prefill.js';
import { Result } from './messages.js';

export type Invariant = (view: View) => string | null;

/** free + leased + draining + sealed = pool, and the free list holds the free pages, each once. */
export function everyPageIsAccountedFor(view: View): string | null {
  const { cells, at, shape } = view;
  let free = 0;
  for (let page = 0; page < shape.pages; page++) {
    const state = cells[pageAt(view, page) + PG.state];
    if (state === PageState.free) free++;
    else if (state > PageState.sealed) return `page ${page} is in no known state`;
  }
  if (cells[at + FREE_COUNT] !== free) return `the free count says ${cells[at + FREE_COUNT]}, ${free} pages are free`;
  let listed = 0;
  for (let next = cells[at + FREE_HEAD]; next !== 0; next = cells[pageAt(view, next - 1) + PG.next]) {
    listed++;
    if (listed > shape.pages) return 'the free list runs in a circle';
    if (cells[pageAt(view, next - 1) + PG.state] !== PageState.free)
      return `page ${next - 1} is listed as free and is not`;
  }
  return listed === free ? null : `the free list holds ${listed} pages, ${free} are free`;
}

/** Every leased or draining page is in exactly the list of the slot that owns it, and every page in a list belongs to it. */
export function ownersMatchLists(view: View): string | null {
  const { cells, shape } = view;
  const isDecode = shape.actor === 'decode';
  let owned = 0;
  for (let slot = 0; slot < shape.slots; slot++) {
    const at = slotAt(view, slot);
    if (isDecode && cells[at + DS.attached] === 1) continue;
    const held = cells[at + (isDecode ? DS.held : PS.held)];
    const prefix = cells[at + (isDecode ? DS.prefix : PS.prefix)];
    const list = listAt(view, slot, SOURCE);
    for (let place = prefix; place < held; place++) {
      const page = cells[list + place];
      const cell = pageAt(view, page);
      if (cells[cell + PG.owner] !== slot + 1) return `page ${page} is in the list of slot ${slot} and is not its own`;
      const state = cells[cell + PG.state];
      if (state !== PageState.leased && state !== PageState.draining)
        return `page ${page} of slot ${slot} is not leased`;
      owned++;
    }
  }
  let lent = 0;
  for (let page = 0; page < shape.pages; page++) {
    const state = cells[pageAt(view, page) + PG.state];
    if (state === PageState.leased || state === PageState.draining) lent++;
  }
  return owned === lent ? null : `${lent} pages have an owner, ${owned} are in an owner's list`;
}

/** A sealed page has as many readers as slots that list it as prefix. */
export function refsMatchPrefixes(view: View): string | null {
  const { cells, shape } = view;
  if (!shape.prefixes) return null;
  const isDecode = shape.actor === 'decode';
  for (let page = 0; page < shape.pages; page++) {
    const cell = pageAt(view, page);
    if (cells[cell + PG.state] !== PageState.sealed) continue;
    let readers = 0;
    for (let slot = 0; slot < shape.slots; slot++) {
      const prefix = cells[slotAt(view, slot) + (isDecode ? DS.prefix : PS.prefix)];
      const list = listAt(view, slot, SOURCE);
      for (let place = 0; place < prefix; place++) if (cells[list + place] === page) readers++;
    }
    if (readers !== cells[cell + PG.refs])
      return `page ${page} counts ${cells[cell + PG.refs]} readers, has ${readers}`;
  }
  return null;
}

/** A prefix page belongs to the tenant that reads it. */
export function prefixesStayInsideOneTenant(view: View): string | null {
  const { cells, shape } = view;
  if (!shape.prefixes) return null;
  const isDecode = shape.actor === 'decode';
  for (let slot = 0; slot < shape.slots; slot++) {
    const at = slotAt(view, slot);
    const prefix = cells[at + (isDecode ? DS.prefix : PS.prefix)];
    const tenant = cells[at + (isDecode ? DS.tenant : PS.tenant)];
    for (let place = 0; place < prefix; place++) {
      const page = cells[listAt(view, slot, SOURCE) + place];
      if (cells[pageAt(view, page) + PG.tenant] !== tenant) return `slot ${slot} reads page ${page} of another tenant`;
    }
  }
  return null;
}

/** settled <= posted <= pages of the prompt. */
export function writesAreCounted(view: View): string | null {
  for (let slot = 0; slot < view.shape.slots; slot++) {
    const at = slotAt(view, slot);
    const posted = view.cells[at + PS.posted];
    if (view.cells[at + PS.settled] > posted) return `slot ${slot} of prefill settled more writes than it posted`;
    if (posted > view.cells[at + PS.promptPages])
      return `slot ${slot} of prefill posted more pages than its prompt has`;
  }
  return null;
}

/** Prefill: an idle slot holds nothing and has nothing on the wire. */
export function idlePrefillHoldsNothing(view: View): string | null {
  for (let slot = 0; slot < view.shape.slots; slot++) {
    const at = slotAt(view, slot);
    if (view.cells[at + PS.phase] !== PrefillPhase.idle) continue;
    if (view.cells[at + PS.held] !== 0) return `idle slot ${slot} of prefill holds pages`;
    if (view.cells[at + PS.posted] !== view.cells[at + PS.settled]) return `idle slot ${slot} has writes on the wire`;
  }
  return null;
}

/** Decode runs only what prefill completed in the length that was admitted. */
export function decodeStartsOnAVerifiedCount(view: View): string | null {
  for (let slot = 0; slot < view.shape.slots; slot++) {
    const at = slotAt(view, slot);
    const phase = view.cells[at + DS.phase];
    if (phase !== DecodePhase.decoding && phase !== DecodePhase.reading) continue;
    if (view.cells[at + DS.completed] !== view.cells[at + DS.tokens]) {
      return `slot ${slot} decodes ${view.cells[at + DS.tokens]} tokens, prefill completed ${view.cells[at + DS.completed]}`;
    }
  }
  return null;
}

export function idleDecodeHoldsNothing(view: View): string | null {
  for (let slot = 0; slot < view.shape.slots; slot++) {
    const at = slotAt(view, slot);
    const phase = view.cells[at + DS.phase];
    const held = view.cells[at + DS.held];
    if (phase === DecodePhase.idle && held !== 0) return `idle slot ${slot} of decode holds pages`;
    if (phase >= DecodePhase.leased && held < view.cells[at + DS.promptPages] && view.cells[at + DS.attached] === 0) {
      return `slot ${slot} of decode holds ${held} pages, its prompt has ${view.cells[at + DS.promptPages]}`;
    }
  }
  return null;
}

/** At most one terminal result reaches the client; a slot that is closing has exactly one, or another attempt to make. */
export function oneTerminalResult(view: View): string | null {
  for (let slot = 0; slot < view.shape.slots; slot++) {
    const at = slotAt(view, slot);
    const terminals = view.cells[at + GS.terminals];
    const phase = view.cells[at + GS.phase];
    if (terminals > 1) return `slot ${slot} ended ${terminals} times for its client`;
    const isOpen = phase === GatewayPhase.open || phase === GatewayPhase.streaming;
    if (isOpen && terminals !== 0) return `slot ${slot} is open after its end`;
    if (phase === GatewayPhase.closing && terminals + view.cells[at + GS.again] !== 1) {
      return `slot ${slot} closes with ${terminals} results and ${view.cells[at + GS.again]} attempts to make`;
    }
    if ((view.cells[at + GS.result] === Result.none) !== (terminals === 0))
      return `slot ${slot} has a result without an end`;
  }
  return null;
}

/** An invariant that does not hold: its name, and what is wrong. */
export interface BrokenInvariant {
  readonly invariant: string;
  readonly words: string;
}

export const GATEWAY_INVARIANTS: readonly Invariant[] = [oneTerminalResult];
export const PREFILL_INVARIANTS: readonly Invariant[] = [
  everyPageIsAccountedFor,
  ownersMatchLists,
  refsMatchPrefixes,
  prefixesStayInsideOneTenant,
  writesAreCounted,
  idlePrefillHoldsNothing,
];
export const DECODE_INVARIANTS: readonly Invariant[] = [
  everyPageIsAccountedFor,
  ownersMatchLists,
  refsMatchPrefixes,
  prefixesStayInsideOneTenant,
  decodeStartsOnAVerifiedCount,
  idleDecodeHoldsNothing,
];

const INVARIANTS = { gateway: GATEWAY_INVARIANTS, prefill: PREFILL_INVARIANTS, decode: DECODE_INVARIANTS };

/** The first broken invariant of an actor's record, or null. */
export function brokenInvariant(view: View): BrokenInvariant | null {
  // Asked of millions of states: the calls are written out, so that each can be compiled into its place.
  const { actor } = view.shape;
  const words =
    actor === 'gateway'
      ? oneTerminalResult(view)
      : (everyPageIsAccountedFor(view) ??
        ownersMatchLists(view) ??
        refsMatchPrefixes(view) ??
        prefixesStayInsideOneTenant(view) ??
        (actor === 'prefill'
          ? (writesAreCounted(view) ?? idlePrefillHoldsNothing(view))
          : (decodeStartsOnAVerifiedCount(view) ?? idleDecodeHoldsNothing(view))));
  if (words === null) return null;
  const invariant = INVARIANTS[actor].find((check) => check(view) !== null)?.name ?? '';
  return { invariant, words: `${actor}: ${words}` };
}

/** The first broken invariant of an actor's record in words, or null. */
export function firstBroken(view: View): string | null {
  return brokenInvariant(view)?.words ?? null;
}
