import { MARKER_CHARACTERS } from '../../markers/marker.js';

/** A run of more backslashes than this is no escape: it stands for six JSON texts, each inside the next. */
const BACKSLASHES_MAX = 64;
const HEX_DIGITS = 4;
/** As many characters as a guard can hold back, and a few to make it a power of two. */
const LENGTHS = 32;
/** What JSON's short escapes stand for; every other character after a backslash stands for itself. */
const SHORT: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f' };

/**
 * A text that comes in pieces, with JSON's escapes taken out: `\u004b` is a K, at any depth of JSON inside JSON, since a run of backslashes
 * counts as one. It knows how much of the text as it came its last characters are.
 */
export class EscapeView {
  /** UTF-16 units as they came, of each of the last characters; a ring. */
  readonly #lengths = new Uint8Array(LENGTHS);
  #count = 0;
  /** The escape that is still open: its backslashes, and the `u` and digits after them. */
  #backslashes = 0;
  #hex: string | null = null;
  #quiet = 0;

  /** Characters since the last escape; 0 while one is open. */
  get quiet(): number {
    return this.#quiet;
  }

  /** The characters that the piece completes. */
  push(piece: string): string {
    let out = '';
    for (let i = 0; i < piece.length; i++) out += this.#take(piece[i]!);
    return out;
  }

  /** UTF-16 units as they came of the last `characters`, 0 to 29, and of the escape that is open. */
  rawLength(characters: number): number {
    let length = this.#openLength;
    const known = Math.min(characters, this.#count, LENGTHS);
    for (let i = 1; i <= known; i++) length += this.#lengths[(this.#count - i) % LENGTHS]!;
    return length;
  }

  get #openLength(): number {
    return this.#backslashes + (this.#hex === null ? 0 : this.#hex.length + 1);
  }

  #take(char: string): string {
    if (this.#hex !== null) return this.#takeDigit(this.#hex, char);
    if (char === '\\') return this.#takeBackslash();
    if (this.#backslashes === 0) {
      this.#quiet++;
      return this.#give(char, 1);
    }
    if (char === 'u') {
      this.#hex = '';
      return '';
    }
    return this.#close(SHORT[char] ?? char, this.#backslashes + 1);
  }

  #takeBackslash(): string {
    this.#quiet = 0;
    if (++this.#backslashes <= BACKSLASHES_MAX) return '';
    return this.#close('\\', this.#backslashes);
  }

  #takeDigit(hex: string, char: string): string {
    if (!/[0-9a-fA-F]/.test(char)) {
      // No escape after all: what came of it says nothing, and the text begins anew.
      const length = this.#openLength;
      const closed = this.#close('\\', length);
      return closed + this.#take(char);
    }
    if (hex.length + 1 < HEX_DIGITS) {
      this.#hex = hex + char;
      return '';
    }
    return this.#close(String.fromCharCode(Number.parseInt(hex + char, 16)), this.#backslashes + 1 + HEX_DIGITS);
  }

  #close(char: string, length: number): string {
    this.#backslashes = 0;
    this.#hex = null;
    this.#quiet = 0;
    return this.#give(char, length);
  }

  #give(char: string, length: number): string {
    this.#lengths[this.#count++ % LENGTHS] = length;
    return char;
  }
}

/** The whole text with its escapes taken out. */
export function withoutEscapes(text: string): string {
  return text.includes('\\') ? new EscapeView().push(text) : text;
}

/** After so many characters without an escape, both views of a text end alike. */
export const QUIET_CHARACTERS: number = MARKER_CHARACTERS;
