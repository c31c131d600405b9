/**
 * Whose bytes a request reads. Looks at the tags in the pages of a request's table while it decodes: attention reads all of them at
 * every step, so a foreign tag there is a page whose words can come out.
 */
import type { InlineEngine } from '../engine/inline-engine.js';
import { DecodePhase } from '../handoff/decode.js';
import { getSlot, listAt } from '../handoff/layout.js';
import { isWritten, OWNER_LEASE, OWNER_TENANT, type PageTag, readTag, WRITER_DECODE } from '../kv/tag.js';
import type { MarkerHit } from '../markers/marker-index.js';
import { type Call, type TenantName, TENANTS } from './call.js';

/** A page of another request in the table of the one that is watched. */
export interface ForeignPage {
  readonly page: number;
  /** In the table of the request that read it. */
  readonly place: number;
  readonly tag: PageTag;
  /** Whose the bytes are; null: of a request that the script did not send. */
  readonly owner: Call | null;
}

export class PageWatch {
  readonly #engine: InlineEngine;
  readonly #calls: readonly Call[];
  readonly #seen = new Map<string, ForeignPage>();
  #watched: Call | null = null;

  constructor(engine: InlineEngine, calls: readonly Call[]) {
    this.#engine = engine;
    this.#calls = calls;
  }

  /** From now on the pages of this request are looked at after every turn. */
  watch(call: Call): void {
    this.#watched = call;
  }

  get foreign(): readonly ForeignPage[] {
    return [...this.#seen.values()];
  }

  look(): void {
    const call = this.#watched;
    if (call === null || call.slot === null || call.end !== null) return;
    const { view } = this.#engine.decode.machine;
    const phase = getSlot(view, call.slot, 'phase');
    if (phase !== DecodePhase.decoding && phase !== DecodePhase.reading) return;
    const { pageTokens } = this.#engine.config;
    // Attention reads what the prompt should have filled, and what came behind it.
    const places = Math.ceil((getSlot(view, call.slot, 'tokens') + call.tokens.length) / pageTokens);
    const held = Math.min(places, getSlot(view, call.slot, 'held'));
    for (let place = 0; place < held; place++) this.#note(call, view.cells[listAt(view, call.slot, 0) + place]!, place);
  }

  /** A page whose payload stays while its header is replaced: to be called before the header lands. */
  noteTorn(page: number, place: number): void {
    if (this.#watched !== null) this.#note(this.#watched, page, place);
  }

  #note(call: Call, page: number, place: number): void {
    const pool = this.#engine.decodePool;
    if (!isWritten(pool, page)) return;
    const tag = readTag(pool, page);
    if (tag.ownerKind === OWNER_TENANT && TENANTS[tag.owner - 1] === call.tenant) return;
    const owner = tag.ownerKind === OWNER_LEASE ? this.#ownerOf(tag) : this.#lastOf(TENANTS[tag.owner - 1]);
    if (owner === call) return;
    this.#seen.set(`${page} ${tag.owner} ${tag.attempt} ${tag.place}`, { page, place, tag, owner });
  }

  /** Who sealed a page for its tenant: in these scripts, the tenant's last call before the one that is watched. */
  #lastOf(tenant: TenantName | undefined): Call | null {
    return this.#calls.findLast((call) => call.tenant === tenant && call !== this.#watched) ?? null;
  }

  /** The call that had the slot under this attempt or, where it was tried again, an earlier one. */
  #ownerOf(tag: PageTag): Call | null {
    let found: Call | null = null;
    for (const call of this.#calls) {
      if (call.slot === tag.owner && call.attempt <= tag.attempt && (found?.attempt ?? -1) <= call.attempt)
        found = call;
    }
    return found;
  }

  /** The foreign pages that hold some of the characters of a hit. */
  sourcesOf(hit: MarkerHit): ForeignPage[] {
    const { pageTokens } = this.#engine.config;
    return this.foreign.filter(({ tag, owner }) => {
      const text = owner?.pageText ?? '';
      const from = tag.place * pageTokens;
      for (let at = text.indexOf(hit.marker.text); at >= 0; at = text.indexOf(hit.marker.text, at + 1)) {
        const begin = at + hit.markerOffset;
        if (begin < from + pageTokens && begin + hit.length > from) return true;
      }
      return false;
    });
  }
}

export function writerOf(tag: PageTag): string {
  return tag.writer === WRITER_DECODE ? 'decode' : `prefill, incarnation ${tag.writer}`;
}
