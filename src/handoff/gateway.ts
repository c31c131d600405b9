/**
 * The gateway's machine: one slot a request, from submission to the moment when both sides hold nothing of it.
 * Invariant: exactly one terminal result reaches the client. A slot is used again only when prefill and decode have both closed
 * the attempt, so that no message of an old request can speak for a new one by its slot alone.
 */
import { FAULT, GUARD, deviates, faulty, guardHit, guarded } from './rules.js';
import { GH, GS, slotAt, type View } from './layout.js';
import { E, EffectKind, EventKind, emit, type Out, Result } from './messages.js';

export const GatewayPhase = { idle: 0, open: 1, streaming: 2, closing: 3 } as const;
export const GATEWAY_EVENTS = [
  'submit',
  'clientGone',
  'prefillClosed',
  'started',
  'failing',
  'decodeClosed',
  'prefillDown',
  'decodeDown',
  'timer',
] as const;

/** Takes one event, changes the record in place, writes effects. Unknown and stale events change nothing. */
export function stepGateway(view: View, event: Int32Array, out: Out): void {
  const slot = event[E.slot];
  switch (event[E.kind]) {
    case EventKind.submit:
      return onSubmit(view, slot, event, out);
    case EventKind.clientGone:
      return onClientGone(view, slot, out);
    case EventKind.prefillClosed:
      return onPrefillClosed(view, slot, event, out);
    case EventKind.started:
      return onStarted(view, slot, event, out);
    case EventKind.failing:
      if (isCurrent(view, slot, event, GH.decodeIncarnation) && isOpen(view, slot)) end(view, slot, event[E.code], out);
      return;
    case EventKind.decodeClosed:
      return onDecodeClosed(view, slot, event, out);
    case EventKind.prefillDown:
      return onPeerDown(view, event[E.from], GH.prefillIncarnation, GS.prefillClosed, out);
    case EventKind.decodeDown:
      return onPeerDown(view, event[E.from], GH.decodeIncarnation, GS.decodeClosed, out);
    case EventKind.timer:
      return onTimer(view, slot, out);
  }
}

/** Whether tokens of this attempt may go to the client. */
export function isStreaming(view: View, slot: number, attempt: number): boolean {
  const at = slotAt(view, slot);
  return view.cells[at + GS.phase] === GatewayPhase.streaming && view.cells[at + GS.attempt] === attempt;
}

function isOpen(view: View, slot: number): boolean {
  const phase = view.cells[slotAt(view, slot) + GS.phase];
  return phase === GatewayPhase.open || phase === GatewayPhase.streaming;
}

/** A message counts only from the life of the peer, and for the attempt, that the gateway knows. */
function isCurrent(view: View, slot: number, event: Int32Array, incarnation: number): boolean {
  return (
    event[E.from] === view.cells[view.at + incarnation] &&
    event[E.attempt] === view.cells[slotAt(view, slot) + GS.attempt]
  );
}

function enter(view: View, slot: number, phase: number): void {
  view.cells[slotAt(view, slot) + GS.phase] = phase;
}

/** `code` of a submission is the limit in tokens; `from` the attempts allowed after a first one that failed. */
function onSubmit(view: View, slot: number, event: Int32Array, out: Out): void {
  const { cells } = view;
  const at = slotAt(view, slot);
  if (cells[at + GS.phase] !== GatewayPhase.idle) return;
  cells[at + GS.tenant] = event[E.tenant];
  cells[at + GS.salt] = event[E.salt];
  cells[at + GS.room] = faulty(view, FAULT['room-collision']) ? 1 : event[E.room];
  cells[at + GS.tokens] = event[E.tokens];
  cells[at + GS.promptPages] = event[E.promptPages];
  cells[at + GS.pages] = event[E.pages];
  cells[at + GS.retries] = Math.max(event[E.from], 0);
  cells[at + GS.again] = 0;
  cells[at + GS.terminals] = 0;
  cells[at + GS.result] = Result.none;
  if (guarded(view, GUARD.admission) && event[E.tokens] > event[E.code]) {
    guardHit(out, GUARD.admission, slot);
    cells[at + GS.terminals] = 1;
    cells[at + GS.result] = Result.refused;
    out.cells[emit(out, EffectKind.clientEnd, 0, slot) + E.code] = Result.refused;
    emit(out, EffectKind.slotFree, 0, slot);
    return;
  }
  open(view, slot, 1, out);
}

function open(view: View, slot: number, step: number, out: Out): void {
  const at = slotAt(view, slot);
  view.cells[at + GS.attempt] += step;
  view.cells[at + GS.prefillClosed] = 0;
  view.cells[at + GS.decodeClosed] = 0;
  view.cells[at + GS.again] = 0;
  enter(view, slot, GatewayPhase.open);
  send(view, slot, EffectKind.sendDecode, EventKind.start, out);
  send(view, slot, EffectKind.sendPrefill, EventKind.start, out);
}

function send(view: View, slot: number, effect: number, kind: number, out: Out): void {
  const at = slotAt(view, slot);
  const message = emit(out, effect, kind, slot);
  const { cells } = view;
  out.cells[message + E.attempt] = cells[at + GS.attempt];
  out.cells[message + E.to] =
    cells[view.at + (effect === EffectKind.sendPrefill ? GH.prefillIncarnation : GH.decodeIncarnation)];
  if (kind !== EventKind.start) return;
  out.cells[message + E.room] = cells[at + GS.room];
  out.cells[message + E.tokens] = cells[at + GS.tokens];
  out.cells[message + E.promptPages] = cells[at + GS.promptPages];
  out.cells[message + E.pages] = cells[at + GS.pages];
  out.cells[message + E.tenant] = cells[at + GS.tenant];
  out.cells[message + E.salt] = cells[at + GS.salt];
}

/** The client's one terminal result; what is left is to see both sides closed. */
function end(view: View, slot: number, reason: number, out: Out): void {
  const at = slotAt(view, slot);
  // A peer that ends an attempt without saying why has given it up.
  const result = reason === Result.none ? Result.abandoned : reason;
  view.cells[at + GS.terminals]++;
  view.cells[at + GS.result] = result;
  const effect = emit(out, EffectKind.clientEnd, 0, slot);
  out.cells[effect + E.code] = result;
  out.cells[effect + E.attempt] = view.cells[at + GS.attempt];
  close(view, slot, out);
}

/** A failure before the first token: another attempt where one is left, else the client's end. */
function fail(view: View, slot: number, result: number, retryable: boolean, out: Out): void {
  const at = slotAt(view, slot);
  const isFirst = view.cells[at + GS.phase] === GatewayPhase.open;
  if (!retryable || !isFirst || view.cells[at + GS.retries] === 0) return end(view, slot, result, out);
  view.cells[at + GS.retries]--;
  view.cells[at + GS.again] = 1;
  close(view, slot, out);
}

function close(view: View, slot: number, out: Out): void {
  enter(view, slot, GatewayPhase.closing);
  askToClose(view, slot, out);
  settle(view, slot, out);
}

function askToClose(view: View, slot: number, out: Out): void {
  const at = slotAt(view, slot);
  if (view.cells[at + GS.prefillClosed] === 0) send(view, slot, EffectKind.sendPrefill, EventKind.abort, out);
  // The fault: a refusal by prefill is passed on to the client and to nobody else.
  const forgets =
    view.cells[at + GS.result] === Result.refused && deviates(view, FAULT['unannounced-rejection'], GUARD.rejection);
  if (view.cells[at + GS.decodeClosed] === 0 && !forgets) {
    send(view, slot, EffectKind.sendDecode, EventKind.abort, out);
  }
}

function settle(view: View, slot: number, out: Out): void {
  const { cells } = view;
  const at = slotAt(view, slot);
  if (cells[at + GS.phase] !== GatewayPhase.closing) return;
  if (cells[at + GS.prefillClosed] === 0 || cells[at + GS.decodeClosed] === 0) return;
  if (cells[at + GS.again] === 1) {
    open(view, slot, faulty(view, FAULT['retry-keeps-attempt']) ? 0 : 1, out);
    return;
  }
  enter(view, slot, GatewayPhase.idle);
  emit(out, EffectKind.slotFree, 0, slot);
}

function onClientGone(view: View, slot: number, out: Out): void {
  if (isOpen(view, slot)) end(view, slot, Result.aborted, out);
  // A retry that is still being prepared has no client any more.
  else if (view.cells[slotAt(view, slot) + GS.again] === 1) {
    view.cells[slotAt(view, slot) + GS.again] = 0;
    end(view, slot, Result.aborted, out);
  }
}

function onPrefillClosed(view: View, slot: number, event: Int32Array, out: Out): void {
  if (!isCurrent(view, slot, event, GH.prefillIncarnation)) return;
  const at = slotAt(view, slot);
  if (view.cells[at + GS.phase] === GatewayPhase.idle) return;
  view.cells[at + GS.prefillClosed] = 1;
  const result = event[E.code];
  // While the attempt is open only decode has it aborted, and decode's own word gives the reason.
  const isLastWord = result !== Result.finished && result !== Result.aborted;
  if (view.cells[at + GS.phase] === GatewayPhase.open && isLastWord) {
    return fail(view, slot, result, result === Result.peerDown, out);
  }
  settle(view, slot, out);
}

/** `tokens` is decode's count, `code` what prefill said it completed; both must be the gateway's own. */
function onStarted(view: View, slot: number, event: Int32Array, out: Out): void {
  if (!isCurrent(view, slot, event, GH.decodeIncarnation)) return;
  if (view.cells[slotAt(view, slot) + GS.phase] !== GatewayPhase.open) return;
  startStream(view, slot, event[E.tokens], event[E.code], out);
}

/** Lets the answer out, if decode and prefill counted what the gateway counted; else ends the request. */
function startStream(view: View, slot: number, decoded: number, completed: number, out: Out): void {
  const at = slotAt(view, slot);
  const counted = view.cells[at + GS.tokens];
  if ((decoded !== counted || completed !== counted) && guarded(view, GUARD.usage)) {
    guardHit(out, GUARD.usage, slot);
    return end(view, slot, Result.badUsage, out);
  }
  enter(view, slot, GatewayPhase.streaming);
  const effect = emit(out, EffectKind.clientStarted, 0, slot);
  out.cells[effect + E.attempt] = view.cells[at + GS.attempt];
  out.cells[effect + E.tokens] = decoded;
  out.cells[effect + E.code] = completed;
}

/** `code` is how it ended, `tokens` decode's count, `pages` what prefill said it completed. */
function onDecodeClosed(view: View, slot: number, event: Int32Array, out: Out): void {
  if (!isCurrent(view, slot, event, GH.decodeIncarnation)) return;
  const at = slotAt(view, slot);
  if (view.cells[at + GS.phase] === GatewayPhase.idle) return;
  view.cells[at + GS.decodeClosed] = 1;
  const result = event[E.code];
  if (!isOpen(view, slot)) return settle(view, slot, out);
  if (result === Result.finished) {
    // `started` was lost or is late. An answer that nobody saw start passes the same check before it ends.
    if (view.cells[at + GS.phase] === GatewayPhase.open) startStream(view, slot, event[E.tokens], event[E.pages], out);
    if (isOpen(view, slot)) end(view, slot, Result.finished, out);
    return;
  }
  fail(view, slot, result, result === Result.peerDown, out);
}

/** A peer lives again under another incarnation: what its old life held is gone, and so is every attempt that needed it. */
function onPeerDown(view: View, incarnation: number, header: number, closedField: number, out: Out): void {
  const { cells } = view;
  if (incarnation <= cells[view.at + header]) return;
  cells[view.at + header] = incarnation;
  for (let slot = 0; slot < view.shape.slots; slot++) {
    const at = slotAt(view, slot);
    const phase = cells[at + GS.phase];
    if (phase === GatewayPhase.idle) continue;
    cells[at + closedField] = 1;
    const isNeeded =
      phase === GatewayPhase.open || (phase === GatewayPhase.streaming && closedField === GS.decodeClosed);
    if (isNeeded) fail(view, slot, Result.peerDown, true, out);
    else settle(view, slot, out);
  }
}

/** Asks again for what may have been lost. Every message is safe to repeat. */
function onTimer(view: View, slot: number, out: Out): void {
  const at = slotAt(view, slot);
  const phase = view.cells[at + GS.phase];
  if (phase === GatewayPhase.closing) return askToClose(view, slot, out);
  if (phase !== GatewayPhase.open && phase !== GatewayPhase.streaming) return;
  send(view, slot, EffectKind.sendDecode, EventKind.start, out);
  if (view.cells[at + GS.prefillClosed] === 0) send(view, slot, EffectKind.sendPrefill, EventKind.start, out);
}
