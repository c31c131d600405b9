/**
 * The merges of byte-pair encoding: the pair of lowest rank first, the leftmost of equals. Short pieces by looking for the
 * lowest again and again, long ones with a heap, so that a piece of n bytes costs at most n log n.
 */
import { pairSlot, shiftOf, type VocabularyTables } from './vocabulary-tables.js';

/** Bytes up to which looking again is faster than a heap. */
const SHORT_BYTES_MAX = 96;
/** The rank of a pair that does not merge. */
const NEVER = 0x7fffffff;
/** A heap's key is rank × 2^32 + place: the order of merging. Both are below 2^31 and 2^21, so that a double holds it. */
const RANK_UNIT = 2 ** 32;

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
      this.tokens = new Int32Array(length * 2);
      this.#ranks = new Int32Array(length * 2);
      this.#slots = new Int32Array(length * 2);
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
    // The places that still hold a token, as a list in both directions; `length` stands for the end.
    const after = Int32Array.from({ length: length + 1 }, (_, at) => at + 1);
    const before = Int32Array.from({ length: length + 1 }, (_, at) => at - 1);
    // Each merge adds at most two pairs to those of the beginning.
    const heap = new MinHeap(3 * length);
    const look = (at: number): void => {
      const right = after[at]!;
      if (right >= length) ranks[at] = NEVER;
      else this.#look(at, tokens[at]!, tokens[right]!);
      if (ranks[at] !== NEVER) heap.push(ranks[at]! * RANK_UNIT + at);
    };
    for (let at = 0; at < length; at++) look(at);
    while (heap.size > 0) {
      const key = heap.pop();
      const at = key % RANK_UNIT;
      // A pair that has changed since has another rank, or none.
      if (ranks[at] !== Math.floor(key / RANK_UNIT)) continue;
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

/** Numbers; `pop` gives the smallest. */
class MinHeap {
  readonly #items: Float64Array;
  size = 0;

  constructor(capacity: number) {
    this.#items = new Float64Array(capacity);
  }

  push(item: number): void {
    const items = this.#items;
    let at = this.size++;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (items[parent]! <= item) break;
      items[at] = items[parent]!;
      at = parent;
    }
    items[at] = item;
  }

  pop(): number {
    const items = this.#items;
    const top = items[0]!;
    const item = items[--this.size]!;
    const { size } = this;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= size) break;
      if (child + 1 < size && items[child + 1]! < items[child]!) child++;
      if (items[child]! >= item) break;
      items[at] = items[child]!;
      at = child;
    }
    items[at] = item;
    return top;
  }
}
