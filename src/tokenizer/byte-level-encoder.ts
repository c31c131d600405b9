/** Byte-level BPE: text in pieces, pieces in tokens. */
import { toUSVString } from 'node:util';
import { Automaton, type AutomatonTables, CannotSplit } from './automaton.js';
import { Merger } from './merger.js';
import { hashUnits, shiftOf, type VocabularyTables } from './vocabulary-tables.js';

/** Can be posted to another thread as it is. */
export interface EncoderTables {
  readonly vocabulary: VocabularyTables;
  /** One after the other: each cuts what the one before left, at its matches. */
  readonly splits: readonly AutomatonTables[];
}

/** Characters that a split may look at for one of the text. The known patterns need at most four. */
const STEPS_PER_UNIT_MAX = 32;
/** Slots of the memory of one call. */
const MEMO_SLOTS_MIN = 64;
const MEMO_SLOTS_MAX = 32_768;
/** Longer pieces are not kept in mind. */
const MEMO_UNITS_MAX = 256;

/**
 * Not to be used by two calls at once (there is nothing to wait for within one). Pieces that are no token of the vocabulary are
 * kept in mind for the length of one call alone: what one tenant sent never makes another's text faster.
 */
export class ByteLevelEncoder {
  readonly #vocabulary: VocabularyTables;
  readonly #splits: readonly Automaton[];
  readonly #merger: Merger;
  /** Pieces that the last call merged, being neither a token nor remembered. */
  merged = 0;
  readonly #pieceShift: number;
  readonly #pieceMask: number;
  #units: Uint16Array = new Uint16Array(0);
  #bytes: Uint8Array = new Uint8Array(256);
  #out: Int32Array = new Int32Array(0);
  #count = 0;
  /** Four numbers a slot: first unit, number of units, first token in `#out`, number of tokens. */
  #memo: Int32Array = new Int32Array(0);
  #memoShift = 0;

  constructor({ vocabulary, splits }: EncoderTables) {
    this.#vocabulary = vocabulary;
    this.#splits = splits.map((tables) => new Automaton(tables));
    this.#merger = new Merger(vocabulary);
    this.#pieceShift = shiftOf(vocabulary.pieces);
    this.#pieceMask = vocabulary.pieces.length - 1;
  }

  /** The tokens of a text without added tokens. A lone surrogate counts as U+FFFD. Throws `CannotSplit`. */
  encode(text: string): Int32Array {
    const { length } = text;
    this.#units = new Uint16Array(length);
    const units = Buffer.from(this.#units.buffer);
    units.write(toUSVString(text), 'utf16le');
    this.#out = new Int32Array((length >> 1) + 64);
    this.#count = 0;
    this.merged = 0;
    const slots = Math.min(MEMO_SLOTS_MAX, Math.max(MEMO_SLOTS_MIN, 2 ** Math.ceil(Math.log2(length / 8 + 1))));
    this.#memo = new Int32Array(slots * 4);
    this.#memoShift = shiftOf(this.#memo);
    for (const split of this.#splits) split.steps = 0;
    this.#cut(0, 0, length);
    const tokens = this.#out.subarray(0, this.#count);
    // Nothing of a prompt stays behind.
    this.#units = new Uint16Array(0);
    this.#out = new Int32Array(0);
    this.#bytes.fill(0);
    return tokens;
  }

  #cut(stage: number, from: number, to: number): void {
    const split = this.#splits[stage];
    if (split === undefined) {
      this.#piece(from, to);
      return;
    }
    let at = from;
    while (at < to) {
      const start = split.find(this.#units, at, to);
      if (start < 0) {
        this.#cut(stage + 1, at, to);
        break;
      }
      const { end } = split;
      if (start > at) this.#cut(stage + 1, at, start);
      this.#cut(stage + 1, start, end);
      at = end;
      if (split.steps > STEPS_PER_UNIT_MAX * (this.#units.length + 1)) {
        throw new CannotSplit('the pattern looks at the same characters again and again');
      }
    }
  }

  #piece(from: number, to: number): void {
    const hash = hashUnits(this.#units, from, to);
    const token = this.#wholePiece(hash, from, to);
    if (token >= 0) {
      if (this.#count === this.#out.length) this.#grow(1);
      this.#out[this.#count++] = token;
      return;
    }
    const isShort = to - from <= MEMO_UNITS_MAX;
    const slot = (hash >>> this.#memoShift) * 4;
    if (isShort && this.#isRemembered(slot, from, to)) {
      const first = this.#memo[slot + 2]!;
      const count = this.#memo[slot + 3]!;
      this.#grow(count);
      this.#out.copyWithin(this.#count, first, first + count);
      this.#count += count;
      return;
    }
    this.merged++;
    const first = this.#count;
    const length = this.#toBytes(from, to);
    const count = this.#merger.merge(this.#bytes, length);
    this.#grow(count);
    for (let i = 0; i < count; i++) this.#out[first + i] = this.#merger.tokens[i]!;
    this.#count += count;
    if (isShort) {
      this.#memo[slot] = from;
      this.#memo[slot + 1] = to - from;
      this.#memo[slot + 2] = first;
      this.#memo[slot + 3] = count;
    }
  }

  /** The token that the piece is, or -1. */
  #wholePiece(hash: number, from: number, to: number): number {
    const { pieces, pieceUnits } = this.#vocabulary;
    const length = to - from;
    for (let slot = (hash >>> this.#pieceShift) * 4; pieces[slot + 2] !== 0; slot = (slot + 4) & this.#pieceMask) {
      if (pieces[slot] !== hash || pieces[slot + 2] !== length) continue;
      if (equal(this.#units, from, pieceUnits, pieces[slot + 1]!, length)) return pieces[slot + 3]!;
    }
    return -1;
  }

  #isRemembered(slot: number, from: number, to: number): boolean {
    const length = to - from;
    return this.#memo[slot + 1] === length && equal(this.#units, from, this.#units, this.#memo[slot]!, length);
  }

  /** Makes room for `count` more tokens. */
  #grow(count: number): void {
    const wanted = this.#count + count;
    if (wanted <= this.#out.length) return;
    const grown = new Int32Array(wanted * 2);
    grown.set(this.#out.subarray(0, this.#count));
    this.#out = grown;
  }

  /** Writes the piece as UTF-8 into `#bytes`; the number of bytes. */
  #toBytes(from: number, to: number): number {
    if (this.#bytes.length < (to - from) * 3) this.#bytes = new Uint8Array((to - from) * 3);
    const units = this.#units;
    const bytes = this.#bytes;
    let count = 0;
    for (let i = from; i < to; i++) {
      const unit = units[i]!;
      if (unit < 0x80) bytes[count++] = unit;
      else if (unit < 0x800) {
        bytes[count++] = 0xc0 | (unit >> 6);
        bytes[count++] = 0x80 | (unit & 0x3f);
      } else if ((unit & 0xfc00) === 0xd800) {
        const code = ((unit - 0xd800) << 10) + (units[++i]! - 0xdc00) + 0x10000;
        bytes[count++] = 0xf0 | (code >> 18);
        bytes[count++] = 0x80 | ((code >> 12) & 0x3f);
        bytes[count++] = 0x80 | ((code >> 6) & 0x3f);
        bytes[count++] = 0x80 | (code & 0x3f);
      } else {
        bytes[count++] = 0xe0 | (unit >> 12);
        bytes[count++] = 0x80 | ((unit >> 6) & 0x3f);
        bytes[count++] = 0x80 | (unit & 0x3f);
      }
    }
    return count;
  }
}

function equal(a: Uint16Array, aFrom: number, b: Uint16Array, bFrom: number, length: number): boolean {
  for (let i = 0; i < length; i++) if (a[aFrom + i] !== b[bFrom + i]) return false;
  return true;
}
