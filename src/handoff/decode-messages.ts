/** What decode says to prefill and to the gateway, each message filled from its record. */
import { DH, DS, listAt, PG, pageAt, slotAt, type View } from './layout.js';
import { E, EffectKind, EventKind, emit, lastMessage, type Out } from './messages.js';

export function sendLease(view: View, slot: number, out: Out): void {
  const at = slotAt(view, slot);
  sendPrefill(view, slot, EventKind.lease, out);
  const message = lastMessage(out);
  out.cells[message + E.tokens] = view.cells[at + DS.tokens];
  out.cells[message + E.promptPages] = view.cells[at + DS.promptPages];
  out.cells[message + E.pages] = view.cells[at + DS.pages];
  out.cells[message + E.tenant] = view.cells[at + DS.tenant];
  out.cells[message + E.salt] = view.cells[at + DS.salt];
  // The runner appends the (page, epoch) pairs of the prompt's places behind the prefix: `leaseList`.
  out.cells[message + E.code] = view.cells[at + DS.prefix];
  out.cells[message + E.count] = view.cells[at + DS.promptPages] - view.cells[at + DS.prefix];
}

/**
 * Writes the (page, epoch) pairs of a slot's prompt places behind a lease message; what the runner sends. Prefix pages are left out:
 * they have other readers, so nobody may write them.
 */
export function leaseList(view: View, slot: number, message: Int32Array, at: number): void {
  const list = listAt(view, slot, 0);
  const prefix = view.cells[slotAt(view, slot) + DS.prefix];
  const last = view.cells[slotAt(view, slot) + DS.promptPages];
  for (let place = prefix; place < last; place++) {
    const page = view.cells[list + place];
    const pair = at + 2 * (place - prefix);
    message[pair] = page;
    message[pair + 1] = view.cells[pageAt(view, page) + PG.epoch];
  }
}

export function sendPrefill(view: View, slot: number, kind: number, out: Out): void {
  const at = slotAt(view, slot);
  const message = emit(out, EffectKind.sendPrefill, kind, slot);
  out.cells[message + E.attempt] = view.cells[at + DS.attempt];
  out.cells[message + E.from] = view.cells[view.at + DH.incarnation];
  out.cells[message + E.to] = view.cells[at + DS.peer];
  out.cells[message + E.room] = view.cells[at + DS.room];
}

export function sendGateway(view: View, slot: number, kind: number, code: number, out: Out): void {
  const at = slotAt(view, slot);
  const message = emit(out, EffectKind.sendGateway, kind, slot);
  out.cells[message + E.attempt] = view.cells[at + DS.attempt];
  out.cells[message + E.from] = view.cells[view.at + DH.incarnation];
  out.cells[message + E.tokens] = view.cells[at + DS.tokens];
  out.cells[message + E.code] = code;
}

export function sendStarted(view: View, slot: number, out: Out): void {
  sendGateway(view, slot, EventKind.started, view.cells[slotAt(view, slot) + DS.completed], out);
}

export function sendFailing(view: View, slot: number, out: Out): void {
  sendGateway(view, slot, EventKind.failing, view.cells[slotAt(view, slot) + DS.result], out);
}

export function sendClosed(view: View, slot: number, out: Out): void {
  const at = slotAt(view, slot);
  sendGateway(view, slot, EventKind.decodeClosed, view.cells[at + DS.result], out);
  out.cells[lastMessage(out) + E.pages] = view.cells[at + DS.completed];
}

/** Answers whoever sent the message, about the attempt that it speaks of. */
export function answer(view: View, event: Int32Array, kind: number, out: Out): void {
  sendPrefill(view, event[E.slot], kind, out);
  const message = lastMessage(out);
  out.cells[message + E.attempt] = event[E.attempt];
  out.cells[message + E.to] = event[E.from];
}
