/**
 * The world's record: the three machines' own records, then what lies between them. One buffer of words:
 *
 *   gateway | prefill | decode | environment | content of decode's pages | writes on the wire | messages on the wire
 *
 * A page write and the content of a page are one word each, a message is two. Values that do not fit their bits are a scope too large
 * for this model, and an assert says so.
 */
import { assert } from '../../base/assert.js';
import { newView, type Shape, shapeOf, type View } from '../../handoff/layout.js';
import { E, EventKind } from '../../handoff/messages.js';
import type { HandoffScope } from './handoff-scope.js';

export const GATEWAY = 0;
export const PREFILL = 1;
export const DECODE = 2;
/** The part of the record behind the machines: environment, content, wire. */
export const SURROUNDINGS = 3;

/** Cells of the environment; the request of each slot follows. */
export const ENV = {
  aborts: 0,
  losses: 1,
  repeats: 2,
  prefillCrashes: 3,
  decodeCrashes: 4,
  abandons: 5,
  handles: 6,
  tears: 7,
  /** Bit i: incarnation i of prefill may write. */
  registered: 8,
  /** 1: a token left that was computed over a page that was not its own. */
  leaked: 9,
  /** Bit i: request i was submitted. */
  submitted: 10,
  /** Bit i: what slot i reads just now is not all its own. */
  tainted: 11,
  messages: 12,
  writes: 13,
  requestOf: 14,
} as const;

export const PAGES_PER_SLOT = 2;

const wholeWords = (cells: number): number => Math.ceil(cells / 4) * 4;

export class WorldRecord {
  readonly cells: Uint8Array;
  readonly words: Int32Array;
  readonly gateway: View;
  readonly prefill: View;
  readonly decode: View;
  /** Index of the first cell of the environment. */
  readonly env: number;
  /** Indices of the first words of content, writes and messages. */
  readonly content: number;
  readonly writes: number;
  readonly messages: number;
  readonly writesMax: number;
  /** The first word of gateway, prefill, decode and surroundings. */
  readonly parts: readonly number[];

  constructor(scope: HandoffScope) {
    checkScope(scope);
    const { slots, rules, prefixes } = scope;
    const pagesPerSlot = PAGES_PER_SLOT;
    const gateway = shapeOf('gateway', { slots });
    const prefill = shapeOf('prefill', { slots, pages: scope.prefillPages, pagesPerSlot, prefixes });
    const decode = shapeOf('decode', { slots, pages: scope.decodePages, pagesPerSlot, prefixes });
    // Each part begins with a word.
    const prefillAt = wholeWords(gateway.width);
    const decodeAt = prefillAt + wholeWords(prefill.width);
    this.env = decodeAt + wholeWords(decode.width);
    this.parts = [0, prefillAt / 4, decodeAt / 4, this.env / 4];
    this.content = Math.ceil((this.env + ENV.requestOf + slots) / 4);
    this.writes = this.content + scope.decodePages;
    this.writesMax = pagesPerSlot * (slots + scope.prefillCrashes);
    this.messages = this.writes + this.writesMax;
    this.words = new Int32Array(this.messages + 2 * scope.messagesMax);
    this.cells = new Uint8Array(this.words.buffer);
    const view = (shape: Shape, at: number): View => newView(shape, rules, this.cells, at);
    this.gateway = view(gateway, 0);
    this.prefill = view(prefill, prefillAt);
    this.decode = view(decode, decodeAt);
  }
}

function checkScope(scope: HandoffScope): void {
  assert(scope.slots >= 1 && scope.slots <= 3, 'a scope has 1 to 3 slots');
  assert(scope.requests.length >= 1 && scope.requests.length <= 4, 'a scope has 1 to 4 requests');
  assert(scope.prefillPages <= 7 && scope.decodePages <= 7, 'a pool of a scope has at most 7 pages');
  assert(
    scope.requests.every(({ pages, tenant }) => pages >= 1 && pages <= PAGES_PER_SLOT && tenant >= 1 && tenant <= 3),
    'a request of a scope has 1 or 2 pages and a tenant from 1 to 3',
  );
  assert(scope.messagesMax >= 1 && scope.messagesMax <= 16, 'the wire of a scope holds 1 to 16 messages');
  assert(scope.prefillCrashes <= 3 && scope.decodeCrashes <= 3, 'a node of a scope restarts at most 3 times');
}

/** A word of content or of a write, by bits: slot 2, attempt 4, place 2, epoch 5, page 3, prefill's and decode's incarnation 3 each. */
const ATTEMPT_SHIFT = 2;
const PLACE_SHIFT = 6;
const EPOCH_SHIFT = 8;
const PAGE_SHIFT = 13;
const PREFILL_SHIFT = 16;
const DECODE_SHIFT = 19;
const OWNER_MASK = (1 << PAGE_SHIFT) - 1;
/** Set in every word that is in use. */
const USED = 1 << 22;
/** The header landed and the payload did not. */
export const TORN: number = 1 << 23;
/** A sealed prefix page: tenant 2 bits, hash 4 bits from bit 0, and whether it holds what the hash says. */
export const SEALED: number = 1 << 24;
export const SPOILT: number = 1 << 25;

/** What a page of the slot must hold to be its own; also what lands there. */
export function contentOf(slot: number, attempt: number, place: number, epoch: number): number {
  assert(attempt < 16 && epoch < 32, 'a scope has fewer than 16 attempts a slot and 32 uses of a page');
  return USED | slot | (attempt << ATTEMPT_SHIFT) | (place << PLACE_SHIFT) | (epoch << EPOCH_SHIFT);
}

export function sealedContent(tenant: number, hash: number): number {
  return USED | SEALED | tenant | (hash << 2);
}

export const sealedTenant = (content: number): number => content & 3;

export function writeOf(content: number, page: number, prefill: number, decode: number): number {
  return content | (page << PAGE_SHIFT) | (prefill << PREFILL_SHIFT) | (decode << DECODE_SHIFT);
}

/** The word of a sealed page under other names of the tenants; any other word as it is. */
export function mapTenant(content: number, tenant: readonly number[]): number {
  return (content & SEALED) === 0 ? content : (content & ~3) | tenant[content & 3];
}

/** A write under other names of decode's pages. */
export function mapPage(write: number, names: Int8Array): number {
  return (write & ~(7 << PAGE_SHIFT)) | (names[(write >> PAGE_SHIFT) & 7] << PAGE_SHIFT);
}

export const writtenContent = (write: number): number => (write & OWNER_MASK) | USED;
export const ownerSlot = (word: number): number => word & 3;
export const ownerAttempt = (word: number): number => (word >> ATTEMPT_SHIFT) & 15;
export const ownerPlace = (word: number): number => (word >> PLACE_SHIFT) & 3;
export const ownerEpoch = (word: number): number => (word >> EPOCH_SHIFT) & 31;
export const writePage = (write: number): number => (write >> PAGE_SHIFT) & 7;
export const writePrefill = (write: number): number => (write >> PREFILL_SHIFT) & 7;
export const writeDecode = (write: number): number => (write >> DECODE_SHIFT) & 7;

/** `start` and `abort` go to both nodes; the copies for decode have numbers of their own on the wire. */
const START_TO_DECODE = 30;
const ABORT_TO_DECODE = 31;
const PAIR_PAGE_BITS = 3;

const FIRST_WORD_FITS = 16;

/** First word of a message: kind 5 bits, slot 3, attempt 4, from 4, to 4, room 4, count 2. `at` is its first cell. */
export function packFirst(message: Int32Array, at: number, target: number): number {
  const attempt = message[at + E.attempt];
  assert(attempt < FIRST_WORD_FITS, 'a scope has fewer than 16 attempts a slot');
  let kind = message[at + E.kind];
  if (target === DECODE) {
    if (kind === EventKind.start) kind = START_TO_DECODE;
    else if (kind === EventKind.abort) kind = ABORT_TO_DECODE;
  }
  return (
    kind |
    (message[at + E.slot] << 5) |
    (attempt << 8) |
    (message[at + E.from] << 12) |
    (message[at + E.to] << 16) |
    (message[at + E.room] << 20) |
    (message[at + E.count] << 24)
  );
}

/** Second word: tokens 3 bits, promptPages 2, pages 3, tenant 2, code 4; the pairs of a lease in the upper 16. */
export function packSecond(message: Int32Array, at: number): number {
  return (
    message[at + E.tokens] |
    (message[at + E.promptPages] << 3) |
    (message[at + E.pages] << 5) |
    (message[at + E.tenant] << 8) |
    (message[at + E.code] << 10)
  );
}

export function packPair(index: number, page: number, epoch: number): number {
  assert(epoch < 32, 'a scope has fewer than 32 uses of a page');
  return (page | (epoch << PAIR_PAGE_BITS)) << (16 + 8 * index);
}

/** Writes the message into `event` and returns whom it is for. A salt is its tenant's number. */
export function unpack(first: number, second: number, event: Int32Array): number {
  let kind = first & 31;
  let target = targetOf(kind);
  if (kind === START_TO_DECODE) kind = EventKind.start;
  else if (kind === ABORT_TO_DECODE) kind = EventKind.abort;
  if (kind !== (first & 31)) target = DECODE;
  const count = (first >>> 24) & 3;
  event[E.kind] = kind;
  event[E.slot] = (first >>> 5) & 7;
  event[E.attempt] = (first >>> 8) & 15;
  event[E.from] = (first >>> 12) & 15;
  event[E.to] = (first >>> 16) & 15;
  event[E.room] = (first >>> 20) & 15;
  event[E.tokens] = second & 7;
  event[E.promptPages] = (second >>> 3) & 3;
  event[E.pages] = (second >>> 5) & 7;
  event[E.tenant] = (second >>> 8) & 3;
  event[E.salt] = (second >>> 8) & 3;
  event[E.code] = (second >>> 10) & 15;
  event[E.count] = count;
  for (let i = 0; i < count; i++) {
    const pair = second >>> (16 + 8 * i);
    event[E.list + 2 * i] = pair & 7;
    event[E.list + 2 * i + 1] = (pair >>> PAIR_PAGE_BITS) & 31;
  }
  return target;
}

function targetOf(kind: number): number {
  if (kind >= EventKind.prefillClosed && kind <= EventKind.decodeClosed) return GATEWAY;
  return kind >= EventKind.complete && kind <= EventKind.drained ? DECODE : PREFILL;
}
