/** Prompts of known length that state a marker of their tenant and ask for it, and what is found in answers. */
import { randomBytes } from 'node:crypto';
import { makeMarker, type Marker } from '../../src/markers/marker.js';
import { MarkerIndex } from '../../src/markers/marker-index.js';
import type { Prng } from '../../src/base/prng.js';
import { filler, recallPrompt } from '../support/recall.js';
import type { Said } from './ask.js';
import type { Side } from './scenario.js';

/** Of an answer that is to hold a marker: 30 characters, and some more. */
export const ANSWER_TOKENS = 40;

export interface Planted {
  readonly marker: Marker;
  readonly prompt: string;
}

/** Markers of one run, and who owns them. */
export class Markers {
  readonly #secret = randomBytes(32);
  readonly #made: Marker[] = [];

  next(owner: string): Marker {
    const marker = makeMarker(this.#secret, owner, 'run', this.#made.length);
    this.#made.push(marker);
    return marker;
  }

  /** A prompt of exactly `tokens` of the lab model, whose right answer begins with a new marker of `owner`. */
  prompt(chance: Prng, owner: string, tokens: number): Planted {
    const marker = this.next(owner);
    return { marker, prompt: recallPrompt(chance, marker.text, tokens) };
  }

  /** The longest stretch of a marker of anybody but `reader` in `text`: 0, or 12 to 30 characters. */
  foreign(reader: string, text: string): { readonly owner: string; readonly characters: number } | null {
    const hits = new MarkerIndex(this.#made).scanText(text).filter(({ marker }) => marker.owner !== reader);
    const longest = hits.sort((a, b) => b.length - a.length)[0];
    return longest === undefined ? null : { owner: longest.marker.owner, characters: longest.length };
  }
}

/** Text of exactly `tokens` tokens without any marker. */
export function plainPrompt(chance: Prng, tokens: number): string {
  return filler(chance, tokens);
}

/** A slow machine answers a few in the half minute that a gateway lets a request wait. */
const TOGETHER_THROUGH = 3;

/** Sends prompts that hold markers: all at once to an engine, a few at a time through the gateway. */
export async function sendPlanted(
  side: Side,
  planted: readonly Planted[],
  send: (prompt: string) => Promise<Said>,
): Promise<Said[]> {
  const together = side === 'direct' ? planted.length : TOGETHER_THROUGH;
  const said: Said[] = [];
  for (let at = 0; at < planted.length; at += together) {
    said.push(...(await Promise.all(planted.slice(at, at + together).map(({ prompt }) => send(prompt)))));
  }
  return said;
}

export function isRight(said: Said, { marker }: Planted): boolean {
  return said.status === 200 && said.end === 'whole' && said.text.trimStart().startsWith(marker.text);
}
