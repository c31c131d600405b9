/** Whose markers stand in an answer: each answer is searched whole, in every string, for the markers of everyone else. */
import { enumerateMarkers, type Marker, makeMarker } from '../markers/marker.js';
import { isMarkerText, MarkerIndex } from '../markers/marker-index.js';
import type { Answer } from './answer.js';

export interface Foreign {
  /** The tenant whose marker it is; null: no tenant of this run, so somebody's whom nobody asked. */
  readonly owner: string | null;
  /** The marker; null where it is not ours, and then only its fingerprint is kept. */
  readonly marker: string | null;
  /** The place of the string in the answer, and where in it the hit begins, in characters. */
  readonly place: string;
  readonly offset: number;
  /** 12 to 30 characters of the marker, from its character `markerOffset` on. */
  readonly length: number;
  readonly markerOffset: number;
}

const MARKERS_PER_TENANT = 4096;
const PERIOD = 'probe';
const WELL_FORMED = /KVC-[a-z2-7]{26}/g;

export class MarkerBook {
  readonly #secret: Uint8Array;
  readonly #index: MarkerIndex;
  readonly #next = new Map<string, number>();

  /** `secret` is the run's own, so that no marker of another run is ever given out again. */
  constructor(secret: Uint8Array, tenants: readonly string[]) {
    this.#secret = secret;
    this.#index = new MarkerIndex(enumerateMarkers(secret, tenants, [PERIOD], MARKERS_PER_TENANT));
  }

  /** A marker of `tenant` that was not given out before. */
  fresh(tenant: string): Marker {
    const index = this.#next.get(tenant) ?? 0;
    if (index >= MARKERS_PER_TENANT)
      throw new Error(`Expected at most ${MARKERS_PER_TENANT} markers a tenant in one run.`);
    this.#next.set(tenant, index + 1);
    return makeMarker(this.#secret, tenant, PERIOD, index);
  }

  /** What stands in an answer and is not its tenant's; `own` are texts that the tenant sent, whose markers may come back. */
  foreign(answer: Answer, own: string): Foreign[] {
    const found: Foreign[] = [];
    for (const [place, text] of answer.strings) {
      for (const { marker, textOffset, length, markerOffset } of this.#index.scanText(text)) {
        if (marker.owner === answer.tenant) continue;
        if (own.includes(text.slice(textOffset, textOffset + length))) continue;
        found.push({ owner: marker.owner, marker: marker.text, place, offset: textOffset, length, markerOffset });
      }
      found.push(...this.#unknown(text, place, own));
    }
    return found;
  }

  /** Well-formed markers that this run never made: planted by somebody else. */
  #unknown(text: string, place: string, own: string): Foreign[] {
    const found: Foreign[] = [];
    for (const { 0: match, index: offset } of text.matchAll(WELL_FORMED)) {
      if (!isMarkerText(match) || own.includes(match) || this.#index.scanText(match).length > 0) continue;
      found.push({ owner: null, marker: null, place, offset, length: match.length, markerOffset: 0 });
    }
    return found;
  }
}
