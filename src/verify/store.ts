/** Growing stores of integers in pieces, so that growing copies nothing and what was read can be let go. */

/** Words of one piece of the queue: 4 MiB. */
const PIECE_WORDS = 1 << 20;

/** Length and fingerprint in front of each state. */
const HEAD_WORDS = 3;

/** States that wait to be explored, first in first out. */
export class StateQueue {
  readonly #pieces: Int32Array[] = [];
  readonly #spare: Int32Array[] = [];
  #writeAt: number = PIECE_WORDS;
  #readAt = 0;

  get bytes(): number {
    return (this.#pieces.length + this.#spare.length + this.#spent.length) * PIECE_WORDS * 4;
  }

  push(words: Int32Array, length: number, low: number, high: number): void {
    if (this.#writeAt + length + HEAD_WORDS > PIECE_WORDS) {
      // A length of 0 sends the reader to the next piece.
      if (this.#writeAt < PIECE_WORDS) (this.#pieces.at(-1) as Int32Array)[this.#writeAt] = 0;
      this.#pieces.push(this.#spare.pop() ?? new Int32Array(PIECE_WORDS));
      this.#writeAt = 0;
    }
    const piece = this.#pieces[this.#pieces.length - 1];
    const at = this.#writeAt;
    piece[at] = length;
    piece[at + 1] = low;
    piece[at + 2] = high;
    for (let i = 0; i < length; i++) piece[at + HEAD_WORDS + i] = words[i];
    this.#writeAt = at + HEAD_WORDS + length;
  }

  /** The state that `next` gave last: its words lie in `piece` from `at` on, until `release`. */
  piece: Int32Array = new Int32Array(0);
  at = 0;
  length = 0;
  low = 0;
  high = 0;
  readonly #spent: Int32Array[] = [];

  /** Removes the first state. The queue must not be empty. */
  next(): void {
    if (this.#readAt >= PIECE_WORDS || this.#pieces[0][this.#readAt] === 0) {
      this.#spent.push(this.#pieces.shift() as Int32Array);
      this.#readAt = 0;
    }
    const piece = this.#pieces[0];
    const at = this.#readAt;
    this.piece = piece;
    this.at = at + HEAD_WORDS;
    this.length = piece[at];
    this.low = piece[at + 1];
    this.high = piece[at + 2];
    this.#readAt = at + HEAD_WORDS + this.length;
  }

  /** The words of the states that were given are not needed any more. */
  release(): void {
    while (this.#spent.length > 0) {
      const piece = this.#spent.pop() as Int32Array;
      if (this.#spare.length < 2) this.#spare.push(piece);
    }
  }
}

const LIST_BITS = 18;
const LIST_PIECE = 1 << LIST_BITS;

/** A list of 32-bit integers that only grows. */
export class IntList {
  readonly #pieces: Int32Array[] = [];
  length = 0;

  get bytes(): number {
    return this.#pieces.length * LIST_PIECE * 4;
  }

  push(value: number): void {
    const at = this.length & (LIST_PIECE - 1);
    if (at === 0) this.#pieces.push(new Int32Array(LIST_PIECE));
    this.#pieces[this.length >>> LIST_BITS][at] = value;
    this.length++;
  }

  at(index: number): number {
    return this.#pieces[index >>> LIST_BITS][index & (LIST_PIECE - 1)];
  }
}

/** A growing set of small numbers, one bit each. */
export class BitSet {
  #words: Int32Array = new Int32Array(1 << 10);

  get bytes(): number {
    return this.#words.byteLength;
  }

  has(index: number): boolean {
    return ((this.#words[index >>> 5] >>> (index & 31)) & 1) === 1;
  }

  set(index: number): void {
    const at = index >>> 5;
    if (at >= this.#words.length) {
      const words = new Int32Array(this.#words.length * 2);
      words.set(this.#words);
      this.#words = words;
    }
    this.#words[at] |= 1 << (index & 31);
  }

  /** Makes room up to `length`, so that reading behind the last one set is safe. */
  reserve(length: number): void {
    if (length >>> 5 < this.#words.length) return;
    const words = new Int32Array((length >>> 5) + 1);
    words.set(this.#words);
    this.#words = words;
  }
}
