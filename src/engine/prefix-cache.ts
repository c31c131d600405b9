/** The prefix cache of one node: an index over its sealed pages, and the events by which the ledger grants, seals and evicts them. */
import { freeCount } from '../handoff/ledger.js';
import { FAULT } from '../handoff/rules.js';
import { PageState, PG, pageAt } from '../handoff/layout.js';
import { E, EventKind } from '../handoff/messages.js';
import { PrefixIndex } from '../kv/prefix-index.js';
import type { EngineConfig } from './config.js';
import type { Machine } from './machine.js';

/** What a slot may leave behind. */
interface Sealing {
  readonly keys: readonly { readonly key: string; readonly hash: number }[];
  readonly prompt: Int32Array;
  /** By place. */
  readonly pages: Int32Array;
}

export class PrefixCache {
  readonly #machine: Machine;
  readonly #pageTokens: number;
  readonly #index: PrefixIndex | null;
  #sealing: Sealing | null = null;
  /** Sealed pages that hold what they must not: nobody is given them any more, and they go back when their last reader leaves. */
  readonly #condemned = new Set<number>();
  readonly #onEvicted: () => void;

  /** `onEvicted`: a page went back to the free list. */
  constructor(machine: Machine, config: EngineConfig, onEvicted: () => void) {
    this.#machine = machine;
    this.#onEvicted = onEvicted;
    this.#pageTokens = config.pageTokens;
    const has = (fault: number): boolean => ((config.rules.faults >> fault) & 1) === 1;
    this.#index = config.prefixCache
      ? new PrefixIndex(config.pageTokens, {
          unsalted: has(FAULT['unsalted-prefix']),
          weakHash: has(FAULT['prefix-hash-collision']),
        })
      : null;
  }

  /**
   * Proposes the sealed pages that hold the beginning of the prompt. The last token is always computed: its logits give the first
   * token of the answer.
   */
  propose(slot: number, attempt: number, salt: string, prompt: Int32Array): void {
    if (this.#index === null) return;
    const found = this.#index.find(salt, prompt, Math.floor((prompt.length - 1) / this.#pageTokens));
    if (found.length === 0) return;
    const event = this.#machine.event(EventKind.hit, slot, attempt);
    event[E.count] = found.length;
    for (const [place, { page, hash }] of found.entries()) {
      event[E.list + 2 * place] = page;
      event[E.list + 2 * place + 1] = hash;
    }
    this.#machine.step(event);
  }

  /** Evicts sealed pages that nobody reads until `pages` are free, or none is left to evict. */
  makeRoom(pages: number): void {
    if (this.#index === null || freeCount(this.#machine.view) >= pages) return;
    for (const page of this.#condemned) this.#evict(page);
    for (const page of this.#index.leastRecent()) {
      if (freeCount(this.#machine.view) >= pages) return;
      if (this.#evict(page)) this.#index.drop(page);
    }
  }

  /** What lies in a sealed page is not what was sealed. */
  condemn(page: number): void {
    const { view } = this.#machine;
    const isSealed = page >= 0 && view.cells[pageAt(view, page) + PG.state] === PageState.sealed;
    if (this.#index === null || !isSealed) return;
    this.#index.drop(page);
    this.#condemned.add(page);
  }

  /** False: somebody reads it. */
  #evict(page: number): boolean {
    const before = freeCount(this.#machine.view);
    const event = this.#machine.event(EventKind.evict, 0, 0);
    event[E.pages] = page;
    this.#machine.step(event);
    if (freeCount(this.#machine.view) === before) return false;
    this.#condemned.delete(page);
    this.#onEvicted();
    return true;
  }

  /** Runs `step` on `event` with the whole pages of the prompt listed to be sealed; `onSeal` finds them by place. */
  sealWith(event: Int32Array, salt: string, prompt: Int32Array, pages: Int32Array, prefix: number): void {
    const places = this.#index === null ? 0 : Math.floor(prompt.length / this.#pageTokens);
    if (this.#index === null || places <= prefix) return this.#machine.step(event);
    const keys = this.#index.hashes(salt, prompt, places);
    let count = 0;
    // Last place first: the first page of a chain is then the one used last, and is given up last.
    for (let place = places - 1; place >= prefix; place--) {
      const { key, hash } = keys[place] ?? { key: '', hash: 0 };
      if (this.#index.has(key, pageBefore(pages, place))) continue;
      event[E.list + 2 * count] = place;
      event[E.list + 2 * count + 1] = hash;
      count++;
    }
    event[E.count] = count;
    this.#sealing = { keys, prompt, pages };
    try {
      this.#machine.step(event);
    } finally {
      this.#sealing = null;
    }
  }

  /** The ledger has sealed `page`. Answers its place, -1 where it is not one of those that were listed. */
  onSeal(page: number): number {
    const sealing = this.#sealing;
    if (this.#index === null || sealing === null) return -1;
    const place = sealing.pages.indexOf(page);
    const key = sealing.keys[place]?.key;
    if (key === undefined) return -1;
    const own = sealing.prompt.subarray(place * this.#pageTokens, (place + 1) * this.#pageTokens);
    this.#index.add(key, place, own, page, pageBefore(sealing.pages, place));
    return place;
  }
}

function pageBefore(pages: Int32Array, place: number): number {
  return place === 0 ? -1 : (pages[place - 1] ?? -1);
}
