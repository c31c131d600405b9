import type { Marker } from '../markers/marker.js';
import { HIT_CHARACTERS_MIN, MarkerIndex, type MarkerHit, type MarkerScanner } from '../markers/marker-index.js';
import type { Prompt } from '../upstream/upstream.js';
import { SENTINEL_MARKERS_MAX } from './bounds.js';

/** The owner of the markers in the gateway's own sentinels; no tenant's name has a space. */
export const SENTINEL_OWNER_NAME = 'gateway sentinel';

/** The markers that must turn up with their owner only: those that operators gave, and those of the latest sentinels. */
export class LiveMarkers {
  readonly #given: readonly Marker[];
  #sentinels: Marker[] = [];
  #index: MarkerIndex | null;

  /** The owner of each is a tenant's name. */
  constructor(given: readonly Marker[] = []) {
    this.#given = given;
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
  guard(owner: string, prompt: Prompt): StreamGuard | null {
    return this.#index === null ? null : new StreamGuard(this.#index.scanner(), owner, prompt);
  }
}

/**
 * The text of one answer on its way out. Twelve characters in a row of a live marker of another owner, which are not in the request,
 * never leave, however they are cut into pieces: what may become part of such a stretch is held back.
 */
export class StreamGuard {
  readonly #scanner: MarkerScanner;
  readonly #owner: string;
  readonly #prompt: Prompt;
  #held = '';
  #foreign: MarkerHit | null = null;

  constructor(scanner: MarkerScanner, owner: string, prompt: Prompt) {
    this.#scanner = scanner;
    this.#owner = owner;
    this.#prompt = prompt;
  }

  /** What proves that the answer is not the request's own; nothing leaves from then on. */
  get foreign(): MarkerHit | null {
    return this.#foreign;
  }

  /** Takes a piece and gives what may leave. */
  push(piece: string): string {
    if (this.#foreign !== null) return '';
    this.#foreign = this.#scanner.scan(piece).find((hit) => this.#isForeign(hit)) ?? null;
    if (this.#foreign !== null) return '';
    const text = this.#held + piece;
    const keep = Math.min(text.length, this.#scanner.holdBack);
    this.#held = text.slice(text.length - keep);
    return text.slice(0, text.length - keep);
  }

  /** What was held back, once no more comes. */
  flush(): string {
    const rest = this.#foreign === null ? this.#held : '';
    this.#held = '';
    return rest;
  }

  /** Also where the request has a part of the stretch: any twelve characters that it has not came from elsewhere. */
  #isForeign({ marker, markerOffset, length }: MarkerHit): boolean {
    if (marker.owner === this.#owner) return false;
    const texts =
      this.#prompt.kind === 'text' ? [this.#prompt.text] : this.#prompt.messages.map(({ content }) => content);
    for (let at = markerOffset; at + HIT_CHARACTERS_MIN <= markerOffset + length; at++) {
      const stretch = marker.text.slice(at, at + HIT_CHARACTERS_MIN);
      if (!texts.some((text) => text.includes(stretch))) return true;
    }
    return false;
  }
}
