/**
 * Decode's machine: one slot a request. It leases pages, lets prefill write into them, and decodes only what it has verified.
 * Its pages come back by one of three proofs that nothing can still land in them: prefill completed or refused, prefill said
 * `drained`, or prefill's incarnation is fenced. A timeout raises an alarm and proves nothing.
 */
import { FAULT, GUARD, deviates, guarded, guardHit } from './rules.js';
import { DH, DS, listAt, slotAt, type View } from './layout.js';
import { drainPages, dropPrefix, evictPage, freeCount, takePage } from './ledger.js';
import { E, EffectKind, EventKind, emit, type Out, Result } from './messages.js';
import { answer, sendClosed, sendFailing, sendLease, sendPrefill, sendStarted } from './decode-messages.js';
import { release } from './decode-pages.js';
import { fits, takePrefix } from './prefix.js';

export { leaseList } from './decode-messages.js';

export const DecodePhase = {
  idle: 0,
  waiting: 1,
  leased: 2,
  verifying: 3,
  decoding: 4,
  /** Between the first look at the tags of a step and the second. */
  reading: 5,
  draining: 6,
} as const;
export const DECODE_EVENTS = [
  'start',
  'abort',
  'complete',
  'reject',
  'drained',
  'hit',
  'admit',
  'attach',
  'verified',
  'readBegin',
  'readEnd',
  'finish',
  'evict',
  'prefillDown',
  'timer',
  'timeout',
] as const;

/** Verdicts of the runner on what it compared, as bits in `code`. */
export const Verdict = { own: 0, badTag: 1, badChecksum: 2 } as const;

/** Takes one event, changes the record in place, writes effects. Unknown and stale events change nothing. */
export function stepDecode(view: View, event: Int32Array, out: Out): void {
  const slot = event[E.slot];
  switch (event[E.kind]) {
    case EventKind.start:
      return onStart(view, slot, event, out);
    case EventKind.abort:
      return onAbort(view, slot, event, out);
    case EventKind.complete:
      return onComplete(view, slotFor(view, event), event, out);
    case EventKind.reject:
      return onReject(view, slotFor(view, event), out);
    case EventKind.drained:
      return onDrained(view, slotFor(view, event), out);
    case EventKind.hit:
      return onHit(view, slot, event, out);
    case EventKind.admit:
      return onAdmit(view, slot, event, out);
    case EventKind.attach:
      return onAttach(view, slot, event, out);
    case EventKind.verified:
      return onVerified(view, slot, event, out);
    case EventKind.readBegin:
      return onRead(view, slot, event, DecodePhase.decoding, DecodePhase.reading, out);
    case EventKind.readEnd:
      return onRead(view, slot, event, DecodePhase.reading, DecodePhase.decoding, out);
    case EventKind.finish:
      return onFinish(view, slot, event, out);
    case EventKind.evict:
      evictPage(view, event[E.pages]);
      return;
    case EventKind.prefillDown:
      return onPrefillDown(view, event[E.from], out);
    case EventKind.timer:
      return onTimer(view, slot, out);
    case EventKind.timeout:
      return onTimeout(view, slot, event, out);
  }
}

function phaseOf(view: View, slot: number): number {
  return view.cells[slotAt(view, slot) + DS.phase];
}

function enter(view: View, slot: number, phase: number): void {
  view.cells[slotAt(view, slot) + DS.phase] = phase;
}

function isForMe(view: View, event: Int32Array): boolean {
  return event[E.to] === view.cells[view.at + DH.incarnation];
}

function onStart(view: View, slot: number, event: Int32Array, out: Out): void {
  if (!isForMe(view, event)) return;
  const at = slotAt(view, slot);
  const known = view.cells[at + DS.attempt];
  if (event[E.attempt] < known) return;
  const isIdle = view.cells[at + DS.phase] === DecodePhase.idle;
  const again = isIdle && deviates(view, FAULT['retry-keeps-attempt'], GUARD.lease);
  if (event[E.attempt] === known && !again) return repeat(view, slot, out);
  if (!isIdle) return;
  const { cells } = view;
  cells.fill(0, at, at + view.shape.slotWidth);
  cells[at + DS.attempt] = event[E.attempt];
  cells[at + DS.tenant] = event[E.tenant];
  cells[at + DS.salt] = event[E.salt];
  cells[at + DS.room] = event[E.room];
  cells[at + DS.tokens] = event[E.tokens];
  cells[at + DS.promptPages] = event[E.promptPages];
  cells[at + DS.pages] = event[E.pages];
  enter(view, slot, DecodePhase.waiting);
  if (!fits(view, event[E.promptPages], event[E.pages])) {
    if (guarded(view, GUARD.rejection)) guardHit(out, GUARD.rejection, slot);
    close(view, slot, Result.refused, out);
  }
}

/** The gateway asks again: the last word that it may have missed. */
function repeat(view: View, slot: number, out: Out): void {
  switch (phaseOf(view, slot)) {
    case DecodePhase.idle:
      return sendClosed(view, slot, out);
    case DecodePhase.decoding:
    case DecodePhase.reading:
      return sendStarted(view, slot, out);
    case DecodePhase.draining:
      return sendFailing(view, slot, out);
  }
}

function onHit(view: View, slot: number, event: Int32Array, out: Out): void {
  const at = slotAt(view, slot);
  if (event[E.attempt] !== view.cells[at + DS.attempt] || phaseOf(view, slot) !== DecodePhase.waiting) return;
  const placesMax = view.cells[at + DS.promptPages];
  takePrefix(view, listAt(view, slot, 0), placesMax, at + DS.prefix, at + DS.tenant, at + DS.salt, event, out);
  view.cells[at + DS.held] = view.cells[at + DS.prefix];
}

/**
 * With free pages for the prompt and all of the output, and only then, the slot gets its lease. A slot that has to wait lets go of
 * its prefix: slots that hold some pages and wait for more could wait for each other for ever.
 */
function onAdmit(view: View, slot: number, event: Int32Array, out: Out): void {
  const { cells } = view;
  const at = slotAt(view, slot);
  if (event[E.attempt] !== cells[at + DS.attempt] || phaseOf(view, slot) !== DecodePhase.waiting) return;
  const prefix = cells[at + DS.prefix];
  const wanted = cells[at + DS.pages];
  const list = listAt(view, slot, 0);
  if (freeCount(view) < wanted - prefix) {
    dropPrefix(view, list, prefix);
    cells[at + DS.held] = 0;
    cells[at + DS.prefix] = 0;
    return;
  }
  for (let place = prefix; place < wanted; place++) cells[list + place] = takePage(view, slot);
  cells[at + DS.held] = wanted;
  cells[at + DS.peer] = cells[view.at + DH.prefillIncarnation];
  enter(view, slot, DecodePhase.leased);
  sendLease(view, slot, out);
}

/** A handle names pages (page, epoch). Only the fault honours it: a lease alone authorises, and a handle is none. */
function onAttach(view: View, slot: number, event: Int32Array, out: Out): void {
  const { cells } = view;
  const at = slotAt(view, slot);
  if (event[E.attempt] !== cells[at + DS.attempt] || phaseOf(view, slot) !== DecodePhase.waiting) return;
  release(view, slot, null, out);
  if (!deviates(view, FAULT['stale-handle'], GUARD.lease)) {
    guardHit(out, GUARD.lease, slot);
    return close(view, slot, Result.badLease, out);
  }
  const list = listAt(view, slot, 0);
  const count = Math.min(event[E.count], view.shape.pagesPerSlot);
  for (let place = 0; place < count; place++) cells[list + place] = event[E.list + 2 * place];
  cells[at + DS.attached] = 1;
  cells[at + DS.held] = count;
  cells[at + DS.completed] = cells[at + DS.tokens];
  cells[at + DS.peer] = cells[view.at + DH.prefillIncarnation];
  commit(view, slot, out);
}

/**
 * Whose slot a message of prefill is about; -1: nobody's. A message speaks for a slot only under its attempt, its room and the
 * incarnation that the lease was given to.
 */
function slotFor(view: View, event: Int32Array): number {
  if (!isForMe(view, event)) return -1;
  const slot = event[E.slot];
  if (deviates(view, FAULT['room-collision'], GUARD.lease)) return firstInRoom(view, event[E.room]);
  const at = slotAt(view, slot);
  const { cells } = view;
  if (event[E.attempt] !== cells[at + DS.attempt]) return -1;
  if (!guarded(view, GUARD.lease)) return slot;
  if (cells[at + DS.phase] !== DecodePhase.idle && cells[at + DS.phase] !== DecodePhase.waiting) {
    if (event[E.from] !== cells[at + DS.peer]) return -1;
    if (event[E.room] !== cells[at + DS.room] && event[E.kind] === EventKind.complete) {
      return -1;
    }
  }
  return slot;
}

/** The fault: the first slot in transfer that has the room, whoever it belongs to. */
function firstInRoom(view: View, room: number): number {
  for (let slot = 0; slot < view.shape.slots; slot++) {
    const at = slotAt(view, slot);
    const phase = view.cells[at + DS.phase];
    if ((phase === DecodePhase.leased || phase === DecodePhase.draining) && view.cells[at + DS.room] === room)
      return slot;
  }
  return -1;
}

/** Prefill's writes have all landed; `tokens` is what it says it wrote. */
function onComplete(view: View, slot: number, event: Int32Array, out: Out): void {
  if (slot < 0) return answerOlder(view, event, out);
  const at = slotAt(view, slot);
  const phase = phaseOf(view, slot);
  if (phase === DecodePhase.decoding || phase === DecodePhase.reading)
    return sendPrefill(view, slot, EventKind.committed, out);
  if (phase === DecodePhase.idle) {
    const isCommitted = view.cells[at + DS.result] === Result.finished;
    return answer(view, event, isCommitted ? EventKind.committed : EventKind.drain, out);
  }
  if (phase !== DecodePhase.leased) return;
  view.cells[at + DS.completed] = event[E.tokens];
  if (event[E.tokens] !== view.cells[at + DS.tokens] && guarded(view, GUARD.count)) {
    guardHit(out, GUARD.count, slot);
    return drop(view, slot, Result.badCount, out);
  }
  enter(view, slot, DecodePhase.verifying);
  emit(out, EffectKind.verify, 0, slot);
}

/**
 * Prefill still waits to hear of an attempt that is over here. Nobody else can tell it: the gateway may have counted the attempt as
 * closed by prefill's restart, after which prefill took its lease all the same.
 */
function answerOlder(view: View, event: Int32Array, out: Out): void {
  if (!isForMe(view, event)) return;
  if (event[E.attempt] < view.cells[slotAt(view, event[E.slot]) + DS.attempt])
    answer(view, event, EventKind.drain, out);
}

/** The runner has compared tags and checksums of the prompt's pages. */
function onVerified(view: View, slot: number, event: Int32Array, out: Out): void {
  if (event[E.attempt] !== view.cells[slotAt(view, slot) + DS.attempt]) return;
  if (phaseOf(view, slot) !== DecodePhase.verifying) return;
  if ((event[E.code] & Verdict.badTag) !== 0 && guarded(view, GUARD.tag)) {
    guardHit(out, GUARD.tag, slot);
    return drop(view, slot, Result.badTag, out);
  }
  if ((event[E.code] & Verdict.badChecksum) !== 0 && guarded(view, GUARD.checksum)) {
    guardHit(out, GUARD.checksum, slot);
    return drop(view, slot, Result.badChecksum, out);
  }
  sendPrefill(view, slot, EventKind.committed, out);
  commit(view, slot, out);
}

function commit(view: View, slot: number, out: Out): void {
  enter(view, slot, DecodePhase.decoding);
  emit(out, EffectKind.startDecode, 0, slot);
  sendStarted(view, slot, out);
}

/** One look at the tags of the pages that a step reads: before it reads (`readBegin`), and before its token leaves (`readEnd`). */
function onRead(view: View, slot: number, event: Int32Array, from: number, to: number, out: Out): void {
  if (event[E.attempt] !== view.cells[slotAt(view, slot) + DS.attempt] || phaseOf(view, slot) !== from) return;
  if (event[E.code] !== Verdict.own && guarded(view, GUARD.tag)) {
    guardHit(out, GUARD.tag, slot);
    release(view, slot, null, out);
    return close(view, slot, Result.badTag, out);
  }
  enter(view, slot, to);
}

/** The last token has left. Places that `event` lists as (place, hash) are sealed, the rest go back. */
function onFinish(view: View, slot: number, event: Int32Array, out: Out): void {
  if (event[E.attempt] !== view.cells[slotAt(view, slot) + DS.attempt]) return;
  if (phaseOf(view, slot) !== DecodePhase.decoding) return;
  release(view, slot, event, out);
  close(view, slot, Result.finished, out);
}

function onAbort(view: View, slot: number, event: Int32Array, out: Out): void {
  if (!isForMe(view, event)) return;
  const at = slotAt(view, slot);
  const known = view.cells[at + DS.attempt];
  if (event[E.attempt] < known) return;
  const phase = phaseOf(view, slot);
  if (event[E.attempt] > known) {
    if (phase !== DecodePhase.idle) return;
    // Never seen: closed for good, so that a start that still comes finds it so.
    view.cells.fill(0, at, at + view.shape.slotWidth);
    view.cells[at + DS.attempt] = event[E.attempt];
    view.cells[at + DS.result] = Result.aborted;
  }
  switch (phase) {
    case DecodePhase.idle:
      return sendClosed(view, slot, out);
    case DecodePhase.draining:
      return;
    case DecodePhase.leased:
    case DecodePhase.verifying:
      return drop(view, slot, Result.aborted, out);
    default:
      release(view, slot, null, out);
      return close(view, slot, Result.aborted, out);
  }
}

/** Ends a transfer. The pages wait for the proof that nothing can still land in them. */
function drop(view: View, slot: number, result: number, out: Out): void {
  const at = slotAt(view, slot);
  view.cells[at + DS.result] = result;
  if (deviates(view, FAULT['reuse-before-drain'], GUARD.drain)) {
    release(view, slot, null, out);
    return close(view, slot, result, out);
  }
  enter(view, slot, DecodePhase.draining);
  const list = listAt(view, slot, 0);
  drainPages(view, list, view.cells[at + DS.prefix], view.cells[at + DS.held]);
  if (result !== Result.aborted) sendFailing(view, slot, out);
  sendPrefill(view, slot, EventKind.drain, out);
}

/** Prefill refused: nothing was posted and nothing will be. */
function onReject(view: View, slot: number, out: Out): void {
  if (slot < 0) return;
  const phase = phaseOf(view, slot);
  if (phase === DecodePhase.waiting || phase === DecodePhase.leased || phase === DecodePhase.draining) {
    release(view, slot, null, out);
    close(view, slot, Result.refused, out);
  }
}

/** Nothing that prefill posted for this attempt can still land, and it posts no more. */
function onDrained(view: View, slot: number, out: Out): void {
  if (slot < 0) return;
  const phase = phaseOf(view, slot);
  if (phase !== DecodePhase.leased && phase !== DecodePhase.verifying && phase !== DecodePhase.draining) return;
  const result = view.cells[slotAt(view, slot) + DS.result];
  release(view, slot, null, out);
  close(view, slot, phase === DecodePhase.draining ? result : Result.abandoned, out);
}

/** Prefill lives again: its old incarnation is fenced first, and then, and only then, what it could write to goes back. */
function onPrefillDown(view: View, incarnation: number, out: Out): void {
  const { cells } = view;
  const old = cells[view.at + DH.prefillIncarnation];
  if (incarnation <= old) return;
  cells[view.at + DH.prefillIncarnation] = incarnation;
  if (!deviates(view, FAULT['unfenced-restart'], GUARD.fence)) {
    out.cells[emit(out, EffectKind.revoke, 0, 0) + E.from] = old;
  }
  out.cells[emit(out, EffectKind.register, 0, 0) + E.from] = incarnation;
  for (let slot = 0; slot < view.shape.slots; slot++) {
    const phase = phaseOf(view, slot);
    if (phase !== DecodePhase.leased && phase !== DecodePhase.verifying && phase !== DecodePhase.draining) continue;
    const result = phase === DecodePhase.draining ? cells[slotAt(view, slot) + DS.result] : Result.peerDown;
    release(view, slot, null, out);
    close(view, slot, result, out);
  }
}

function onTimer(view: View, slot: number, out: Out): void {
  const phase = phaseOf(view, slot);
  if (phase === DecodePhase.leased) sendLease(view, slot, out);
  else if (phase === DecodePhase.draining) sendPrefill(view, slot, EventKind.drain, out);
}

/** A drain takes long. That is news for the operators; it is no proof of anything. */
function onTimeout(view: View, slot: number, event: Int32Array, out: Out): void {
  if (phaseOf(view, slot) !== DecodePhase.draining) return;
  if (event[E.attempt] !== view.cells[slotAt(view, slot) + DS.attempt]) return;
  if (deviates(view, FAULT['timeout-authorises-reuse'], GUARD.drain)) {
    const result = view.cells[slotAt(view, slot) + DS.result];
    release(view, slot, null, out);
    return close(view, slot, result, out);
  }
  out.cells[emit(out, EffectKind.alarm, 0, slot) + E.attempt] = event[E.attempt];
}

function close(view: View, slot: number, result: number, out: Out): void {
  view.cells[slotAt(view, slot) + DS.result] = result;
  enter(view, slot, DecodePhase.idle);
  sendClosed(view, slot, out);
}
