/**
 * Events, messages and effects as fixed-width runs of integers. A message that one actor sends is the event that another gets.
 * The control wire may lose, repeat and reorder messages; nothing here relies on its order.
 */
import { assert } from '../base/assert.js';

/** Cells of an event (and of the message inside an effect). `list` pairs follow where `count` is above zero. */
export const E = {
  kind: 0,
  slot: 1,
  attempt: 2,
  /** Incarnation of the sender; 0 from the gateway. */
  from: 3,
  /** Incarnation of the receiver, as the sender knows it. */
  to: 4,
  room: 5,
  tokens: 6,
  /** `promptPages` of a start or lease; the first place of a `post`. */
  promptPages: 7,
  /** Pages of prompt and output; pages of a chunk, of settled writes, of a `post`; in `decodeClosed` the tokens that prefill completed. */
  pages: 8,
  tenant: 9,
  salt: 10,
  /** A `Result`, a count or a verdict, as the kind says; in a lease the first places that decode has already and that nobody writes. */
  code: 11,
  /** Pairs (page, epoch), or (page, hash), or (place, hash), behind the fixed cells. */
  count: 12,
  list: 13,
} as const;

export const EVENT_FIXED_WIDTH = 13;

/** Kinds of events. Each actor's machine names the ones it takes; the numbers are shared, so a log can be read without knowing whose. */
export const EventKind = {
  // The gateway's own
  submit: 1,
  clientGone: 2,
  // Gateway -> prefill and decode
  start: 3,
  abort: 4,
  // Decode -> prefill
  lease: 5,
  drain: 6,
  committed: 7,
  // Prefill -> decode
  complete: 8,
  reject: 9,
  drained: 10,
  // Prefill -> gateway
  prefillClosed: 11,
  // Decode -> gateway
  started: 12,
  failing: 13,
  decodeClosed: 14,
  // Supervisor -> everyone: the peer is back under a new incarnation (in `from`)
  prefillDown: 15,
  decodeDown: 16,
  // Local to prefill
  admit: 17,
  chunk: 18,
  settled: 19,
  abandon: 20,
  // Local to decode
  verified: 21,
  readBegin: 22,
  readEnd: 23,
  finish: 24,
  // Local to both pools
  hit: 25,
  evict: 26,
  // Time: ask again; raise an alarm
  timer: 27,
  timeout: 28,
  // A request that names pages by a handle instead of having them transferred
  attach: 29,
} as const;

export type EventKindName = keyof typeof EventKind;

/** How an attempt ended; also the reason in `failing`. */
export const Result = {
  none: 0,
  finished: 1,
  /** Too long for a pool or refused by admission: the original error. */
  refused: 2,
  aborted: 3,
  /** No pages and no place to wait. */
  noCapacity: 4,
  /** The count that prefill completed is not what was admitted. */
  badCount: 5,
  badTag: 6,
  badChecksum: 7,
  /** A handle, lease or attempt that is not this request's. */
  badLease: 8,
  /** Prefill's own count is not the gateway's. */
  badUsage: 9,
  peerDown: 10,
  /** Prefill gave up by itself. */
  abandoned: 11,
} as const;

export type ResultName = keyof typeof Result;

/** Effects, carried out by the runner in the order written. Cells behind the code are laid out like an event. */
export const EffectKind = {
  sendGateway: 1,
  sendPrefill: 2,
  sendDecode: 3,
  /** The client's first token may leave. */
  clientStarted: 4,
  /** The client's one terminal result: `code`. */
  clientEnd: 5,
  /** Both sides hold nothing of the slot any more. */
  slotFree: 6,
  /** Post the pages of places [promptPages, promptPages + pages) to the wire. */
  post: 7,
  /** Compare count, tags and checksums of the slot's prompt pages; answer with `verified`. */
  verify: 8,
  startDecode: 9,
  /** Revoke the registration of incarnation `from`: nothing it posted can land after this. */
  revoke: 10,
  register: 11,
  /** A sealed page's tag is to be written: page in `pages`, hash in `code`. */
  seal: 12,
  /** A guard stopped something: its index in `code`. */
  guardHit: 13,
  /** Draining for too long. Raises a finding, never a release. */
  alarm: 14,
  /** Pages of the slot went back to the free list. */
  pagesFreed: 15,
} as const;

export type EffectKindName = keyof typeof EffectKind;

export const EFFECT_WIDTH: number = 1 + EVENT_FIXED_WIDTH;
/** The most effects that one step writes: `peerDown` writes a few a slot, sealing one a page of the slot. */
export const effectsMax = (slots: number, pagesPerSlot = 0): number => 4 + 4 * slots + pagesPerSlot;

/** Where a step writes its effects; owned by the caller, emptied by it (`length = 0`). */
export interface Out {
  readonly cells: Int32Array;
  /** Effects written. */
  length: number;
}

/** Room for the effects of one step. `pagesPerSlot` is needed only where pages are sealed. */
export function newOut(slots: number, pagesPerSlot = 0): Out {
  return { cells: new Int32Array(effectsMax(slots, pagesPerSlot) * EFFECT_WIDTH), length: 0 };
}

/** Appends an effect and returns the index of its first message cell (all zero). */
export function emit(out: Out, effect: number, kind: number, slot: number): number {
  const at = out.length * EFFECT_WIDTH;
  // A typed array swallows writes behind its end: an effect would be lost without a word.
  assert(at + EFFECT_WIDTH <= out.cells.length, 'one step wrote more effects than its buffer holds');
  for (let i = 0; i < EFFECT_WIDTH; i++) out.cells[at + i] = 0;
  out.cells[at] = effect;
  out.cells[at + 1 + E.kind] = kind;
  out.cells[at + 1 + E.slot] = slot;
  out.length++;
  return at + 1;
}

/** Index of the first message cell of the effect written last. */
export function lastMessage(out: Out): number {
  return (out.length - 1) * EFFECT_WIDTH + 1;
}

const EVENT_NAMES: readonly string[] = namesByNumber(EventKind);
const EFFECT_NAMES: readonly string[] = namesByNumber(EffectKind);
const RESULT_NAMES: readonly string[] = namesByNumber(Result);

function namesByNumber(table: Readonly<Record<string, number>>): string[] {
  const names: string[] = [];
  for (const [name, number] of Object.entries(table)) names[number] = name;
  return names;
}

export const eventName = (kind: number): string => EVENT_NAMES[kind] ?? `event ${kind}`;
export const effectName = (kind: number): string => EFFECT_NAMES[kind] ?? `effect ${kind}`;
export const resultName = (result: number): string => RESULT_NAMES[result] ?? `result ${result}`;

/** A message event in words, for traces and failures. */
export function eventInWords(event: Int32Array, at = 0): string {
  const parts = [eventName(event[at + E.kind]), `slot ${event[at + E.slot]}`];
  if (event[at + E.attempt] !== 0) parts.push(`attempt ${event[at + E.attempt]}`);
  if (event[at + E.tokens] !== 0) parts.push(`tokens ${event[at + E.tokens]}`);
  if (event[at + E.code] !== 0) parts.push(`code ${event[at + E.code]}`);
  return parts.join(' ');
}
