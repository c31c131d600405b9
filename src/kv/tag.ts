import { assert } from '../base/assert.js';
import { PAGE_HEADER_WORDS, type PagePool } from './pool.js';

/**
 * The tag of a page: whose bytes lie in it. It stands in the page's own header and is written by the same write as the
 * payload, so that it tells what landed, not what the ledger hoped for. Words of 32 bits, by index:
 */
export const TAG_MAGIC = 0;
export const TAG_OWNER_KIND = 1;
export const TAG_OWNER = 2;
export const TAG_ATTEMPT = 3;
export const TAG_INCARNATION = 4;
export const TAG_EPOCH = 5;
export const TAG_PLACE = 6;
export const TAG_FILLED = 7;
export const TAG_CHECKSUM_LOW = 8;
export const TAG_CHECKSUM_HIGH = 9;
export const TAG_WRITER = 10;
export const TAG_WRITTEN_AT_STEP = 11;
// Words 12 to 15 are zero.

/** 'CFD' and version 1 of the header. */
export const MAGIC_WRITTEN = 0x43464401;
/** A write has begun and its header has not landed: the payload is nobody's. */
export const MAGIC_LANDING = 0x43464400;

export const OWNER_NONE = 0;
export const OWNER_LEASE = 1;
/** A sealed prefix page: any request of the tenant may read it. */
export const OWNER_TENANT = 2;
export type OwnerKind = typeof OWNER_NONE | typeof OWNER_LEASE | typeof OWNER_TENANT;

/** `writer` of a page that decode filled itself. */
export const WRITER_DECODE = 0xffffffff;

/** All numbers are whole, from 0 to 2^32 - 1. */
export interface PageTag {
  ownerKind: number;
  /** The lease's slot, or the tenant's number. */
  owner: number;
  attempt: number;
  /** Of the decode node that leased the page. */
  incarnation: number;
  /** Of the page: how often it has gone back. */
  epoch: number;
  /** Index of the page in its request. */
  place: number;
  /** Tokens. Invariant: 1 <= filled <= pageTokens in a written page. */
  filled: number;
  /** XXH64 of the payload; 0 and 0 where decode wrote the page: not sealed. */
  checksumLow: number;
  checksumHigh: number;
  /** The prefill's incarnation, or `WRITER_DECODE`. */
  writer: number;
  /** A step counter of the writer, for findings. */
  writtenAtStep: number;
}

export function newPageTag(): PageTag {
  return {
    ownerKind: OWNER_NONE,
    owner: 0,
    attempt: 0,
    incarnation: 0,
    epoch: 0,
    place: 0,
    filled: 0,
    checksumLow: 0,
    checksumHigh: 0,
    writer: 0,
    writtenAtStep: 0,
  };
}

/** Puts a tag into words `at …` of a buffer that the caller owns. */
export function encodeTag(tag: PageTag, words: Int32Array, at: number): void {
  words[at + TAG_MAGIC] = MAGIC_WRITTEN;
  words[at + TAG_OWNER_KIND] = tag.ownerKind;
  words[at + TAG_OWNER] = tag.owner;
  words[at + TAG_ATTEMPT] = tag.attempt;
  words[at + TAG_INCARNATION] = tag.incarnation;
  words[at + TAG_EPOCH] = tag.epoch;
  words[at + TAG_PLACE] = tag.place;
  words[at + TAG_FILLED] = tag.filled;
  words[at + TAG_CHECKSUM_LOW] = tag.checksumLow;
  words[at + TAG_CHECKSUM_HIGH] = tag.checksumHigh;
  words[at + TAG_WRITER] = tag.writer;
  words[at + TAG_WRITTEN_AT_STEP] = tag.writtenAtStep;
  for (let i = TAG_WRITTEN_AT_STEP + 1; i < PAGE_HEADER_WORDS; i++) words[at + i] = 0;
}

/**
 * Says that a write to `page` has begun. Whoever reads bytes of that write and looks at the header afterwards finds this mark
 * or the new tag, never the old one. The exchange is a full fence: no byte of the payload overtakes it.
 */
export function beginWrite(pool: PagePool, page: number): void {
  Atomics.exchange(pool.words, page * pool.pageWords + TAG_MAGIC, MAGIC_LANDING);
}

/**
 * Writes sixteen encoded words as the header of `page`, the magic word last and atomically: a reader who loads the magic
 * atomically and finds it written also finds every word and every byte that was written before it.
 */
export function writeHeader(pool: PagePool, page: number, words: Int32Array, from: number): void {
  const at = page * pool.pageWords;
  for (let i = TAG_MAGIC + 1; i < PAGE_HEADER_WORDS; i++) pool.words[at + i] = words[from + i];
  Atomics.store(pool.words, at + TAG_MAGIC, words[from + TAG_MAGIC]);
}

const encoded = new Int32Array(PAGE_HEADER_WORDS);

export function writeTag(pool: PagePool, page: number, tag: PageTag): void {
  pool.assertPage(page);
  assert(tag.ownerKind >= OWNER_NONE && tag.ownerKind <= OWNER_TENANT, 'an owner is nobody, a lease or a tenant');
  assert(tag.filled >= 0 && tag.filled <= pool.geometry.pageTokens, 'a tag fills at most the whole page');
  encodeTag(tag, encoded, 0);
  writeHeader(pool, page, encoded, 0);
}

/** The tag of `page`, whatever lies there; into `tag` where one is given. */
export function readTag(pool: PagePool, page: number, tag: PageTag = newPageTag()): PageTag {
  pool.assertPage(page);
  const { words } = pool;
  const at = page * pool.pageWords;
  Atomics.load(words, at + TAG_MAGIC);
  tag.ownerKind = words[at + TAG_OWNER_KIND] >>> 0;
  tag.owner = words[at + TAG_OWNER] >>> 0;
  tag.attempt = words[at + TAG_ATTEMPT] >>> 0;
  tag.incarnation = words[at + TAG_INCARNATION] >>> 0;
  tag.epoch = words[at + TAG_EPOCH] >>> 0;
  tag.place = words[at + TAG_PLACE] >>> 0;
  tag.filled = words[at + TAG_FILLED] >>> 0;
  tag.checksumLow = words[at + TAG_CHECKSUM_LOW] >>> 0;
  tag.checksumHigh = words[at + TAG_CHECKSUM_HIGH] >>> 0;
  tag.writer = words[at + TAG_WRITER] >>> 0;
  tag.writtenAtStep = words[at + TAG_WRITTEN_AT_STEP] >>> 0;
  return tag;
}

/** Whether a header has landed whole in `page` since it was last zeroed. */
export function isWritten(pool: PagePool, page: number): boolean {
  pool.assertPage(page);
  return Atomics.load(pool.words, page * pool.pageWords + TAG_MAGIC) === MAGIC_WRITTEN;
}

/** Decode appended tokens to its own page. The checksum no longer speaks for the payload, so it goes to 0 and 0. */
export function setFilled(pool: PagePool, page: number, filled: number): void {
  pool.assertPage(page);
  assert(filled >= 1 && filled <= pool.geometry.pageTokens, 'a written page holds 1 to pageTokens tokens');
  const at = page * pool.pageWords;
  pool.words[at + TAG_CHECKSUM_LOW] = 0;
  pool.words[at + TAG_CHECKSUM_HIGH] = 0;
  Atomics.store(pool.words, at + TAG_FILLED, filled);
}

export function setChecksum(pool: PagePool, page: number, low: number, high: number): void {
  pool.assertPage(page);
  const at = page * pool.pageWords;
  pool.words[at + TAG_CHECKSUM_LOW] = low;
  pool.words[at + TAG_CHECKSUM_HIGH] = high;
}

/** What a comparison of a tag said. 0 is the only answer under which a page may be read. */
export const TAG_OWN = 0;
export const TAG_IS_UNWRITTEN = 1;
export const TAG_IS_LANDING = 2;
export const TAG_WRONG_OWNER = 3;
export const TAG_WRONG_ATTEMPT = 4;
export const TAG_WRONG_INCARNATION = 5;
export const TAG_WRONG_EPOCH = 6;
export const TAG_WRONG_PLACE = 7;
export const TAG_TOO_SHORT = 8;
export type TagVerdict = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8;

/**
 * Compares the header at word `at` in place. Sealed prefix pages carry no attempt: whoever sealed them is gone.
 * The magic is loaded atomically and first; the plain loads behind it cannot move before it.
 */
export function compareTag(
  words: Int32Array,
  at: number,
  ownerKind: number,
  owner: number,
  attempt: number,
  incarnation: number,
  epoch: number,
  place: number,
  filledMin: number,
): TagVerdict {
  const magic = Atomics.load(words, at + TAG_MAGIC);
  if (magic !== MAGIC_WRITTEN) return magic === MAGIC_LANDING ? TAG_IS_LANDING : TAG_IS_UNWRITTEN;
  if (words[at + TAG_OWNER_KIND] !== ownerKind || words[at + TAG_OWNER] !== (owner | 0)) return TAG_WRONG_OWNER;
  if (ownerKind === OWNER_LEASE && words[at + TAG_ATTEMPT] !== (attempt | 0)) return TAG_WRONG_ATTEMPT;
  if (words[at + TAG_INCARNATION] !== (incarnation | 0)) return TAG_WRONG_INCARNATION;
  if (words[at + TAG_EPOCH] !== (epoch | 0)) return TAG_WRONG_EPOCH;
  if (words[at + TAG_PLACE] !== (place | 0)) return TAG_WRONG_PLACE;
  return words[at + TAG_FILLED] < filledMin ? TAG_TOO_SHORT : TAG_OWN;
}

/** Whose a tag is, in words for a finding: numbers and names only. */
export function tagWords(tag: PageTag): string {
  const owner =
    tag.ownerKind === OWNER_LEASE
      ? `lease ${tag.owner}, attempt ${tag.attempt}`
      : tag.ownerKind === OWNER_TENANT
        ? `tenant ${tag.owner}`
        : 'nobody';
  const writer = tag.writer === WRITER_DECODE ? 'decode' : `prefill incarnation ${tag.writer}`;
  return `${owner}, incarnation ${tag.incarnation}, epoch ${tag.epoch}, place ${tag.place}, ${tag.filled} tokens, written by ${writer} at step ${tag.writtenAtStep}`;
}
