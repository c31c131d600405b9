import type { Marker } from '../markers/marker.js';
import { MarkerIndex } from '../markers/marker-index.js';
import { MarkerSet } from '../markers/marker-set.js';
import type { Prompt } from '../upstream/upstream.js';
import { SENTINEL_MARKERS_MAX } from './bounds.js';
import { AnswerGuard } from './guard/answer-guard.js';
import type { HoldBack } from './guard/channel.js';

/** The owner of the markers in the gateway's own sentinels; no tenant's name has a space. */
export const SENTINEL_OWNER_NAME = 'gateway sentinel';

/** The markers that must turn up with their owner only: those that operators gave, and those of the latest sentinels. */
export class LiveMarkers {
  #given: MarkerIndex;
  #holdBack: HoldBack;
  #sentinels: Marker[] = [];
  #set: MarkerSet;

  /** The owner of each is a tenant's name. `holdBack`: how much of an answer's end waits; null: no more than must. */
  constructor(given: readonly Marker[] = [], holdBack: HoldBack = null) {
    this.#given = new MarkerIndex(given);
    this.#holdBack = holdBack;
    this.#set = new MarkerSet([this.#given]);
  }

  /** Instead of those that operators gave before; for answers that begin from now on. */
  give(given: readonly Marker[], holdBack: HoldBack): void {
    this.#given = new MarkerIndex(given);
    this.#holdBack = holdBack;
    this.#set = new MarkerSet([this.#given, new MarkerIndex(this.#sentinels)]);
  }

  addSentinel(marker: Marker): void {
    this.#sentinels = [...this.#sentinels, marker].slice(-SENTINEL_MARKERS_MAX);
    this.#set = new MarkerSet([this.#given, new MarkerIndex(this.#sentinels)]);
  }

  /** Whether `text` holds a stretch of a live marker other than `own`. */
  holdsOther(text: string, own: Marker): boolean {
    return this.#set.scanText(text).some(({ marker }) => marker.text !== own.text);
  }

  /** A guard for one answer to `owner`; null while there is no live marker. */
  guard(owner: string, prompt: Prompt): AnswerGuard | null {
    return this.#set.isEmpty ? null : new AnswerGuard(this.#set, owner, prompt, this.#holdBack);
  }
}
