/**
 * The forward pass of the simulator. What it writes for a token is the token itself, which in a prompt names its owner, and a chain
 * over everything before it; what it answers follows from everything that it reads back. An answer over anything but the request's
 * own content is therefore another answer, whatever the tags say.
 */
import type { PagePool } from '../kv/pool.js';
import { PAGE_HEADER_WORDS } from '../kv/pool.js';
import type { DecodeItem, Model } from '../model/model.js';
import { TOKEN_EOS } from '../tokenizer/bytes.js';

/** Words of a row of K or of V: one SIMD vector, the least that a page can hold. */
export const ROW_WORDS = 4;
/** Logits of one answer: the bytes and the special tokens up to the end of the text. */
const VOCAB = TOKEN_EOS + 1;
const CHAIN_SEED = 0x5eed_c0de | 0;

const mix = (left: number, right: number): number => {
  let x = Math.imul(left ^ (right + 0x6d2b_79f5), 0x9e37_79b1);
  x = Math.imul(x ^ (x >>> 15), 0x85eb_ca6b);
  return (x ^ (x >>> 13)) | 0;
};

/** The token that follows what was read. One in 32 ends the text. */
const tokenOf = (read: number): number => (((read >>> 3) & 31) === 0 ? TOKEN_EOS : (read >>> 8) & 255);

/** What a request must be answered, token by token, computed from its own tokens alone. */
export class RightAnswer {
  #chain = CHAIN_SEED;
  #read = 0;

  constructor(prompt: Int32Array) {
    for (let i = 0; i < prompt.length; i++) this.feed(prompt[i] ?? 0);
  }

  /** The token that comes next. */
  get next(): number {
    return tokenOf(this.#read);
  }

  feed(token: number): void {
    this.#chain = mix(this.#chain, token);
    this.#read = mix(this.#read, this.#chain);
  }
}

/** Where what was read did not go on from what stood before it. */
export interface Break {
  readonly page: number;
  readonly place: number;
  /** The token that lies there; in a prompt it names its owner. 0: nothing was ever written. */
  readonly token: number;
  /** What was answered over it. */
  answer: number;
}

/** Breaks that are remembered until their answer arrives. */
const BREAKS_MAX = 64;

const SHAPE = { vocab: VOCAB, hidden: 4, layers: 1, heads: 1, kvHeads: 1, headDim: 8, intermediate: 4 };

/** One layer over one pool. Its K row holds chain and token, its V row the chain once more. */
export class ContentModel implements Model {
  readonly config: Model['config'] = { ...SHAPE, ropeTheta: 1, rmsEps: 1 };
  /** The latest breaks, oldest first; one a read. */
  readonly breaks: Break[] = [];
  #break: Break | null = null;
  readonly #pool: PagePool;
  readonly #pageTokens: number;
  /** Called between what a step reads first and what it reads last: writes land while others read. */
  readonly #amidst: () => void;
  readonly #logits: Float32Array;
  readonly #views: Float32Array[] = [];
  /** Of each row: the index of its one. */
  readonly #ones: Int32Array;
  #chain = 0;
  #read = 0;

  constructor(pool: PagePool, batchMax: number, amidst: () => void) {
    this.#pool = pool;
    this.#pageTokens = pool.geometry.pageTokens;
    this.#amidst = amidst;
    this.#logits = new Float32Array(batchMax * VOCAB);
    this.#ones = new Int32Array(batchMax);
    for (let count = 0; count <= batchMax; count++) this.#views.push(this.#logits.subarray(0, count * VOCAB));
  }

  prefill(tokens: Int32Array, start: number, pages: Int32Array, wantLogits: boolean): Float32Array | null {
    this.#begin();
    for (let position = 0; position < start; position++) this.#readBack(position, pages);
    for (let i = 0; i < tokens.length; i++) {
      this.#write(tokens[i] ?? 0, start + i, pages);
      this.#read = mix(this.#read, this.#chain);
    }
    if (!wantLogits) return null;
    this.#answer(0);
    return this.#views[1] ?? null;
  }

  decode(batch: readonly DecodeItem[]): Float32Array {
    const middle = batch.length >> 1;
    for (let row = 0; row < batch.length; row++) {
      const item = batch[row];
      if (item === undefined) continue;
      const { token, position, pages } = item;
      this.#begin();
      for (let at = 0; at < position; at++) this.#readBack(at, pages);
      this.#write(token, position, pages);
      this.#read = mix(this.#read, this.#chain);
      this.#answer(row);
      if (row === middle) this.#amidst();
    }
    return this.#views[batch.length] ?? this.#logits;
  }

  #begin(): void {
    this.#chain = CHAIN_SEED;
    this.#read = 0;
    this.#break = null;
  }

  /** Word of the K row of a position. */
  #at(position: number, pages: Int32Array): number {
    const place = Math.floor(position / this.#pageTokens);
    const row = position - place * this.#pageTokens;
    return (pages[place] ?? 0) * this.#pool.pageWords + PAGE_HEADER_WORDS + row * ROW_WORDS;
  }

  #readBack(position: number, pages: Int32Array): void {
    const { words } = this.#pool;
    const at = this.#at(position, pages);
    const token = words[at + 1] ?? 0;
    const chain = words[at] ?? 0;
    const isBroken = chain !== mix(this.#chain, token) || words[at + this.#pageTokens * ROW_WORDS] !== chain;
    if (isBroken && this.#break === null) {
      const place = Math.floor(position / this.#pageTokens);
      this.#break = { page: pages[place] ?? -1, place, token, answer: -1 };
    }
    this.#chain = chain;
    this.#read = mix(this.#read, chain);
  }

  #write(token: number, position: number, pages: Int32Array): void {
    const { words } = this.#pool;
    const at = this.#at(position, pages);
    this.#chain = mix(this.#chain, token);
    words[at] = this.#chain;
    words[at + 1] = token;
    words[at + this.#pageTokens * ROW_WORDS] = this.#chain;
  }

  #answer(row: number): void {
    const from = row * VOCAB;
    this.#logits[from + (this.#ones[row] ?? 0)] = 0;
    const token = tokenOf(this.#read);
    this.#logits[from + token] = 1;
    this.#ones[row] = token;
    if (this.#break === null) return;
    this.#break.answer = token;
    this.breaks.push(this.#break);
    if (this.breaks.length > BREAKS_MAX) this.breaks.shift();
  }
}
