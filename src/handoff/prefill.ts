/**
 * Prefill's machine: one slot a request. It computes a prompt chunk by chunk into pages of its own pool and posts each as a
 * one-sided write into the pages that decode leased. It promises two things: it says `complete` only when its own writes have
 * settled, and it says `drained` only when nothing it posted for the attempt can still land and nothing more will be posted.
 */
import { FAULT, GUARD, deviates, faulty, guarded, guardHit } from './rules.js';
import { listAt, PageState, PG, PH, PS, pageAt, slotAt, type View } from './layout.js';
import { dropPrefix, evictPage, freeCount, freePage, sealPage, takePage } from './ledger.js';
import { E, EffectKind, EventKind, emit, lastMessage, type Out, Result } from './messages.js';
import { fits, takePrefix } from './prefix.js';

export const PrefillPhase = { idle: 0, waiting: 1, computing: 2, flushing: 3, completing: 4, stopping: 5 } as const;
export const PREFILL_EVENTS = [
  'start',
  'abort',
  'lease',
  'drain',
  'committed',
  'hit',
  'admit',
  'chunk',
  'settled',
  'abandon',
  'evict',
  'decodeDown',
  'timer',
] as const;

export const SOURCE = 0;
export const TARGET = 1;
export const EPOCH = 2;

/** Takes one event, changes the record in place, writes effects. Unknown and stale events change nothing. */
export function stepPrefill(view: View, event: Int32Array, out: Out): void {
  const slot = event[E.slot];
  switch (event[E.kind]) {
    case EventKind.start:
      return onStart(view, slot, event, out);
    case EventKind.lease:
      return onLease(view, slot, event, out);
    case EventKind.abort:
      return onAbort(view, slot, event, out);
    case EventKind.drain:
      return onDrain(view, slot, event, out);
    case EventKind.committed:
      return onCommitted(view, slot, event, out);
    case EventKind.hit:
      return onHit(view, slot, event, out);
    case EventKind.admit:
      return onAdmit(view, slot, event);
    case EventKind.chunk:
      return onChunk(view, slot, event, out);
    case EventKind.settled:
      return onSettled(view, slot, event, out);
    case EventKind.abandon:
      return onAbandon(view, slot, event, out);
    case EventKind.evict:
      evictPage(view, event[E.pages]);
      return;
    case EventKind.decodeDown:
      return onDecodeDown(view, event[E.from], out);
    case EventKind.timer:
      if (view.cells[slotAt(view, slot) + PS.phase] === PrefillPhase.completing) sendComplete(view, slot, out);
      return;
  }
}

function enter(view: View, slot: number, phase: number): void {
  view.cells[slotAt(view, slot) + PS.phase] = phase;
}

function isForMe(view: View, event: Int32Array): boolean {
  return event[E.to] === view.cells[view.at + PH.incarnation];
}

/** From decode, in the life that this node knows. */
function isFromDecode(view: View, event: Int32Array): boolean {
  return isForMe(view, event) && event[E.from] === view.cells[view.at + PH.decodeIncarnation];
}

function onStart(view: View, slot: number, event: Int32Array, out: Out): void {
  if (!isForMe(view, event)) return;
  const at = slotAt(view, slot);
  const known = view.cells[at + PS.attempt];
  if (event[E.attempt] < known) return;
  const isIdle = view.cells[at + PS.phase] === PrefillPhase.idle;
  if (event[E.attempt] === known && !(isIdle && takesAttemptAgain(view))) {
    if (isIdle) sendClosed(view, slot, out);
    return;
  }
  if (isIdle) begin(view, slot, event, out);
}

/** The fault: a retry comes under the old number, and nothing compares. */
function takesAttemptAgain(view: View): boolean {
  return deviates(view, FAULT['retry-keeps-attempt'], GUARD.lease);
}

function begin(view: View, slot: number, event: Int32Array, out: Out): void {
  const { cells } = view;
  const at = slotAt(view, slot);
  cells.fill(0, at, at + view.shape.slotWidth);
  cells[at + PS.attempt] = event[E.attempt];
  cells[at + PS.tenant] = event[E.tenant];
  cells[at + PS.salt] = event[E.salt];
  cells[at + PS.room] = event[E.room];
  cells[at + PS.tokens] = event[E.tokens];
  cells[at + PS.promptPages] = Math.max(event[E.promptPages], 0);
  enter(view, slot, PrefillPhase.waiting);
  if (fits(view, event[E.promptPages], event[E.promptPages])) return;
  if (deviates(view, FAULT['rejected-stays-alive'], GUARD.rejection)) {
    // The fault: the prompt is swapped for a placeholder of one token, and the request goes on as if it were whole.
    cells[at + PS.tokens] = 1;
    cells[at + PS.promptPages] = 1;
    return;
  }
  guardHitIfOn(view, slot, out);
  refuse(view, slot, out);
}

function guardHitIfOn(view: View, slot: number, out: Out): void {
  if (guarded(view, GUARD.rejection)) guardHit(out, GUARD.rejection, slot);
}

/** Nothing was posted, and nothing will be: the original error goes to the gateway and to decode. */
function refuse(view: View, slot: number, out: Out): void {
  view.cells[slotAt(view, slot) + PS.result] = Result.refused;
  enter(view, slot, PrefillPhase.idle);
  sendClosed(view, slot, out);
  if (deviates(view, FAULT['unannounced-rejection'], GUARD.rejection)) return;
  sendDecode(view, slot, EventKind.reject, view.cells[slotAt(view, slot) + PS.attempt], out);
}

/** A lease also stands for a start that was lost or is late: it carries all that a start does. */
function onLease(view: View, slot: number, event: Int32Array, out: Out): void {
  if (!isFromDecode(view, event)) return;
  const { cells } = view;
  const at = slotAt(view, slot);
  const isIdle = cells[at + PS.phase] === PrefillPhase.idle;
  if (event[E.attempt] > cells[at + PS.attempt] && isIdle) begin(view, slot, event, out);
  if (event[E.attempt] < cells[at + PS.attempt]) {
    return sendDecode(view, slot, EventKind.drained, event[E.attempt], out);
  }
  if (event[E.attempt] !== cells[at + PS.attempt]) return;
  const phase = cells[at + PS.phase];
  if (phase === PrefillPhase.idle) {
    const word = cells[at + PS.result] === Result.refused ? EventKind.reject : EventKind.drained;
    if (word === EventKind.reject && deviates(view, FAULT['unannounced-rejection'], GUARD.rejection)) return;
    return sendDecode(view, slot, word, event[E.attempt], out);
  }
  if (phase === PrefillPhase.waiting && cells[at + PS.peer] === 0) takeLease(view, slot, event);
}

/** The lease names a page for every place but the first `code`, which decode shares with others and nobody writes. */
function takeLease(view: View, slot: number, event: Int32Array): void {
  const { cells } = view;
  const at = slotAt(view, slot);
  const first = event[E.code];
  const last = cells[at + PS.promptPages];
  // One that leaves a place without a page is no lease: what is not named cannot be written to.
  if (first < 0 || first > last || event[E.count] < last - first) return;
  cells[at + PS.peer] = event[E.from];
  cells[at + PS.posted] = first;
  cells[at + PS.settled] = first;
  const targets = listAt(view, slot, TARGET);
  const epochs = listAt(view, slot, EPOCH);
  for (let place = first; place < last; place++) {
    cells[targets + place] = event[E.list + 2 * (place - first)];
    cells[epochs + place] = event[E.list + 2 * (place - first) + 1];
  }
}

function onAbort(view: View, slot: number, event: Int32Array, out: Out): void {
  if (!isForMe(view, event)) return;
  const at = slotAt(view, slot);
  const known = view.cells[at + PS.attempt];
  if (event[E.attempt] < known) return;
  if (event[E.attempt] > known) {
    if (view.cells[at + PS.phase] !== PrefillPhase.idle) return;
    remember(view, slot, event[E.attempt]);
  }
  if (view.cells[at + PS.phase] === PrefillPhase.idle) return sendClosed(view, slot, out);
  stop(view, slot, Result.aborted, out);
}

/** An attempt that this node never saw is closed for good: a start or lease of it that still comes finds it so. */
function remember(view: View, slot: number, attempt: number): void {
  const at = slotAt(view, slot);
  view.cells.fill(0, at, at + view.shape.slotWidth);
  view.cells[at + PS.attempt] = attempt;
  view.cells[at + PS.result] = Result.aborted;
}

function onDrain(view: View, slot: number, event: Int32Array, out: Out): void {
  if (!isFromDecode(view, event)) return;
  const at = slotAt(view, slot);
  const isIdle = view.cells[at + PS.phase] === PrefillPhase.idle;
  if (event[E.attempt] > view.cells[at + PS.attempt]) {
    if (!isIdle) return;
    remember(view, slot, event[E.attempt]);
  }
  if (event[E.attempt] < view.cells[at + PS.attempt] || isIdle) {
    return sendDecode(view, slot, EventKind.drained, event[E.attempt], out);
  }
  // A lease that this node never saw cannot have been written to; say so even where `peer` is still unknown.
  if (view.cells[at + PS.peer] === 0) view.cells[at + PS.peer] = event[E.from];
  stop(view, slot, Result.aborted, out);
}

/** No more is posted. What was posted must settle first. */
function stop(view: View, slot: number, result: number, out: Out): void {
  const at = slotAt(view, slot);
  if (view.cells[at + PS.phase] === PrefillPhase.stopping) return;
  view.cells[at + PS.result] = result;
  enter(view, slot, PrefillPhase.stopping);
  if (view.cells[at + PS.settled] === view.cells[at + PS.posted]) closeStopped(view, slot, out);
}

function closeStopped(view: View, slot: number, out: Out): void {
  const at = slotAt(view, slot);
  releaseSource(view, slot, null, out);
  enter(view, slot, PrefillPhase.idle);
  sendClosed(view, slot, out);
  if (view.cells[at + PS.peer] !== 0) sendDecode(view, slot, EventKind.drained, view.cells[at + PS.attempt], out);
}

/** Source pages go back as soon as the wire has read them; those that `event` lists as (place, hash) are sealed instead. */
function releaseSource(view: View, slot: number, event: Int32Array | null, out: Out): void {
  const { cells } = view;
  const at = slotAt(view, slot);
  const source = listAt(view, slot, SOURCE);
  const prefix = cells[at + PS.prefix];
  const held = cells[at + PS.held];
  if (event !== null && view.shape.prefixes) {
    for (let i = 0; i < event[E.count]; i++) {
      const place = event[E.list + 2 * i];
      if (place < prefix || place >= held || !isLeased(view, cells[source + place])) continue;
      sealPage(view, cells[source + place], cells[at + PS.tenant], cells[at + PS.salt], event[E.list + 2 * i + 1]);
      const effect = emit(out, EffectKind.seal, 0, slot);
      out.cells[effect + E.pages] = cells[source + place];
      out.cells[effect + E.code] = event[E.list + 2 * i + 1];
    }
  }
  for (let place = held - 1; place >= prefix; place--) {
    const page = cells[source + place];
    if (isLeased(view, page)) freePage(view, page);
    cells[source + place] = 0;
  }
  dropPrefix(view, source, prefix);
  cells[at + PS.held] = 0;
  cells[at + PS.prefix] = 0;
  if (held > 0) emit(out, EffectKind.pagesFreed, 0, slot);
}

function isLeased(view: View, page: number): boolean {
  return view.cells[pageAt(view, page) + PG.state] === PageState.leased;
}

function onCommitted(view: View, slot: number, event: Int32Array, out: Out): void {
  const at = slotAt(view, slot);
  if (!isFromDecode(view, event) || event[E.attempt] !== view.cells[at + PS.attempt]) return;
  if (view.cells[at + PS.phase] !== PrefillPhase.completing) return;
  view.cells[at + PS.result] = Result.finished;
  enter(view, slot, PrefillPhase.idle);
  sendClosed(view, slot, out);
}

/** Only with a lease: a prefix that waits for decode would keep pages from the slots that decode waits for. */
function onHit(view: View, slot: number, event: Int32Array, out: Out): void {
  const at = slotAt(view, slot);
  if (event[E.attempt] !== view.cells[at + PS.attempt] || view.cells[at + PS.phase] !== PrefillPhase.waiting) return;
  if (view.cells[at + PS.peer] === 0) return;
  const placesMax = view.cells[at + PS.promptPages];
  takePrefix(view, listAt(view, slot, SOURCE), placesMax, at + PS.prefix, at + PS.tenant, at + PS.salt, event, out);
  view.cells[at + PS.held] = view.cells[at + PS.prefix];
}

/**
 * With a lease and enough free pages for the whole prompt, and only then, the slot starts to compute. A slot that has to wait lets go
 * of its prefix: slots that hold some pages and wait for more could wait for each other for ever.
 */
function onAdmit(view: View, slot: number, event: Int32Array): void {
  const { cells } = view;
  const at = slotAt(view, slot);
  if (event[E.attempt] !== cells[at + PS.attempt] || cells[at + PS.phase] !== PrefillPhase.waiting) return;
  if (cells[at + PS.peer] === 0) return;
  const prefix = cells[at + PS.prefix];
  const wanted = cells[at + PS.promptPages];
  const source = listAt(view, slot, SOURCE);
  if (freeCount(view) < wanted - prefix) {
    dropPrefix(view, source, prefix);
    cells[at + PS.held] = 0;
    cells[at + PS.prefix] = 0;
    return;
  }
  for (let place = prefix; place < wanted; place++) cells[source + place] = takePage(view, slot);
  cells[at + PS.held] = wanted;
  enter(view, slot, PrefillPhase.computing);
}

/** `pages` more places of the prompt can be posted, behind those that are; `tokens` are done so far. */
function onChunk(view: View, slot: number, event: Int32Array, out: Out): void {
  const { cells } = view;
  const at = slotAt(view, slot);
  if (event[E.attempt] !== cells[at + PS.attempt] || cells[at + PS.phase] !== PrefillPhase.computing) return;
  const first = cells[at + PS.posted];
  const left = cells[at + PS.promptPages] - first;
  const count = Math.max(Math.min(event[E.pages], left), 0);
  if (count === 0 && left > 0) return;
  cells[at + PS.posted] += count;
  if (count > 0) {
    const effect = emit(out, EffectKind.post, 0, slot);
    out.cells[effect + E.attempt] = cells[at + PS.attempt];
    out.cells[effect + E.promptPages] = first;
    out.cells[effect + E.pages] = count;
  }
  const isWhole = cells[at + PS.posted] === cells[at + PS.promptPages];
  // The fault: the first chunk passes for the whole prompt. The count that is told is true; nobody has to believe it.
  const isCutShort = !isWhole && faulty(view, FAULT['count-unchecked']);
  if (isCutShort) cells[at + PS.tokens] = event[E.tokens];
  if (!isWhole && !isCutShort) return;
  enter(view, slot, PrefillPhase.flushing);
  // Where decode had every place already there is nothing to wait for.
  if (cells[at + PS.settled] === cells[at + PS.posted]) completeSlot(view, slot, null, out);
}

/** `pages` of the slot's posted writes have landed, or were refused by a registration that is gone. */
function onSettled(view: View, slot: number, event: Int32Array, out: Out): void {
  const { cells } = view;
  const at = slotAt(view, slot);
  if (event[E.attempt] !== cells[at + PS.attempt] || cells[at + PS.phase] === PrefillPhase.idle) return;
  if (event[E.pages] < 1) return;
  cells[at + PS.settled] = Math.min(cells[at + PS.settled] + event[E.pages], cells[at + PS.posted]);
  if (cells[at + PS.settled] !== cells[at + PS.posted]) return;
  if (cells[at + PS.phase] === PrefillPhase.stopping) closeStopped(view, slot, out);
  else if (cells[at + PS.phase] === PrefillPhase.flushing) completeSlot(view, slot, event, out);
}

function completeSlot(view: View, slot: number, event: Int32Array | null, out: Out): void {
  releaseSource(view, slot, event, out);
  enter(view, slot, PrefillPhase.completing);
  sendComplete(view, slot, out);
}

/** This node gives the request up in the middle (no memory, an error in the forward pass). */
function onAbandon(view: View, slot: number, event: Int32Array, out: Out): void {
  const at = slotAt(view, slot);
  if (event[E.attempt] !== view.cells[at + PS.attempt]) return;
  const phase = view.cells[at + PS.phase];
  if (phase !== PrefillPhase.waiting && phase !== PrefillPhase.computing) return;
  if (phase === PrefillPhase.computing && faulty(view, FAULT['silent-abort'])) {
    // The fault: what was posted passes for the whole, and the count says so.
    enter(view, slot, PrefillPhase.flushing);
    if (view.cells[at + PS.settled] === view.cells[at + PS.posted]) completeSlot(view, slot, null, out);
    return;
  }
  stop(view, slot, Result.abandoned, out);
}

/** Decode lives again: its old pool is gone, and so is every lease of it. */
function onDecodeDown(view: View, incarnation: number, out: Out): void {
  const { cells } = view;
  if (incarnation <= cells[view.at + PH.decodeIncarnation]) return;
  cells[view.at + PH.decodeIncarnation] = incarnation;
  for (let slot = 0; slot < view.shape.slots; slot++) {
    const at = slotAt(view, slot);
    if (cells[at + PS.phase] !== PrefillPhase.idle && cells[at + PS.peer] !== 0) {
      stop(view, slot, Result.peerDown, out);
    }
  }
}

function sendClosed(view: View, slot: number, out: Out): void {
  const at = slotAt(view, slot);
  const message = emit(out, EffectKind.sendGateway, EventKind.prefillClosed, slot);
  out.cells[message + E.attempt] = view.cells[at + PS.attempt];
  out.cells[message + E.from] = view.cells[view.at + PH.incarnation];
  out.cells[message + E.code] = view.cells[at + PS.result];
}

function sendComplete(view: View, slot: number, out: Out): void {
  const at = slotAt(view, slot);
  sendDecode(view, slot, EventKind.complete, view.cells[at + PS.attempt], out);
  out.cells[lastMessage(out) + E.tokens] = view.cells[at + PS.tokens];
}

function sendDecode(view: View, slot: number, kind: number, attempt: number, out: Out): void {
  const message = emit(out, EffectKind.sendDecode, kind, slot);
  out.cells[message + E.attempt] = attempt;
  out.cells[message + E.from] = view.cells[view.at + PH.incarnation];
  out.cells[message + E.to] = view.cells[view.at + PH.decodeIncarnation];
  out.cells[message + E.room] = view.cells[slotAt(view, slot) + PS.room];
}
