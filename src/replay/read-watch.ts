/** The truth that no guard knows: whose pages a token was computed over when it leaves decode, and who shares whose sealed pages. */
import { DecodePhase } from '../handoff/decode.js';
import { type Actor, getPage, getSlot, listAt, type View } from '../handoff/layout.js';
import { E, eventName } from '../handoff/messages.js';
import type { PagePool } from '../kv/pool.js';
import { isWritten, OWNER_TENANT, readTag } from '../kv/tag.js';
import type { Part } from './trace-cast.js';

export class ReadWatch {
  /** Tokens of the victim that were computed over a page that was not its own. */
  foreignTokens = 0;
  /** Sealed pages of another tenant that a request was given. */
  sharedPages = 0;
  readonly #pool: PagePool;
  readonly #parts: readonly Part[];
  readonly #victim: () => Part | undefined;
  readonly #foreign = new Set<string>();
  readonly #torn = new Set<string>();

  constructor(pool: PagePool, parts: readonly Part[], victim: () => Part | undefined) {
    this.#pool = pool;
    this.#parts = parts;
    this.#victim = victim;
  }

  /** What was read that was not the reader's own, in words. */
  get foreignPages(): readonly string[] {
    return [...this.#foreign];
  }

  /** Of the write to this page only the header lands. */
  noteTorn(page: number, slot: number, attempt: number): void {
    this.#torn.add(`${page} ${slot} ${attempt}`);
  }

  /** An event of a machine, with the record behind it. */
  look(actor: Actor, view: View, event: Int32Array): void {
    if (actor !== 'decode') return;
    const slot = event[E.slot] ?? 0;
    const name = eventName(event[E.kind] ?? 0);
    if (name === 'hit') this.sharedPages += foreignShares(view, slot);
    if (name !== 'readEnd' || getSlot(view, slot, 'phase') !== DecodePhase.decoding) return;
    const foreign = this.#foreignIn(view, slot);
    if (foreign.length > 0 && slot === this.#victim()?.slot) this.foreignTokens++;
    for (const words of foreign) this.#foreign.add(words);
  }

  #foreignIn(view: View, slot: number): string[] {
    const words: string[] = [];
    for (let place = 0; place < getSlot(view, slot, 'promptPages'); place++) {
      const page = pageIn(view, slot, place);
      const owner = this.#ownerOf(view, slot, place, page);
      if (owner !== null) words.push(`page ${page}, ${owner}`);
    }
    return words;
  }

  /** Whose content is in the page; null: the slot's own. */
  #ownerOf(view: View, slot: number, place: number, page: number): string | null {
    const attempt = getSlot(view, slot, 'attempt');
    if (this.#torn.has(`${page} ${slot} ${attempt}`)) return 'of which only the header arrived';
    if (!isWritten(this.#pool, page)) return 'which nobody wrote to';
    const tag = readTag(this.#pool, page);
    if (tag.ownerKind === OWNER_TENANT) {
      return tag.owner === getSlot(view, slot, 'tenant') ? null : `sealed for tenant ${tag.owner}`;
    }
    const isLeaseOwn = tag.owner === slot && tag.attempt === attempt && tag.place === place;
    if (isLeaseOwn && tag.epoch === getPage(view, page, 'epoch')) return null;
    const owner = this.#parts.findLast((part) => part.slot === tag.owner && part.attempt <= tag.attempt);
    return `written for ${isLeaseOwn ? 'an earlier lease of ' : ''}${owner?.name ?? 'nobody'}`;
  }
}

function foreignShares(view: View, slot: number): number {
  const places = Array.from({ length: getSlot(view, slot, 'prefix') }, (_, place) => place);
  const tenant = getSlot(view, slot, 'tenant');
  return places.filter((place) => getPage(view, pageIn(view, slot, place), 'tenant') !== tenant).length;
}

const pageIn = (view: View, slot: number, place: number): number => view.cells[listAt(view, slot, 0) + place] ?? 0;
