/** A byte-level BPE vocabulary as flat tables: which tokens merge into which, and which pieces of text are one token. */

/** Can be posted to another thread as it is: the arrays are shared. */
export interface VocabularyTables {
  /** Token of each byte. */
  readonly byteTokens: Int32Array;
  /** Open hash table of four numbers: left token, right token, rank of their merge, token it gives. An empty slot has left -1. */
  readonly pairs: Int32Array;
  /** Open hash table of four numbers: hash, first unit in `pieceUnits`, number of units, token. An empty slot has length 0. */
  readonly pieces: Int32Array;
  /** UTF-16 code units of the pieces. */
  readonly pieceUnits: Uint16Array;
  /** Bytes of the longest token. */
  readonly tokenBytesMax: number;
}

/** Hash of two tokens, for a table of 2^(32 - shift) slots. */
export function pairSlot(left: number, right: number, shift: number): number {
  return Math.imul(Math.imul(left, 0x9e3779b1) ^ (right + 0x7f4a7c15), 0x85ebca6b) >>> shift;
}

/** Shift that brings a hash into a table of four numbers a slot. */
export function shiftOf(table: Int32Array): number {
  return 32 - Math.log2(table.length / 4);
}

export function hashUnits(units: Uint16Array, from: number, to: number): number {
  let hash = to - from;
  for (let i = from; i < to; i++) hash = Math.imul(hash ^ units[i]!, 0x01000193);
  return Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
}
