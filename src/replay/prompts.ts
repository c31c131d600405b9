/** The texts of both tenants: synthetic, made from the seed, one character a token. */
import { Prng } from '../base/prng.js';
import { makeMarker, type Marker } from '../markers/marker.js';

const WORDS: readonly string[] =
  'amber basil cedar ember flint grove heron inlet jetty kiosk lemon maple north ocean pearl river stone tulip umber violet willow xenon yacht zebra'.split(
    ' ',
  );
/** Not a time: markers of a replay belong to its seed, so that a replay can be repeated. */
const PERIOD = 'replay';
const SECRET_CHARACTERS = 32;
/** Markers that acme has in one replay: one a prompt. */
export const MARKERS_MAX = 16;

export class Prompts {
  readonly markers: readonly Marker[];
  readonly #chance: Prng;
  #markerNext = 0;

  constructor(seed: number) {
    this.#chance = new Prng(seed);
    const secret = Buffer.from(`cofferdam replay ${seed}`.padEnd(SECRET_CHARACTERS, '.'));
    this.markers = Array.from({ length: MARKERS_MAX }, (_, index) => makeMarker(secret, 'acme', PERIOD, index));
  }

  /** A prompt of acme with a marker that no other has: a note that repeats the key, as notes and logs do. */
  acme(tokens: number): string {
    const marker = this.markers[this.#markerNext++ % MARKERS_MAX] as Marker;
    const line = `The ${this.#chance.pick(WORDS)} key is ${marker.text}. `;
    return line.repeat(Math.ceil(tokens / line.length)).slice(0, tokens);
  }

  /** A prompt of globex: words, and nothing of a marker. */
  globex(tokens: number): string {
    let text = '';
    while (text.length < tokens) text += `${this.#chance.pick(WORDS)} `;
    return text.slice(0, tokens);
  }
}
