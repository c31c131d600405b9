import { assert } from '../../base/assert.js';

/** What a marker looks like. */
export interface MarkerShape {
  /** Characters that every marker begins with. */
  readonly prefixCharacters: number;
  /** Random characters behind them. */
  readonly codeCharacters: number;
  /** Random bits of a character of the code. */
  readonly bitsPerCharacter: number;
  /** Random bits of the whole code: its last character has what is left. */
  readonly codeBits: number;
}

/** `KVC-` and 128 bits in base32: 26 characters, the last with 3 bits (a test holds it to `src/markers`). */
export const COFFERDAM_MARKER: MarkerShape = {
  prefixCharacters: 4,
  codeCharacters: 26,
  bitsPerCharacter: 5,
  codeBits: 128,
};

/**
 * An upper bound for the chance (0 to 1) that a text of `characters`, written without knowledge of the markers, holds a stretch
 * of `fragment` characters of any of `markers` markers. Whatever the text is: a stretch at one place of it equals the one at
 * offset o of a random marker with chance 2^-bits(o), where bits(o) counts the random bits there (none in the prefix), and by
 * the union bound the chance is at most markers × places × Σ over o of 2^-bits(o). For 12 characters the offset 0 weighs most:
 * 8 random characters, 40 bits; the sum is 2^-39.95, so one marker and a million characters stay below 1e-6.
 */
export function fragmentChanceBound(
  characters: number,
  markers = 1,
  fragment = 12,
  shape: MarkerShape = COFFERDAM_MARKER,
): number {
  const length = shape.prefixCharacters + shape.codeCharacters;
  assert(characters >= 0 && markers >= 0, 'characters and markers are counted from zero up');
  assert(fragment > 0 && fragment <= length, 'a fragment has at least one character and no more than a marker');
  const places = Math.max(0, characters - fragment + 1);
  const bitsBefore = (end: number) =>
    Math.min(shape.codeBits, Math.max(0, end - shape.prefixCharacters) * shape.bitsPerCharacter);
  let sum = 0;
  for (let offset = 0; offset + fragment <= length; offset++)
    sum += 2 ** -(bitsBefore(offset + fragment) - bitsBefore(offset));
  return Math.min(1, markers * places * sum);
}
