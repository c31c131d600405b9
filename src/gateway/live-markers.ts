import type { Marker } from '../markers/marker.js';
import { MarkerIndex } from '../markers/marker-index.js';
import type { Prompt } from '../upstream/upstream.js';
import { SENTINEL_MARKERS_MAX } from './bounds.js';
import { AnswerGuard } from './guard/answer-guard.js';
import type { HoldBack } from './guard/channel.js';

/** The owner of the markers in the gateway's own sentinels; no tenant's name has a space. */
export const SENTINEL_OWNER_NAME = 'gateway sentinel';

/** The markers that must turn up with their owner only: those that operators gave, and those of the latest sentinels. */
export class LiveMarkers {
  readonly #given: readonly Marker[];
  readonly #holdBack: HoldBack;
  #sentinels: Marker[] = [];
  #index: MarkerIndex | null;

  /** The owner of each is a tenant's name. `holdBack`: how much of an answer's end waits; null: no more than must. */
  constructor(given: readonly Marker[] = [], holdBack: HoldBack = null) {
    this.#given = given;
    this.#holdBack = holdBack;
    this.#index = given.length === 0 ? null : new MarkerIndex(given);
  }

  addSentinel(marker: Marker): void {
    this.#sentinels = [...this.#sentinels, marker].slice(-SENTINEL_MARKERS_MAX);
    this.#index = new MarkerIndex([...this.#given, ...this.#sentinels]);
  }

  /** Whether `text` holds a stretch of a live marker other than `own`. */
  holdsOther(text: string, own: Marker): boolean {
    return this.#index?.scanText(text).some(({ marker }) => marker.text !== own.text) ?? false;
  }

  /** A guard for one answer to `owner`; null while there is no live marker. */
  guard(owner: string, prompt: Prompt): AnswerGuard | null {
    return this.#index === null ? null : new AnswerGuard(this.#index, owner, prompt, this.#holdBack);
  }
}
