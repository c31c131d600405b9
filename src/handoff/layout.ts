/**
 * The one schema of the protocol's records. A record is a run of small integers in a typed array that the caller owns:
 * header, then slots, then pages. No objects, strings or maps: the same record is what a worker keeps (`Int32Array`) and what
 * the model checker stores by the million (`Uint8Array`). Rooms, prompts and 63-bit ids stay outside; actors hold indices.
 *
 *   gateway  | header | slot 0 … slot S-1 |
 *   prefill  | header | slot 0 … (source, target, epoch lists) | page 0 … page N-1 |
 *   decode   | header | slot 0 … (page list)                   | page 0 … page N-1 |
 */
import { assert } from '../base/assert.js';

export type Cells = Uint8Array | Int32Array;
export type Actor = 'gateway' | 'prefill' | 'decode';

/** What is switched: bit sets of `FAULTS` and `GUARDS`. Constant during a run, so it is not part of the state. */
export interface Rules {
  readonly faults: number;
  readonly guards: number;
}

type Index<Names extends readonly string[]> = { readonly [Name in Names[number]]: number };

function indexOf<const Names extends readonly string[]>(names: Names): Index<Names> {
  const index: Record<string, number> = {};
  for (const [at, name] of names.entries()) index[name] = at;
  return Object.freeze(index) as Index<Names>;
}

export const GATEWAY_HEADER_FIELDS = ['prefillIncarnation', 'decodeIncarnation'] as const;
export const GATEWAY_SLOT_FIELDS = [
  'phase',
  /** Counts uses of the slot, retries included; never goes back. */
  'attempt',
  'tenant',
  'salt',
  'room',
  /** Prompt tokens as the gateway counted them. */
  'tokens',
  /** Pages of the prompt, and of prompt and output together. */
  'promptPages',
  'pages',
  /** Attempts still allowed after this one fails. */
  'retries',
  'prefillClosed',
  'decodeClosed',
  /** 1: this attempt failed and another follows when both sides are closed. */
  'again',
  /** Invariant: at most one terminal result reaches the client. Counts those of the request in the slot. */
  'terminals',
  /** The `Result` that the client got, 0 while it has none. */
  'result',
] as const;

export const PREFILL_HEADER_FIELDS = ['incarnation', 'decodeIncarnation', 'freeHead', 'freeCount'] as const;
export const PREFILL_SLOT_FIELDS = [
  'phase',
  'attempt',
  'tenant',
  'salt',
  'room',
  'tokens',
  'promptPages',
  /** Decode's incarnation that leased; 0: no lease known. */
  'peer',
  /** Pages of this pool that the slot holds; the first `prefix` of them are sealed and shared. */
  'held',
  'prefix',
  /** Places written to the wire. Invariant: settled <= posted <= promptPages. */
  'posted',
  'settled',
  /** The attempt's last word, for whoever asks again: a `Result`. */
  'result',
] as const;
/** Lists behind a prefill slot, `pagesPerSlot` cells each. */
export const PREFILL_SLOT_LISTS = ['source', 'target', 'epoch'] as const;

export const DECODE_HEADER_FIELDS = ['incarnation', 'prefillIncarnation', 'freeHead', 'freeCount'] as const;
export const DECODE_SLOT_FIELDS = [
  'phase',
  'attempt',
  'tenant',
  'salt',
  'room',
  'tokens',
  'promptPages',
  'pages',
  'held',
  'prefix',
  /** Prefill's incarnation that the lease was given to. */
  'peer',
  /** Tokens that prefill said it completed. */
  'completed',
  /** 1: the pages were named by a handle and are not this slot's own (a fault). */
  'attached',
  'result',
] as const;
export const DECODE_SLOT_LISTS = ['page'] as const;

export const PAGE_FIELDS = ['state', 'owner', 'next', 'epoch'] as const;
/** Only where the shape has prefixes: sealed pages, shared inside one tenant. */
export const PAGE_PREFIX_FIELDS = ['refs', 'tenant', 'salt', 'hash'] as const;

export const GH: Index<typeof GATEWAY_HEADER_FIELDS> = indexOf(GATEWAY_HEADER_FIELDS);
export const GS: Index<typeof GATEWAY_SLOT_FIELDS> = indexOf(GATEWAY_SLOT_FIELDS);
export const PH: Index<typeof PREFILL_HEADER_FIELDS> = indexOf(PREFILL_HEADER_FIELDS);
export const PS: Index<typeof PREFILL_SLOT_FIELDS> = indexOf(PREFILL_SLOT_FIELDS);
export const DH: Index<typeof DECODE_HEADER_FIELDS> = indexOf(DECODE_HEADER_FIELDS);
export const DS: Index<typeof DECODE_SLOT_FIELDS> = indexOf(DECODE_SLOT_FIELDS);
export const PG: Index<[...typeof PAGE_FIELDS, ...typeof PAGE_PREFIX_FIELDS]> = indexOf([
  ...PAGE_FIELDS,
  ...PAGE_PREFIX_FIELDS,
] as [...typeof PAGE_FIELDS, ...typeof PAGE_PREFIX_FIELDS]);

/** Header cells in which the free list hangs; the same in both pools. */
export const FREE_HEAD: number = PH.freeHead;
export const FREE_COUNT: number = PH.freeCount;

export const PageState = { free: 0, leased: 1, draining: 2, sealed: 3 } as const;

/** Where the parts of an actor's record lie. */
export interface Shape {
  readonly actor: Actor;
  readonly slots: number;
  readonly pages: number;
  readonly pagesPerSlot: number;
  readonly prefixes: boolean;
  readonly slotBase: number;
  readonly slotWidth: number;
  /** Cells from a slot's start to its first list. */
  readonly listBase: number;
  readonly pageBase: number;
  readonly pageWidth: number;
  /** Cells of the whole record. */
  readonly width: number;
}

export interface ShapeOptions {
  readonly slots: number;
  readonly pages?: number;
  readonly pagesPerSlot?: number;
  readonly prefixes?: boolean;
}

export function shapeOf(actor: Actor, options: ShapeOptions): Shape {
  const { slots, pages = 0, pagesPerSlot = 0, prefixes = false } = options;
  assert(slots >= 1, 'a record needs at least one slot');
  assert(actor === 'gateway' || (pages >= 1 && pagesPerSlot >= 1), 'a pool needs pages');
  const { header, slot, lists } = SCHEMA[actor];
  const slotWidth = slot.length + lists.length * pagesPerSlot;
  const pageWidth = PAGE_FIELDS.length + (prefixes ? PAGE_PREFIX_FIELDS.length : 0);
  const pageBase = header.length + slots * slotWidth;
  return Object.freeze({
    actor,
    slots,
    pages,
    pagesPerSlot,
    prefixes,
    slotBase: header.length,
    slotWidth,
    listBase: slot.length,
    pageBase,
    pageWidth,
    width: pageBase + pages * pageWidth,
  });
}

interface Schema {
  readonly header: readonly string[];
  readonly slot: readonly string[];
  readonly lists: readonly string[];
}

export const SCHEMA: Readonly<Record<Actor, Schema>> = {
  gateway: { header: GATEWAY_HEADER_FIELDS, slot: GATEWAY_SLOT_FIELDS, lists: [] },
  prefill: { header: PREFILL_HEADER_FIELDS, slot: PREFILL_SLOT_FIELDS, lists: PREFILL_SLOT_LISTS },
  decode: { header: DECODE_HEADER_FIELDS, slot: DECODE_SLOT_FIELDS, lists: DECODE_SLOT_LISTS },
};

/** One actor's record inside a larger array: `cells[at]` is its first cell. The caller may move `at`. */
export interface View {
  readonly cells: Cells;
  at: number;
  readonly shape: Shape;
  readonly rules: Rules;
}

/** A fresh record with every page free, lowest page first. Incarnations start at 1, so that 0 means "none". */
export function newView(shape: Shape, rules: Rules, cells: Cells = new Int32Array(shape.width), at = 0): View {
  const view: View = { cells, at, shape, rules };
  resetView(view, 1, 1);
  return view;
}

/** What a restart leaves: nothing but the incarnation of its own and of the peer as it knows it. */
export function resetView(view: View, incarnation: number, peer: number): void {
  const { cells, at, shape } = view;
  cells.fill(0, at, at + shape.width);
  cells[at] = incarnation;
  cells[at + 1] = peer;
  if (shape.pages === 0) return;
  cells[at + FREE_HEAD] = 1;
  cells[at + FREE_COUNT] = shape.pages;
  for (let page = 0; page < shape.pages; page++) {
    cells[pageAt(view, page) + PG.next] = page + 1 < shape.pages ? page + 2 : 0;
  }
}

/** Index of the first cell of a slot. */
export function slotAt(view: View, slot: number): number {
  return view.at + view.shape.slotBase + slot * view.shape.slotWidth;
}

/** Index of the first cell of list number `list` of a slot. */
export function listAt(view: View, slot: number, list: number): number {
  return slotAt(view, slot) + view.shape.listBase + list * view.shape.pagesPerSlot;
}

/** Index of the first cell of a page. */
export function pageAt(view: View, page: number): number {
  return view.at + view.shape.pageBase + page * view.shape.pageWidth;
}

/** Reads a field by name; for tests, docs and printing. The hot paths use the index constants above. */
export function getSlot(view: View, slot: number, field: string): number {
  const at = SCHEMA[view.shape.actor].slot.indexOf(field);
  assert(at >= 0, `a ${view.shape.actor} slot has no field ${field}`);
  return view.cells[slotAt(view, slot) + at];
}

export function setSlot(view: View, slot: number, field: string, value: number): void {
  const at = SCHEMA[view.shape.actor].slot.indexOf(field);
  assert(at >= 0, `a ${view.shape.actor} slot has no field ${field}`);
  view.cells[slotAt(view, slot) + at] = value;
}

export function getPage(view: View, page: number, field: keyof typeof PG): number {
  return view.cells[pageAt(view, page) + PG[field]];
}

export function getHeader(view: View, field: string): number {
  const at = SCHEMA[view.shape.actor].header.indexOf(field);
  assert(at >= 0, `a ${view.shape.actor} record has no header field ${field}`);
  return view.cells[view.at + at];
}

/** The record as a copy of its cells, for comparing and storing. */
export function encode(view: View): Cells {
  return view.cells.slice(view.at, view.at + view.shape.width);
}

/** The record in words: one line for the header, one for each slot that is not idle, one for the pages. */
export function print(view: View): string {
  const { shape } = view;
  const { header, slot: slotFields, lists } = SCHEMA[shape.actor];
  const lines = [`${shape.actor} ${header.map((name) => `${name}=${getHeader(view, name)}`).join(' ')}`];
  for (let slot = 0; slot < shape.slots; slot++) {
    const fields = slotFields.map((name) => `${name}=${getSlot(view, slot, name)}`);
    const tail = lists.map((name, list) => {
      const from = listAt(view, slot, list);
      return `${name}=[${view.cells.slice(from, from + shape.pagesPerSlot).join(',')}]`;
    });
    lines.push(`  slot ${slot} ${[...fields, ...tail].join(' ')}`);
  }
  for (let page = 0; page < shape.pages; page++) {
    const from = pageAt(view, page);
    const names = [...PAGE_FIELDS, ...(shape.prefixes ? PAGE_PREFIX_FIELDS : [])];
    lines.push(`  page ${page} ${names.map((name) => `${name}=${view.cells[from + PG[name]]}`).join(' ')}`);
  }
  return lines.join('\n');
}
