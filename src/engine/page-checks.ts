/** What decode compares before it believes a page: its tag at every read, and the checksum of its payload at commit. */
import type { SharedMemory } from '../base/shared-memory.js';
import { Verdict } from '../handoff/decode.js';
import { Checksummer } from '../kv/checksum.js';
import type { PagePool } from '../kv/pool.js';
import { type LeaseIdentity, ReadGuard } from '../kv/read-guard.js';
import { readTag, TAG_OWN } from '../kv/tag.js';
import type { StatsBlock } from './stats.js';

/** A request's pages in order, the epochs that their tags must carry, and whose they are. */
export interface PageTable {
  readonly pages: Int32Array;
  readonly epochs: Int32Array;
  readonly identity: LeaseIdentity;
}

export class PageChecks {
  /** What the last comparison that failed has found, in numbers; for the finding. */
  words = '';
  /** The page at which it failed; -1: none in particular. */
  page = -1;
  readonly #pool: PagePool;
  readonly #stats: StatsBlock;
  readonly #guard = new ReadGuard();
  readonly checksummer: Checksummer;
  readonly #sum = new Uint32Array(2);

  constructor(memory: SharedMemory, pool: PagePool, stats: StatsBlock) {
    this.#pool = pool;
    this.#stats = stats;
    this.checksummer = new Checksummer(memory);
  }

  get tagsChecked(): number {
    return this.#guard.tagsChecked;
  }

  /** The tags of the pages that hold the first `tokens` tokens, of which the first `sealed` pages are shared prefix. */
  tags(table: PageTable, tokens: number, sealed: number): number {
    const { pages, epochs, identity } = table;
    const verdict = this.#guard.check(this.#pool, pages, epochs, pages.length, identity, tokens, sealed);
    if (verdict === TAG_OWN) return Verdict.own;
    this.words = this.#guard.words(this.#pool, verdict, identity);
    this.page = this.#guard.lastPage;
    return Verdict.badTag;
  }

  /** The payloads of sealed pages against their tags: before a prompt builds on them. `prefix` of `pages` are. */
  sealed(pages: Int32Array, prefix: number): number {
    for (let place = 0; place < prefix; place++)
      if (!this.#isWhole(pages[place] ?? 0, place)) return Verdict.badChecksum;
    return Verdict.own;
  }

  /** Hashes the payload of `page` into `#sum`; whether its tag says the same. */
  #isWhole(page: number, place: number): boolean {
    this.checksummer.page(this.#pool, page, this.#sum);
    this.#stats.add('pagesVerified', 1);
    const tag = readTag(this.#pool, page);
    if (tag.checksumLow === this.#sum[0] && tag.checksumHigh === this.#sum[1]) return true;
    this.words = `Expected the payload of page ${page} at place ${place} to have the checksum in its tag, got another`;
    this.page = page;
    return false;
  }

  /** The payloads of all places against their tags, and those behind the prefix together against what prefill completed. */
  checksums(
    pages: Int32Array,
    prefix: number,
    count: number,
    said: { readonly low: number; readonly high: number } | null,
  ): number {
    if (this.sealed(pages, prefix) !== Verdict.own) return Verdict.badChecksum;
    const checksums = new Uint32Array(2 * count);
    for (let place = prefix; place < count; place++) {
      if (!this.#isWhole(pages[place] ?? 0, place)) return Verdict.badChecksum;
      checksums.set(this.#sum, 2 * place);
    }
    this.checksummer.combine(checksums, count, this.#sum);
    if (said !== null && said.low === this.#sum[0] && said.high === this.#sum[1]) return Verdict.own;
    this.page = -1;
    this.words = `Expected ${count} pages with the checksum that prefill completed, got another`;
    return Verdict.badChecksum;
  }
}
