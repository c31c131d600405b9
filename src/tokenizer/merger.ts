/**
 * The merges of byte-pair encoding: the pair of lowest rank first, the leftmost of equals. Short pieces by looking for the
 * lowest again and again, long ones with a queue by rank, so that a piece of n bytes costs at most n log n.
 */
import { pairSlot, shiftOf, type VocabularyTables } from './vocabulary-tables.js';

/** Bytes up to which looking again is faster than the queue. */
const SHORT_BYTES_MAX = 96;
/** The rank of a pair that does not merge. */
const NEVER = 0x7fffffff;
export class Merger {
  readonly #tables: VocabularyTables;
  readonly #shift: number;
  readonly #mask: number;
  /** What `merge` gave. */
  tokens: Int32Array = new Int32Array(256);
  /** Of the pair that begins at each place: its rank, and its slot in the table. */
  #ranks = new Int32Array(256);
  #slots = new Int32Array(256);

  constructor(tables: VocabularyTables) {
    this.#tables = tables;
    this.#shift = shiftOf(tables.pairs);
    this.#mask = tables.pairs.length - 1;
  }

  /** Number of tokens of the first `length` bytes; they lie in `tokens`. */
  merge(bytes: Uint8Array, length: number): number {
    if (this.tokens.length < length) {
      this.tokens = new Int32Array(length);
      this.#ranks = new Int32Array(length);
      this.#slots = new Int32Array(length);
    }
    const { byteTokens } = this.#tables;
    for (let i = 0; i < length; i++) this.tokens[i] = byteTokens[bytes[i]!]!;
    return length <= SHORT_BYTES_MAX ? this.#mergeShort(length) : this.#mergeLong(length);
  }

  /** Looks up the pair of `left` and `right` for the place `at`. */
  #look(at: number, left: number, right: number): void {
    const { pairs } = this.#tables;
    let slot = pairSlot(left, right, this.#shift) * 4;
    for (;;) {
      const found = pairs[slot]!;
      if (found === left && pairs[slot + 1] === right) {
        this.#ranks[at] = pairs[slot + 2]!;
        this.#slots[at] = slot;
        return;
      }
      if (found === -1) {
        this.#ranks[at] = NEVER;
        return;
      }
      slot = (slot + 4) & this.#mask;
    }
  }

  #mergeShort(length: number): number {
    const { tokens } = this;
    const ranks = this.#ranks;
    const slots = this.#slots;
    const { pairs } = this.#tables;
    let count = length;
    for (let i = 0; i + 1 < count; i++) this.#look(i, tokens[i]!, tokens[i + 1]!);
    while (count > 1) {
      let best = -1;
      let lowest = NEVER;
      for (let i = 0; i < count - 1; i++) {
        if (ranks[i]! < lowest) {
          lowest = ranks[i]!;
          best = i;
        }
      }
      if (best < 0) break;
      tokens[best] = pairs[slots[best]! + 3]!;
      count--;
      for (let i = best + 1; i < count; i++) {
        tokens[i] = tokens[i + 1]!;
        ranks[i] = ranks[i + 1]!;
        slots[i] = slots[i + 1]!;
      }
      if (best + 1 < count) this.#look(best, tokens[best]!, tokens[best + 1]!);
      if (best > 0) this.#look(best - 1, tokens[best - 1]!, tokens[best]!);
    }
    return count;
  }

  #mergeLong(length: number): number {
    const { tokens } = this;
    const ranks = this.#ranks;
    const { pairs } = this.#tables;
    const { before, after } = newList(length);
    const queue = new MergeQueue();
    const look = (at: number): void => {
      const right = after[at]!;
      if (right >= length) ranks[at] = NEVER;
      else this.#look(at, tokens[at]!, tokens[right]!);
      if (ranks[at] !== NEVER) queue.push(ranks[at]!, at);
    };
    for (let at = 0; at < length; at++) look(at);
    for (let at = queue.next(); at >= 0; at = queue.next()) {
      // A pair that has changed since has another rank, or none.
      if (ranks[at] !== queue.rank) continue;
      const right = after[at]!;
      tokens[at] = pairs[this.#slots[at]! + 3]!;
      ranks[right] = NEVER;
      after[at] = after[right]!;
      before[after[at]!] = at;
      look(at);
      if (before[at]! >= 0) look(before[at]!);
    }
    let count = 0;
    for (let at = 0; at < length; at = after[at]!) tokens[count++] = tokens[at]!;
    return count;
  }
}

/** Places 0 to `length` - 1 in a row, as a list in both directions; `length` stands for the end. */
function newList(length: number): { before: Int32Array; after: Int32Array } {
  const before = new Int32Array(length + 1);
  const after = new Int32Array(length + 1);
  for (let at = 0; at <= length; at++) {
    before[at] = at - 1;
    after[at] = at + 1;
  }
  return { before, after };
}

interface SameRank {
  places: number[];
  /** Those before this index are done. */
  done: number;
  isSorted: boolean;
}

/**
 * Places by rank, then from left to right. A long piece has many places and few ranks, so only the ranks are in a heap. While the
 * places of a rank are gone through, a lower rank may come in and goes first; none of the same rank can, since each token that
 * a merge makes is longer than the two it is made of.
 */
class MergeQueue {
  readonly #byRank = new Map<number, SameRank>();
  readonly #ranks = new MinHeap();
  #current: SameRank | undefined;
  /** Of the place that `next` gave last. */
  rank = NEVER;

  push(rank: number, place: number): void {
    const same = this.#byRank.get(rank);
    if (same === undefined) {
      this.#byRank.set(rank, { places: [place], done: 0, isSorted: true });
      this.#ranks.push(rank);
      return;
    }
    if (same.places[same.places.length - 1]! > place) same.isSorted = false;
    same.places.push(place);
  }

  /** The next place, or -1. */
  next(): number {
    for (;;) {
      const lowest = this.#ranks.lowest;
      if (lowest === undefined) return -1;
      if (lowest !== this.rank || this.#current === undefined) {
        this.rank = lowest;
        this.#current = this.#byRank.get(lowest)!;
      }
      const same = this.#current;
      if (same.done < same.places.length) {
        if (!same.isSorted) {
          same.places.sort((a, b) => a - b);
          same.isSorted = true;
        }
        return same.places[same.done++]!;
      }
      this.#ranks.pop();
      this.#byRank.delete(lowest);
      this.#current = undefined;
    }
  }
}

/** Numbers, the lowest first. */
class MinHeap {
  readonly #items: number[] = [];

  get lowest(): number | undefined {
    return this.#items[0];
  }

  push(item: number): void {
    const items = this.#items;
    let at = items.length;
    items.push(item);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (items[parent]! <= item) break;
      items[at] = items[parent]!;
      at = parent;
    }
    items[at] = item;
  }

  pop(): void {
    const items = this.#items;
    const item = items.pop()!;
    const { length } = items;
    if (length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= length) break;
      if (child + 1 < length && items[child + 1]! < items[child]!) child++;
      if (items[child]! >= item) break;
      items[at] = items[child]!;
      at = child;
    }
    items[at] = item;
  }
}
