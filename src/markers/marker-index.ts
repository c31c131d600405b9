import { assert } from '../base/assert.js';
import { MARKER_ALPHABET, MARKER_CHARACTERS, MARKER_PREFIX, type Marker } from './marker.js';

/**
 * Which markers stand in a text, whole or in part. A stretch of 12 characters that agrees with a live marker, wherever it lies
 * in the marker, is a hit: it holds at least 8 random characters (40 bits), so chance does not make one.
 *
 * How: any 12 characters in a row begin one of their 5-character blocks at every place from the first to the eighth, so it is
 * enough to look up the block at every eighth place of the text, and to compare to both sides where a marker has that block.
 */
export const HIT_CHARACTERS_MIN = 12;
const BLOCK_CHARACTERS = 5;
const STRIDE = HIT_CHARACTERS_MIN - BLOCK_CHARACTERS + 1;
const BLOCKS_PER_MARKER = MARKER_CHARACTERS - BLOCK_CHARACTERS + 1;
/** The last place in a marker at which a hit can begin. */
const HIT_OFFSET_MAX = MARKER_CHARACTERS - HIT_CHARACTERS_MIN;
/** Live markers of one index: some 40 MB of tables. Older periods than that are searched for in stored text, one index each. */
export const MARKERS_LIVE_MAX = 200_000;

/** Buckets of the block table per block: the fewer share one, the less is compared in vain. */
const BUCKETS_PER_BLOCK = 2;
const BUCKET_BITS_MIN = 10;
const BUCKET_BITS_MAX = 22;
/** Shorter ends of a text than a block are looked up in bit sets: one for each length below it, 6 bits a character. */
const SHORT_CHARACTERS_MAX = BLOCK_CHARACTERS - 1;
const CODE_BITS = 6;

/** 0 for a character that no marker holds, else its code from 1 up. Index: UTF-16 unit below 128. */
const CODES: Uint8Array = new Uint8Array(128);
[...new Set(MARKER_PREFIX + MARKER_ALPHABET)].forEach((char, i) => {
  CODES[char.charCodeAt(0)] = i + 1;
});

function codeOf(unit: number): number {
  return unit < 128 ? CODES[unit]! : 0;
}

/** A stretch of text that agrees with a marker, as long as it goes on both sides. */
export interface MarkerHit {
  readonly marker: Marker;
  /** Where in the marker it begins: 0 to 18. */
  readonly markerOffset: number;
  /** Where in the whole text it begins, in UTF-16 units. */
  readonly textOffset: number;
  /** 12 to 30. */
  readonly length: number;
}

export class MarkerIndex {
  readonly #markers: readonly Marker[];
  readonly #shift: number;
  /** Bucket to its first block plus one, 0 for none; block to the next one of its bucket, likewise. */
  readonly #first: Int32Array;
  readonly #next: Int32Array;
  /** Short stretches from which a hit can still grow, by length (1 to 4): one bit for each. */
  readonly #short: readonly Uint8Array[];

  constructor(markers: readonly Marker[]) {
    assert(markers.length <= MARKERS_LIVE_MAX, 'more live markers than an index may hold');
    for (const { text } of markers)
      assert(isMarkerText(text), 'a live marker must be `KVC-` and 26 characters of base32');
    this.#markers = markers;
    const blocks = markers.length * BLOCKS_PER_MARKER;
    const wanted = Math.ceil(Math.log2(Math.max(1, blocks * BUCKETS_PER_BLOCK)));
    const bits = Math.min(BUCKET_BITS_MAX, Math.max(BUCKET_BITS_MIN, wanted));
    this.#shift = 32 - bits;
    this.#first = new Int32Array(2 ** bits);
    this.#next = new Int32Array(blocks);
    this.#short = Array.from(
      { length: SHORT_CHARACTERS_MAX },
      (_, i) => new Uint8Array(2 ** (CODE_BITS * (i + 1) - 3)),
    );
    markers.forEach(({ text }, at) => {
      this.#addBlocks(text, at * BLOCKS_PER_MARKER);
      this.#addShort(text);
    });
  }

  get size(): number {
    return this.#markers.length;
  }

  /** A scanner for one stream of text. */
  scanner(): MarkerScanner {
    return new MarkerScanner(this);
  }

  /** Every hit in a whole text. */
  scanText(text: string): MarkerHit[] {
    return this.find(text, 0, 0);
  }

  /**
   * Hits that end after `seen` in `text`; what stands before it was searched already. Offsets are moved by `textOffset`.
   * The hits come in order of where they were noticed.
   */
  find(text: string, seen: number, textOffset: number): MarkerHit[] {
    const hits: MarkerHit[] = [];
    for (let at = Math.max(0, seen - HIT_CHARACTERS_MIN + 1); at + BLOCK_CHARACTERS <= text.length; at += STRIDE) {
      const bucket = this.#bucket(text, at);
      if (bucket < 0) continue;
      for (let block = this.#first[bucket]!; block > 0; block = this.#next[block - 1]!) {
        this.#grow(text, at, block - 1, seen, textOffset, hits);
      }
    }
    return hits;
  }

  /** How many characters at the end of `text` may, with what comes next, become part of a hit: 0 to 29. */
  openEnd(text: string): number {
    const bucket = text.length < BLOCK_CHARACTERS ? -1 : this.#bucket(text, text.length - BLOCK_CHARACTERS);
    let longest = 0;
    if (bucket >= 0) {
      for (let block = this.#first[bucket]!; block > 0; block = this.#next[block - 1]!) {
        longest = Math.max(longest, this.#openLength(text, block - 1));
      }
    }
    for (let length = SHORT_CHARACTERS_MAX; length > longest; length--) {
      if (length <= text.length && this.#isShort(text, length)) return length;
    }
    return longest;
  }

  /** The bucket of the block at `at`; -1 where a character of it is in no marker. The last is looked at first: text is mostly other. */
  #bucket(text: string, at: number): number {
    let code = 0;
    for (let i = at + BLOCK_CHARACTERS - 1; i >= at; i--) {
      const unit = codeOf(text.charCodeAt(i));
      if (unit === 0) return -1;
      code = (code << CODE_BITS) | unit;
    }
    return Math.imul(code, 0x9e3779b1) >>> this.#shift;
  }

  #addBlocks(text: string, firstBlock: number): void {
    for (let offset = 0; offset < BLOCKS_PER_MARKER; offset++) {
      const bucket = this.#bucket(text, offset);
      this.#next[firstBlock + offset] = this.#first[bucket]!;
      this.#first[bucket] = firstBlock + offset + 1;
    }
  }

  /** A stretch that begins later than a hit can, or that ends the marker, has nothing to grow into. */
  #addShort(text: string): void {
    for (let offset = 0; offset <= HIT_OFFSET_MAX; offset++) {
      let code = 0;
      for (let length = 1; length <= SHORT_CHARACTERS_MAX; length++) {
        code = (code << CODE_BITS) | codeOf(text.charCodeAt(offset + length - 1));
        this.#short[length - 1]![code >> 3]! |= 1 << (code & 7);
      }
    }
  }

  #isShort(text: string, length: number): boolean {
    let code = 0;
    for (let i = text.length - length; i < text.length; i++) code = (code << CODE_BITS) | codeOf(text.charCodeAt(i));
    return ((this.#short[length - 1]![code >> 3]! >> (code & 7)) & 1) === 1;
  }

  /** The agreement around text[at] and the block, if it is long enough and ends after `seen`. */
  #grow(text: string, at: number, block: number, seen: number, textOffset: number, hits: MarkerHit[]): void {
    const marker = this.#markers[Math.floor(block / BLOCKS_PER_MARKER)]!;
    const offset = block % BLOCKS_PER_MARKER;
    let right = 0;
    while (at + right < text.length && offset + right < MARKER_CHARACTERS) {
      if (text.charCodeAt(at + right) !== marker.text.charCodeAt(offset + right)) break;
      right++;
    }
    if (right < BLOCK_CHARACTERS || at + right <= seen) return;
    const left = agreementLeft(text, at, marker.text, offset);
    const length = left + right;
    if (length < HIT_CHARACTERS_MIN) return;
    const begin = textOffset + at - left;
    // A stretch longer than the stride is met again at the next place; it is among the last few hits then.
    for (let i = hits.length - 1; i >= 0 && hits[i]!.textOffset >= begin - MARKER_CHARACTERS; i--) {
      if (hits[i]!.textOffset === begin && hits[i]!.marker === marker) return;
    }
    hits.push({ marker, markerOffset: offset - left, textOffset: begin, length });
  }

  /** The length of the open stretch at the end of `text` that ends with this block; 0 where no hit can come of it. */
  #openLength(text: string, block: number): number {
    const marker = this.#markers[Math.floor(block / BLOCKS_PER_MARKER)]!.text;
    const offset = block % BLOCKS_PER_MARKER;
    const at = text.length - BLOCK_CHARACTERS;
    if (offset + BLOCK_CHARACTERS >= MARKER_CHARACTERS || !marker.startsWith(text.slice(at), offset)) return 0;
    const left = agreementLeft(text, at, marker, offset);
    return offset - left <= HIT_OFFSET_MAX ? left + BLOCK_CHARACTERS : 0;
  }
}

/** How many characters before text[at] and marker[offset] agree. */
function agreementLeft(text: string, at: number, marker: string, offset: number): number {
  let left = 0;
  while (left < at && left < offset && text.charCodeAt(at - left - 1) === marker.charCodeAt(offset - left - 1)) left++;
  return left;
}

const MARKER_TEXT = new RegExp(`^${MARKER_PREFIX}[${MARKER_ALPHABET}]{${MARKER_CHARACTERS - MARKER_PREFIX.length}}$`);

export function isMarkerText(text: string): boolean {
  return MARKER_TEXT.test(text);
}

/** The markers in one stream of text, however it is cut into chunks. Keeps the last 29 characters and nothing else. */
export class MarkerScanner {
  readonly #index: MarkerIndex;
  #tail = '';
  #length = 0;

  constructor(index: MarkerIndex) {
    this.#index = index;
  }

  /** Characters that have come, in UTF-16 units. */
  get length(): number {
    return this.#length;
  }

  /** The last characters that have come: 29, or all of fewer. */
  get tail(): string {
    return this.#tail;
  }

  /**
   * The hits that the chunk completes or makes longer. One that ends with the chunk may go on: it then comes again with the next
   * chunk, longer, at the same `textOffset` (`mergeHits` keeps the longest).
   */
  scan(chunk: string): MarkerHit[] {
    if (chunk === '') return [];
    const text = this.#tail + chunk;
    const hits = this.#index.find(text, this.#tail.length, this.#length - this.#tail.length);
    this.#length += chunk.length;
    this.#tail = text.slice(-(MARKER_CHARACTERS - 1));
    return hits;
  }

  /** How many of the last characters may, with what comes next, become part of a hit. A guard that holds these back never lets a piece of a hit out. */
  get holdBack(): number {
    return this.#index.openEnd(this.#tail);
  }
}

/** One hit for each stretch, the longest, in order of place. */
export function mergeHits(hits: Iterable<MarkerHit>): MarkerHit[] {
  const longest = new Map<string, MarkerHit>();
  for (const hit of hits) {
    const key = `${hit.marker.text} ${hit.textOffset}`;
    const known = longest.get(key);
    if (known === undefined || hit.length > known.length) longest.set(key, hit);
  }
  return [...longest.values()].sort((a, b) => a.textOffset - b.textOffset);
}
