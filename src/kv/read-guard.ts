import { assert } from '../base/assert.js';
import type { PagePool } from './pool.js';
import {
  compareTag,
  OWNER_LEASE,
  OWNER_TENANT,
  readTag,
  TAG_IS_LANDING,
  TAG_IS_UNWRITTEN,
  TAG_OWN,
  TAG_TOO_SHORT,
  TAG_WRONG_ATTEMPT,
  TAG_WRONG_EPOCH,
  TAG_WRONG_INCARNATION,
  TAG_WRONG_OWNER,
  TAG_WRONG_PLACE,
  type TagVerdict,
  tagWords,
} from './tag.js';

/** Who a request is, as decode's ledger knows it. */
export interface LeaseIdentity {
  /** The lease's slot number. */
  readonly slot: number;
  readonly attempt: number;
  /** Of the decode node. */
  readonly incarnation: number;
  /** Owner of the sealed prefix pages that the request may share. */
  readonly tenant: number;
}

/**
 * Holds the tags of the pages that a decode step reads against what the ledger expects: once before the step reads, and once
 * more before its token leaves, since a posted write lands from another thread whenever it likes.
 *
 * What the two checks guarantee, for writes that come over the wire (`wire.ts`): a write marks the header as landing, then puts
 * the payload, then the header. If the step read a single byte of a foreign write, that write's mark was there before the
 * byte, so the second check finds the mark or the foreign tag. The second check therefore closes the window that any first
 * check leaves open. What they do not guarantee: a write that lands after the second check is the next step's to find; a
 * write that only looks like the request's own (same lease, attempt, epoch, place) is the checksum's; a writer that does not
 * mark (a torn landing is one), or whose mark decode wrote over by tagging the page meanwhile, is seen only once its header is
 * there. So the guard is the last line, behind draining and the fence, which keep such writes from happening.
 *
 * On memory order: an atomic read-modify-write opens each check and the magic of each header is loaded atomically, so neither
 * V8 nor the processor (x86-64, ARMv8) may let an earlier read of a payload drift behind the loads of the header.
 */
export class ReadGuard {
  /** Tags compared since the guard was made: shows that it ran. */
  tagsChecked = 0;
  /** Where the last check that failed did so: page number (-1: the request has too few pages) and place in the request. */
  lastPage = -1;
  lastPlace = -1;
  readonly #fence = new Int32Array(new SharedArrayBuffer(4));

  /**
   * Checks the pages that hold the first `tokens` tokens of a request. Allocates nothing.
   * `pages`, `epochs`: shape (count); page numbers and their epochs, in the order of the request. The first `sealed` of them
   * are prefix pages of the tenant; everywhere else only the lease's own pages pass.
   */
  check(
    pool: PagePool,
    pages: Int32Array,
    epochs: Int32Array,
    count: number,
    expected: LeaseIdentity,
    tokens: number,
    sealed = 0,
  ): TagVerdict {
    assert(count <= pages.length && count <= epochs.length, 'a page table is as long as its count says');
    assert(
      tokens >= 0 && sealed >= 0 && sealed <= count,
      'a request reads whole tokens, and shares at most all its pages',
    );
    Atomics.add(this.#fence, 0, 1);
    const { pageTokens } = pool.geometry;
    const { words, pageWords } = pool;
    const reads = Math.ceil(tokens / pageTokens);
    if (reads > count) return this.#failed(TAG_TOO_SHORT, -1, count);
    this.tagsChecked += reads;
    for (let place = 0; place < reads; place++) {
      const page = pages[place];
      assert(page >= 0 && page < pool.pages, 'a page table names pages of its pool');
      const isSealed = place < sealed;
      const verdict = compareTag(
        words,
        page * pageWords,
        isSealed ? OWNER_TENANT : OWNER_LEASE,
        isSealed ? expected.tenant : expected.slot,
        expected.attempt,
        expected.incarnation,
        epochs[place],
        place,
        isSealed ? pageTokens : Math.min(pageTokens, tokens - place * pageTokens),
      );
      if (verdict !== TAG_OWN) return this.#failed(verdict, page, place);
    }
    return TAG_OWN;
  }

  /** The last failed check in words for a finding: numbers and names, never a text of a tenant. */
  words(pool: PagePool, verdict: TagVerdict, expected: LeaseIdentity): string {
    const whose = `Expected pages of lease ${expected.slot}, attempt ${expected.attempt}, incarnation ${expected.incarnation}`;
    if (this.lastPage < 0) return `${whose}, got only ${this.lastPlace} pages for the tokens to be read`;
    const found = tagWords(readTag(pool, this.lastPage));
    return `${whose}, got ${verdictWords(verdict)} in page ${this.lastPage} at place ${this.lastPlace}: ${found}`;
  }

  #failed(verdict: TagVerdict, page: number, place: number): TagVerdict {
    this.lastPage = page;
    this.lastPlace = place;
    return verdict;
  }
}

const VERDICT_WORDS: Readonly<Record<TagVerdict, string>> = {
  [TAG_OWN]: 'its own tag',
  [TAG_IS_UNWRITTEN]: 'no tag at all',
  [TAG_IS_LANDING]: 'a write that is landing now',
  [TAG_WRONG_OWNER]: 'a wrong owner',
  [TAG_WRONG_ATTEMPT]: 'a wrong attempt',
  [TAG_WRONG_INCARNATION]: 'a wrong incarnation',
  [TAG_WRONG_EPOCH]: 'a wrong epoch',
  [TAG_WRONG_PLACE]: 'a wrong place',
  [TAG_TOO_SHORT]: 'too few tokens',
};

export function verdictWords(verdict: TagVerdict): string {
  return VERDICT_WORDS[verdict];
}
