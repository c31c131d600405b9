/**
 * Which sealed page holds the KV of which beginning of a prompt. Keyed by the tenant's salt and a cryptographic chain hash: the
 * hash of a page covers every token before it. A hit compares token ids as well, so that no collision ever hands out a wrong page.
 */
import { createHash } from 'node:crypto';
import { assert } from '../base/assert.js';

/** Deviations that faults switch on; in health both are false. */
export interface PrefixIndexFaults {
  /** `unsalted-prefix`: the salt is left out of the key. */
  readonly unsalted: boolean;
  /** `prefix-hash-collision`: a weak hash decides alone. */
  readonly weakHash: boolean;
}

export interface SealedPage {
  readonly page: number;
  /** The chain hash as the ledger holds it: its first 31 bits. */
  readonly hash: number;
}

interface Entry extends SealedPage {
  readonly key: string;
  readonly place: number;
  /** The token ids of the page, and the page before it in its chain (-1: none). */
  readonly tokens: Int32Array;
  readonly before: number;
}

/** What the weak hash tells apart: few enough that a collision is found by trying. */
const WEAK_HASHES = 97;

export class PrefixIndex {
  readonly #pageTokens: number;
  readonly #faults: PrefixIndexFaults;
  readonly #byKey = new Map<string, Entry>();
  /** By page, in the order of last use: the first is the one to give up first. */
  readonly #byPage = new Map<number, Entry>();

  constructor(pageTokens: number, faults: PrefixIndexFaults = { unsalted: false, weakHash: false }) {
    assert(pageTokens >= 1, 'a page holds at least one token');
    this.#pageTokens = pageTokens;
    this.#faults = faults;
  }

  get size(): number {
    return this.#byPage.size;
  }

  /**
   * The sealed pages that hold the beginning of `tokens` under `salt`, place by place, at most `pagesMax` of them. What it proposes
   * the ledger still has to grant.
   */
  find(salt: string, tokens: Int32Array, pagesMax: number): SealedPage[] {
    const found: SealedPage[] = [];
    const chain = new ChainHash();
    let before = -1;
    for (let place = 0; place < pagesMax; place++) {
      const own = tokens.subarray(place * this.#pageTokens, (place + 1) * this.#pageTokens);
      if (own.length < this.#pageTokens) break;
      const entry = this.#byKey.get(this.#key(salt, place, own, chain.next(own)));
      if (entry === undefined || (!this.#faults.weakHash && !isSame(entry, own, before))) break;
      found.push(entry);
      before = entry.page;
    }
    // The first page of a chain stays longest: without it the later ones are of no use.
    for (let i = found.length - 1; i >= 0; i--) this.#touch(found[i].page);
    return found;
  }

  /** The hashes of the whole pages of a prompt, as `add` and the ledger want them: one for each place. */
  hashes(salt: string, tokens: Int32Array, places: number): { readonly key: string; readonly hash: number }[] {
    const chain = new ChainHash();
    return Array.from({ length: places }, (_, place) => {
      const own = tokens.subarray(place * this.#pageTokens, (place + 1) * this.#pageTokens);
      const key = this.#key(salt, place, own, chain.next(own));
      return { key, hash: shortHash(key) };
    });
  }

  /** Whether a page for this key is known behind the same page: then another one need not be sealed. */
  has(key: string, before: number): boolean {
    return this.#byKey.get(key)?.before === before;
  }

  /** A page was sealed. `tokens` are those of this page; `before` is the page of the place before it, -1 at the beginning. */
  add(key: string, place: number, tokens: Int32Array, page: number, before: number): void {
    assert(tokens.length === this.#pageTokens, 'only a whole page is sealed');
    this.drop(page);
    const entry: Entry = { key, place, tokens: tokens.slice(), page, before, hash: shortHash(key) };
    this.#byKey.set(key, entry);
    this.#byPage.set(page, entry);
  }

  /** The page is no longer sealed. */
  drop(page: number): void {
    const entry = this.#byPage.get(page);
    if (entry === undefined) return;
    this.#byPage.delete(page);
    if (this.#byKey.get(entry.key) === entry) this.#byKey.delete(entry.key);
  }

  /** Pages in the order in which they should be given up: longest unused first, and of one chain the last page first. A page may be dropped while they are gone through. */
  leastRecent(): IterableIterator<number> {
    return this.#byPage.keys();
  }

  #touch(page: number): void {
    const entry = this.#byPage.get(page);
    if (entry === undefined) return;
    this.#byPage.delete(page);
    this.#byPage.set(page, entry);
  }

  #key(salt: string, place: number, own: Int32Array, chained: string): string {
    const hash = this.#faults.weakHash ? weakHash(own) : chained;
    return `${this.#faults.unsalted || this.#faults.weakHash ? '' : salt}:${place}:${hash}`;
  }
}

class ChainHash {
  #digest: Buffer = Buffer.alloc(0);

  next(tokens: Int32Array): string {
    const bytes = Buffer.from(tokens.buffer, tokens.byteOffset, tokens.byteLength);
    this.#digest = createHash('sha256').update(this.#digest).update(bytes).digest();
    return this.#digest.toString('base64url');
  }
}

function isSame(entry: Entry, tokens: Int32Array, before: number): boolean {
  if (entry.before !== before) return false;
  for (let i = 0; i < tokens.length; i++) if (entry.tokens[i] !== tokens[i]) return false;
  return true;
}

/** What the fault `prefix-hash-collision` takes for the hash of a page. */
export function weakHash(tokens: Int32Array): string {
  let sum = 0;
  for (const token of tokens) sum = (sum + token) % WEAK_HASHES;
  return `weak-${sum}`;
}

function shortHash(key: string): number {
  return createHash('sha256').update(key).digest().readUInt32BE(0) >>> 1;
}
