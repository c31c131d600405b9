/**
 * Which states were met: a 64-bit fingerprint of each, in an open table, with the state's number. States themselves are not kept, so
 * two states with one fingerprint would pass for one; `collisionProbability` says how likely that was in the run.
 */

const ENTRY_WIDTH = 3;
/** Entries are looked for one by one; with more than this part in use the walks grow long. */
const LOAD_MAX = 0.62;
const SIZE_MIN = 1 << 18;

export class StateTable {
  #entries: Int32Array = new Int32Array(SIZE_MIN * ENTRY_WIDTH);
  #mask: number = SIZE_MIN - 1;
  #capacity: number = Math.floor(SIZE_MIN * LOAD_MAX);
  /** States met; the next new one gets this number. */
  count = 0;
  /** Whether the last `add` met a new state. */
  isNew = false;

  get bytes(): number {
    return this.#entries.byteLength;
  }

  /** Bytes that growing needs beyond those in use; 0: so many more states still fit. */
  bytesToGrow(states: number): number {
    return this.count + states <= this.#capacity ? 0 : this.#entries.byteLength * 2;
  }

  /** Of no meaning; keeps the reads of `warm` from being left out. */
  warmed = 0;

  /** Reads where `add` will look first for each of these, so that the reads wait for memory together and not one after the other. */
  warm(lows: Int32Array, count: number): void {
    const entries = this.#entries;
    const mask = this.#mask;
    let read = 0;
    for (let i = 0; i < count; i++) read ^= entries[(lows[i] & mask) * ENTRY_WIDTH + 2];
    this.warmed = read;
  }

  /** The number of the state with this fingerprint. */
  add(low: number, high: number): number {
    if (this.count >= this.#capacity) this.#grow();
    const entries = this.#entries;
    const mask = this.#mask;
    let probe = low & mask;
    for (;;) {
      const at = probe * ENTRY_WIDTH;
      const id = entries[at + 2];
      if (id === 0) {
        entries[at] = low;
        entries[at + 1] = high;
        entries[at + 2] = ++this.count;
        this.isNew = true;
        return this.count - 1;
      }
      if (entries[at] === low && entries[at + 1] === high) {
        this.isNew = false;
        return id - 1;
      }
      probe = (probe + 1) & mask;
    }
  }

  #grow(): void {
    const old = this.#entries;
    const size = (this.#mask + 1) * 2;
    const mask = size - 1;
    const entries = new Int32Array(size * ENTRY_WIDTH);
    for (let from = 0; from < old.length; from += ENTRY_WIDTH) {
      if (old[from + 2] === 0) continue;
      let probe = old[from] & mask;
      while (entries[probe * ENTRY_WIDTH + 2] !== 0) probe = (probe + 1) & mask;
      entries[probe * ENTRY_WIDTH] = old[from];
      entries[probe * ENTRY_WIDTH + 1] = old[from + 1];
      entries[probe * ENTRY_WIDTH + 2] = old[from + 2];
    }
    this.#entries = entries;
    this.#mask = mask;
    this.#capacity = Math.floor(size * LOAD_MAX);
  }
}

/** Words of a record at most; each place has its own keys. */
const PLACES_MAX = 1024;

function placeKeys(seed: number): Int32Array {
  const keys = new Int32Array(PLACES_MAX);
  let x = seed;
  for (let i = 0; i < PLACES_MAX; i++) {
    x = (x + 0x9e3779b9) | 0;
    let z = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
    keys[i] = z ^ (z >>> 16);
  }
  return keys;
}

const LOW_KEYS = placeKeys(0x243f6a88);
const HIGH_KEYS = placeKeys(0x13198a2e);

function mixLow(word: number, place: number): number {
  let z = Math.imul(word ^ LOW_KEYS[place], 0x7feb352d);
  z = Math.imul(z ^ (z >>> 15), 0x846ca68b);
  return z ^ (z >>> 16);
}

function mixHigh(word: number, place: number): number {
  let z = Math.imul(word ^ HIGH_KEYS[place], 0x2c1b3c6d);
  z = Math.imul(z ^ (z >>> 13), 0x297a2d39);
  return z ^ (z >>> 15);
}

/**
 * A state's fingerprint: for each half the sum, over all words, of a multiply-mix hash of the word under the keys of its place. A sum can
 * be carried on from a state to its successor by the few words that an action changed.
 */
export class Fingerprint {
  low = 0;
  high = 0;
  of(words: Int32Array, length: number): void {
    let low = 0;
    let high = 0;
    for (let i = 0; i < length; i++) {
      low = (low + mixLow(words[i], i)) | 0;
      high = (high + mixHigh(words[i], i)) | 0;
    }
    this.low = low;
    this.high = high;
  }

  /** Carries the fingerprint on: the word in `place` was `old`, and is `word`. */
  change(place: number, old: number, word: number): void {
    this.low = (this.low - mixLow(old, place) + mixLow(word, place)) | 0;
    this.high = (this.high - mixHigh(old, place) + mixHigh(word, place)) | 0;
  }

  add(place: number, word: number): void {
    this.low = (this.low + mixLow(word, place)) | 0;
    this.high = (this.high + mixHigh(word, place)) | 0;
  }

  remove(place: number, old: number): void {
    this.low = (this.low - mixLow(old, place)) | 0;
    this.high = (this.high - mixHigh(old, place)) | 0;
  }
}

/** How likely it is that two of so many states shared a fingerprint (an upper bound, for an even spread over 64 bits). */
export function collisionProbability(states: number): number {
  return Math.min(1, ((states / 2 ** 32) * ((states - 1) / 2 ** 32)) / 2);
}
