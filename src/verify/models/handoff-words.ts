/** The world's actions and actors in words. */
import { E, EVENT_FIXED_WIDTH, EventKind, eventName, resultName } from '../../handoff/messages.js';
import { ACTION_INDEX_MAX } from '../model.js';
import { A, ACTION_NAMES } from './handoff-actions.js';
import {
  ENV,
  ownerAttempt,
  ownerPlace,
  ownerSlot,
  PAGES_PER_SLOT,
  unpack,
  type WorldRecord,
  writePage,
  writePrefill,
} from './handoff-record.js';

export type Lane = 'client' | 'gateway' | 'prefill' | 'decode';
export const MACHINES: readonly Lane[] = ['gateway', 'prefill', 'decode'];

/** One action, told in the state before it. `from` and `to` are the same where somebody acts alone. */
export interface Telling {
  readonly words: string;
  readonly from: Lane;
  readonly to: Lane;
  /** For the arrow of a diagram. */
  readonly label: string;
  readonly isLost: boolean;
  readonly isWrite: boolean;
  /** The slot that it is about; -1: none. */
  readonly slot: number;
}

/** The name of a request by its slot and attempt. */
export type NameOf = (slot: number, attempt: number) => string;

const told = (
  words: string,
  from: Lane,
  to: Lane,
  label: string,
  slot: number,
  more: Partial<Telling> = {},
): Telling => ({
  words,
  from,
  to,
  label,
  slot,
  isLost: false,
  isWrite: false,
  ...more,
});

export const letterOf = (request: number): string => String.fromCharCode(65 + request);

/** What the action does, with the actors' names. */
export function tell(record: WorldRecord, action: number, nameOf: NameOf): Telling {
  const kind = (action / ACTION_INDEX_MAX) | 0;
  const index = action % ACTION_INDEX_MAX;
  const requestIn = (slot: number): string => letterOf(record.cells[record.env + ENV.requestOf + slot]);
  switch (kind) {
    case A.deliver:
    case A.repeat:
    case A.lose:
      return tellMessage(record, kind, index, nameOf);
    case A.land:
    case A.tear:
      return tellWrite(record, kind === A.tear, index, nameOf);
    case A.submit: {
      const name = letterOf(index);
      return told(`the client of ${name} submits it`, 'client', 'gateway', `submit ${name}`, -1);
    }
    case A.clientGone:
      return told(`the client of ${requestIn(index)} leaves`, 'client', 'gateway', `${requestIn(index)} leaves`, index);
    case A.prefillHit:
    case A.decodeHit:
    case A.attach: {
      const lane = kind === A.prefillHit ? 'prefill' : 'decode';
      const name = requestIn(index >> 3);
      const what = kind === A.attach ? `is given page ${index & 7} by a handle` : `is offered sealed page ${index & 7}`;
      return told(`${name} ${what} in ${lane}`, lane, lane, `${name}: page ${index & 7}?`, index >> 3);
    }
    default:
      return tellLocal(kind, index, requestIn);
  }
}

const LOCAL: Readonly<Record<number, readonly [Lane, string, string]>> = {
  [A.prefillAdmit]: ['prefill', 'prefill takes pages of its own for', 'takes pages'],
  [A.compute]: ['prefill', 'prefill computes and posts a page of', 'posts a page'],
  [A.abandon]: ['prefill', 'prefill gives up', 'gives up'],
  [A.decodeAdmit]: ['decode', 'decode looks for pages for', 'leases'],
  [A.verify]: ['decode', 'decode compares tags and checksums of', 'verifies'],
  [A.readBegin]: ['decode', 'decode begins to read the pages of', 'reads'],
  [A.readEnd]: ['decode', 'decode ends its read and a token leaves for', 'token leaves'],
  [A.finish]: ['decode', 'decode has made the last token of', 'finishes'],
  [A.gatewayTimer]: ['gateway', 'the gateway asks again about', 'asks again'],
  [A.prefillTimer]: ['prefill', 'prefill asks again about', 'asks again'],
  [A.decodeTimer]: ['decode', 'decode asks again about', 'asks again'],
  [A.timeout]: ['decode', 'the drain takes too long for', 'timeout'],
};

const WHOLE: Readonly<Record<number, readonly [Lane, string]>> = {
  [A.prefillRestart]: ['prefill', 'prefill restarts'],
  [A.decodeRestart]: ['decode', 'decode restarts'],
  [A.gatewayLearnsPrefill]: ['gateway', 'the gateway learns of the new prefill'],
  [A.gatewayLearnsDecode]: ['gateway', 'the gateway learns of the new decode'],
  [A.decodeLearnsPrefill]: ['decode', 'decode learns of the new prefill'],
  [A.prefillLearnsDecode]: ['prefill', 'prefill learns of the new decode'],
};

function tellLocal(kind: number, index: number, requestIn: (slot: number) => string): Telling {
  const local = LOCAL[kind];
  if (local !== undefined) {
    const [lane, words, label] = local;
    return told(`${words} ${requestIn(index)}`, lane, lane, `${requestIn(index)} ${label}`, index);
  }
  const whole = WHOLE[kind];
  if (whole !== undefined) return told(whole[1], whole[0], whole[0], whole[1].replace(/^the \w+ |^\w+ /, ''), -1);
  const lane = kind === A.prefillEvict ? 'prefill' : 'decode';
  return told(`${ACTION_NAMES[kind]}: page ${index}`, lane, lane, `evicts ${index}`, -1);
}

function senderOf(kind: number): Lane {
  if (kind === EventKind.start || kind === EventKind.abort) return 'gateway';
  if (kind >= EventKind.complete && kind <= EventKind.prefillClosed) return 'prefill';
  return 'decode';
}

function tellMessage(record: WorldRecord, kind: number, index: number, nameOf: NameOf): Telling {
  const event = new Int32Array(EVENT_FIXED_WIDTH + 2 * PAGES_PER_SLOT);
  const at = record.messages + 2 * index;
  const to = MACHINES[unpack(record.words[at], record.words[at + 1], event)];
  const from = senderOf(event[E.kind]);
  const slot = event[E.slot];
  const name = nameOf(slot, event[E.attempt]);
  const of = event[E.attempt] > 1 ? `${name}, attempt ${event[E.attempt]}` : name;
  const what = `"${eventName(event[E.kind])}" of ${of}${details(event)}`;
  const label = `${eventName(event[E.kind])} ${name}`;
  if (kind === A.lose) return told(`the wire loses ${what} to ${to}`, from, to, label, slot, { isLost: true });
  const stays = kind === A.repeat ? '; a copy stays on the wire' : '';
  return told(`${to} gets ${what}${stays}`, from, to, label, slot);
}

function details(event: Int32Array): string {
  const parts: string[] = [];
  if (event[E.kind] === EventKind.complete) parts.push(`${event[E.tokens]} tokens`);
  if (event[E.kind] === EventKind.lease) {
    for (let i = 0; i < event[E.count]; i++) parts.push(`page ${event[E.list + 2 * i]}`);
  }
  const hasResult =
    event[E.kind] === EventKind.prefillClosed ||
    event[E.kind] === EventKind.decodeClosed ||
    event[E.kind] === EventKind.failing;
  if (hasResult) parts.push(resultName(event[E.code]));
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`;
}

function tellWrite(record: WorldRecord, torn: boolean, index: number, nameOf: NameOf): Telling {
  const write = record.words[record.writes + index];
  const name = nameOf(ownerSlot(write), ownerAttempt(write));
  const page = writePage(write);
  const isRegistered = ((record.cells[record.env + ENV.registered] >> writePrefill(write)) & 1) === 1;
  const how = isRegistered ? (torn ? 'lands torn' : 'lands') : 'fails, its registration is revoked';
  const words = `the write of place ${ownerPlace(write)} of ${name} to page ${page} of decode ${how}`;
  return told(words, 'prefill', 'decode', `page ${page} of ${name}`, -1, { isWrite: true, isLost: !isRegistered });
}
