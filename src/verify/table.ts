/**
 * Which states were met: a 64-bit fingerprint of each, in an open table, with the state's number. States themselves are not kept, so
 * two states with one fingerprint would pass for one; `collisionProbability` says how likely that was in the run.
 */

const ENTRY_WIDTH = 3;
/** Entries are looked for one by one; with more than this part in use the walks grow long. */
const LOAD_MAX = 0.62;
const SIZE_MIN = 1 << 14;

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

/** Two 32-bit multiply-mix hashes over 32-bit words; the second takes in the first, so that together they are 64 bits of one state. */
export class Fingerprint {
  low = 0;
  high = 0;

  of(words: Int32Array, length: number): void {
    let a = 0x3c6ef372;
    let b = 0x1f83d9ab ^ length;
    for (let i = 0; i < length; i++) {
      const word = words[i];
      a = Math.imul(a ^ word, 0x2c1b3c6d);
      a ^= a >>> 15;
      b = Math.imul((b + word) ^ a, 0x297a2d39);
      b ^= b >>> 14;
    }
    a = Math.imul(a ^ (b >>> 16), 0x7feb352d);
    a = Math.imul(a ^ (a >>> 15), 0x846ca68b | 0);
    b = Math.imul(b ^ a, 0x9e3779b1 | 0);
    b = Math.imul(b ^ (b >>> 15), 0x7feb352d);
    this.low = a ^ (a >>> 16);
    this.high = b ^ (b >>> 16);
  }
}

/** How likely it is that two of so many states shared a fingerprint (an upper bound, for an even spread over 64 bits). */
export function collisionProbability(states: number): number {
  return Math.min(1, ((states / 2 ** 32) * ((states - 1) / 2 ** 32)) / 2);
}
