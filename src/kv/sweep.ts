/**
 * The sweep: between steps a bounded number of pages, free ones included, is held against the ledger. A write that no lease explains
 * is a finding, whoever made it and whether or not anybody ever reads the page.
 *
 * How it knows. When a page goes back, and when it is sealed, a *witness* is taken: the sixteen words of its header, and sixteen words
 * of its payload spread over all layers. On its first visit after that the sweep takes the XXH64 of the whole payload; on later
 * visits it compares it. A leased page must carry its lease's own tag, or still the header that it had when it was free.
 *
 * What it sees: any write that comes with a header (all writes over the wire do), at the next visit; a write of payload alone to a
 * sealed page, or to a free page that was visited before; one to a free page that was not visited yet only where it changes one of the
 * sixteen sampled words. What it cannot see: a write that puts back the same bytes; a write that a rightful owner wrote over before
 * the visit; a write of payload alone to a leased page that has no checksum (decode still appends to it); and a writer that forges
 * the lease's own tag together with its checksum. It comes late by design: what must not be read is the read guard's.
 */
import { assert } from '../base/assert.js';
import { DecodePhase } from '../handoff/decode.js';
import { DS, FREE_HEAD, listAt, PageState, PG, pageAt, slotAt, type View } from '../handoff/layout.js';
import type { Checksummer } from './checksum.js';
import { PAGE_HEADER_WORDS, type PagePool } from './pool.js';
import {
  compareTag,
  MAGIC_LANDING,
  OWNER_LEASE,
  readTag,
  TAG_CHECKSUM_HIGH,
  TAG_CHECKSUM_LOW,
  TAG_MAGIC,
  TAG_OWN,
  TAG_PLACE,
  tagWords,
} from './tag.js';

/** Words of the payload that a witness keeps: enough for one in K and one in V of each layer of the lab model. */
const SAMPLES = 16;
/** Pages looked at in one step, most of them by their header alone. */
export const SWEEP_PAGES_MAX = 8;
/** Payload bytes that each token of decode pays for. Sized so that the sweep stays below 1 % of decode's CPU (`bench/guards.ts`). */
export const SWEEP_BYTES_PER_TOKEN = 1_024;
/** Pages that an idle node sweeps a second: some milliseconds of work. */
export const IDLE_SWEEP_PAGES = 64;
/** Unspent bytes do not pile up beyond this many pages. */
const CREDIT_PAGES_MAX = 4;

export interface SweepFinding {
  readonly page: number;
  /** Numbers and names: page, what the ledger says of it, and the tag that lies there. */
  readonly words: string;
  /** Whether the page may be shared by prompts that come: it must not be any more. */
  readonly isSealed: boolean;
}

export interface SweepOptions {
  readonly pool: PagePool;
  /** The ledger of the pool. */
  readonly view: View;
  readonly incarnation: number;
  readonly checksummer: Checksummer;
  readonly zeroOnRelease: boolean;
  /** The memory was never written: each page is known to be zero. If not, a page is known from its first visit on. */
  readonly isFresh: boolean;
  readonly onFinding: (finding: SweepFinding) => void;
}

export class Sweep {
  readonly #o: SweepOptions;
  /** Of the witness of each page: the epoch and the state in which it was taken. */
  readonly #epochs: Int32Array;
  readonly #states: Uint8Array;
  /** Shape (pages, PAGE_HEADER_WORDS). */
  readonly #headers: Int32Array;
  readonly #samples: Int32Array;
  /** Shape (pages, 2); of those with `#hasSum`. */
  readonly #sums: Uint32Array;
  readonly #hasSum: Uint8Array;
  /** By page: the epoch in which a leased page was reported, so that it is reported once. */
  readonly #reported: Int32Array;
  readonly #sum = new Uint32Array(2);
  readonly #zeroSum = new Uint32Array(2);
  #next = 0;
  #creditBytes = 0;
  /** Visits, whole rounds over the pool, and findings. */
  pagesSwept = 0;
  passes = 0;
  findings = 0;

  constructor(options: SweepOptions) {
    const { pool, view, checksummer, zeroOnRelease, isFresh } = options;
    assert(view.shape.pages === pool.pages, 'a sweep holds a pool against its own ledger');
    this.#o = options;
    const { pages } = pool;
    this.#epochs = new Int32Array(pages).fill(-1);
    this.#states = new Uint8Array(pages);
    this.#headers = new Int32Array(pages * PAGE_HEADER_WORDS);
    this.#samples = new Int32Array(pages);
    this.#sums = new Uint32Array(2 * pages);
    this.#hasSum = new Uint8Array(pages);
    this.#reported = new Int32Array(pages).fill(-1);
    if (zeroOnRelease) {
      pool.zeroPage(0);
      checksummer.page(pool, 0, this.#zeroSum);
    }
    // Fresh memory is zero, and so are these arrays. To read it would only have the system find the memory of the whole pool at once.
    if (isFresh)
      for (let page = 0; page < pages; page++) this.#epochs[page] = view.cells[pageAt(view, page) + PG.epoch];
  }

  /** Pages went back: to be called at once, since whatever is written from now on is nobody's. They are the head of the free list. */
  noteReleased(): void {
    const { view, pool, zeroOnRelease } = this.#o;
    const { cells } = view;
    for (let next = cells[view.at + FREE_HEAD]; next > 0; ) {
      const page = next - 1;
      const cell = pageAt(view, page);
      if (this.#epochs[page] === cells[cell + PG.epoch] && this.#states[page] === PageState.free) return;
      if (zeroOnRelease) pool.zeroPage(page);
      this.#witness(page);
      if (zeroOnRelease) this.#keepSum(page, this.#zeroSum[0], this.#zeroSum[1]);
      next = cells[cell + PG.next];
    }
  }

  /** A page was sealed, and its tag written: its checksum is in the tag. */
  noteSealed(page: number): void {
    this.#witness(page);
    const at = page * PAGE_HEADER_WORDS;
    this.#keepSum(page, this.#headers[at + TAG_CHECKSUM_LOW], this.#headers[at + TAG_CHECKSUM_HIGH]);
  }

  /** After a step of `tokens` tokens: as many pages as they pay for. */
  step(tokens: number): void {
    const { payloadBytes } = this.#o.pool.geometry;
    const creditMax = CREDIT_PAGES_MAX * payloadBytes;
    this.#creditBytes = Math.min(this.#creditBytes + tokens * SWEEP_BYTES_PER_TOKEN, creditMax);
    // Looking at a header costs a cache miss or two: not before a payload can be paid for as well.
    if (this.#creditBytes >= payloadBytes) this.#visitSome(SWEEP_PAGES_MAX);
  }

  /** While nothing runs: `pages` visits with a checksum each, if they ask for one. */
  idle(pages: number): void {
    this.#creditBytes = pages * this.#o.pool.geometry.payloadBytes;
    this.#visitSome(pages);
  }

  #visitSome(pagesMax: number): void {
    const { pages, geometry } = this.#o.pool;
    for (let visits = 0; visits < Math.min(pagesMax, pages); visits++) {
      if (this.#visit(this.#next)) {
        if (this.#creditBytes < geometry.payloadBytes) return;
        this.#creditBytes -= geometry.payloadBytes;
        this.#compareSum(this.#next);
      }
      this.pagesSwept++;
      this.#next++;
      if (this.#next < pages) continue;
      this.#next = 0;
      this.passes++;
    }
  }

  /** Looks at a header. True: the payload is to be compared too, which costs more. */
  #visit(page: number): boolean {
    const { view } = this.#o;
    const cell = pageAt(view, page);
    const state = view.cells[cell + PG.state];
    if (state === PageState.leased || state === PageState.draining) return this.#visitLeased(page, cell);
    // Sealed without its tag, or given back unnoticed: nothing is known of what lay there, so begin here.
    if (this.#states[page] !== state || this.#epochs[page] !== view.cells[cell + PG.epoch]) this.#witness(page);
    if (!this.#isHeaderKept(page)) {
      this.#find(page, state, 'a header');
      return false;
    }
    if (this.#hasSum[page] === 0 && this.#sample(page) !== this.#samples[page]) {
      this.#find(page, state, 'a payload');
      return false;
    }
    return true;
  }

  /** A leased page of decode: as it was when it was free, being written, or the lease's own. Prefill's carry no tags. */
  #visitLeased(page: number, cell: number): boolean {
    const { pool, view } = this.#o;
    if (view.shape.actor !== 'decode' || this.#reported[page] === view.cells[cell + PG.epoch]) return false;
    for (let look = 0; look < 2; look++) {
      // A write may land between two words: what looks wrong is looked at again.
      if (Atomics.load(pool.words, page * pool.pageWords + TAG_MAGIC) === MAGIC_LANDING) return false;
      if (this.#isLeaseOwn(page, cell)) return this.#isSettled(page, cell);
      if (this.#isHeaderKept(page)) return false;
    }
    this.#reported[page] = view.cells[cell + PG.epoch];
    this.#find(page, view.cells[cell + PG.state], 'a header');
    return false;
  }

  #isLeaseOwn(page: number, cell: number): boolean {
    const { pool, view, incarnation } = this.#o;
    const { cells } = view;
    const slot = cells[cell + PG.owner] - 1;
    if (slot < 0) return false;
    const at = page * pool.pageWords;
    const place = pool.words[at + TAG_PLACE];
    const slotCell = slotAt(view, slot);
    if (!(place >= 0 && place < cells[slotCell + DS.held]) || cells[listAt(view, slot, 0) + place] !== page)
      return false;
    const attempt = cells[slotCell + DS.attempt];
    const epoch = cells[cell + PG.epoch];
    return compareTag(pool.words, at, OWNER_LEASE, slot, attempt, incarnation, epoch, place, 1) === TAG_OWN;
  }

  /** Whether a leased page has a checksum that nothing may change any more: its transfer was verified, and decode appends elsewhere. */
  #isSettled(page: number, cell: number): boolean {
    const { pool, view } = this.#o;
    const phase = view.cells[slotAt(view, view.cells[cell + PG.owner] - 1) + DS.phase];
    if (phase !== DecodePhase.decoding && phase !== DecodePhase.reading) return false;
    const at = page * pool.pageWords;
    return (pool.words[at + TAG_CHECKSUM_LOW] | pool.words[at + TAG_CHECKSUM_HIGH]) !== 0;
  }

  #compareSum(page: number): void {
    const { pool, view, checksummer } = this.#o;
    checksummer.page(pool, page, this.#sum);
    const cell = pageAt(view, page);
    const state = view.cells[cell + PG.state];
    const isKept = state === PageState.free || state === PageState.sealed;
    if (isKept && this.#hasSum[page] === 0) return this.#keepSum(page, this.#sum[0], this.#sum[1]);
    const at = page * pool.pageWords;
    const low = isKept ? this.#sums[2 * page] : pool.words[at + TAG_CHECKSUM_LOW] >>> 0;
    const high = isKept ? this.#sums[2 * page + 1] : pool.words[at + TAG_CHECKSUM_HIGH] >>> 0;
    if (this.#sum[0] === low && this.#sum[1] === high) return;
    if (!isKept) this.#reported[page] = view.cells[cell + PG.epoch];
    this.#find(page, state, 'a payload');
  }

  #find(page: number, state: number, what: 'a header' | 'a payload'): void {
    this.findings++;
    const { pool, onFinding } = this.#o;
    const tag = tagWords(readTag(pool, page));
    const writer = what === 'a header' ? `its tag says: ${tag}` : `its writer left no tag; the header says: ${tag}`;
    const words = `Expected no write to page ${page} of ${pool.node}, ${this.#stateWords(page, state)}, got ${what} that no lease explains; ${writer}`;
    // Said once: from here on the page is compared with what it holds now.
    if (state === PageState.free || state === PageState.sealed) this.#witness(page);
    onFinding({ page, words, isSealed: state === PageState.sealed });
  }

  #stateWords(page: number, state: number): string {
    const { view } = this.#o;
    const cell = pageAt(view, page);
    const epoch = view.cells[cell + PG.epoch];
    if (state === PageState.free) return `which is free since epoch ${epoch}`;
    if (state === PageState.sealed)
      return `which is sealed for tenant ${view.cells[cell + PG.tenant]} in epoch ${epoch}`;
    const slot = view.cells[cell + PG.owner] - 1;
    const attempt = view.cells[slotAt(view, slot) + DS.attempt];
    return `which lease ${slot}, attempt ${attempt} holds in epoch ${epoch}`;
  }

  /** Takes what lies in the page now as what must lie there. */
  #witness(page: number): void {
    const { pool, view } = this.#o;
    const cell = pageAt(view, page);
    this.#epochs[page] = view.cells[cell + PG.epoch];
    this.#states[page] = view.cells[cell + PG.state];
    const at = page * pool.pageWords;
    const own = page * PAGE_HEADER_WORDS;
    for (let i = 0; i < PAGE_HEADER_WORDS; i++) this.#headers[own + i] = pool.words[at + i];
    this.#samples[page] = this.#sample(page);
    this.#hasSum[page] = 0;
  }

  #isHeaderKept(page: number): boolean {
    const { words, pageWords } = this.#o.pool;
    const at = page * pageWords;
    const own = page * PAGE_HEADER_WORDS;
    for (let i = 0; i < PAGE_HEADER_WORDS; i++) if (words[at + i] !== this.#headers[own + i]) return false;
    return true;
  }

  /** A mix of words that lie evenly over the payload. */
  #sample(page: number): number {
    const { words, pageWords } = this.#o.pool;
    const stride = Math.floor((pageWords - PAGE_HEADER_WORDS) / SAMPLES);
    let at = page * pageWords + PAGE_HEADER_WORDS + (stride >> 1);
    let mix = 0;
    for (let i = 0; i < SAMPLES; i++, at += stride) mix = Math.imul(mix ^ words[at], 0x9e37_79b1) ^ (mix >>> 15);
    return mix;
  }

  #keepSum(page: number, low: number, high: number): void {
    this.#sums[2 * page] = low;
    this.#sums[2 * page + 1] = high;
    this.#hasSum[page] = 1;
  }
}
