/** Sets of code points, for the patterns by which tokenizers cut a text into pieces. */

import { ADDED_SINCE_UNICODE_14 } from './added-characters.data.js';

export const CODE_POINTS = 0x110000;

/** Sorted, disjoint ranges, both ends included: low, high, low, high, … */
export type CharSet = readonly number[];

/** Planes that hold assigned characters other than private ones. */
const PLANES: readonly number[] = [0, 1, 2, 3, 14];

/** Properties that a pattern may name, as ECMAScript writes them. */
const PROPERTIES: ReadonlyMap<string, string> = new Map([
  ...['L', 'Lu', 'Ll', 'Lt', 'Lm', 'Lo', 'M', 'Mn', 'Mc', 'Me', 'N', 'Nd', 'Nl', 'No', 'P', 'S', 'Z'].map(
    (name) => [name, name] as const,
  ),
  ...['Han', 'Hiragana', 'Katakana', 'Hangul', 'Latin', 'Cyrillic', 'Greek', 'Arabic', 'Hebrew', 'Thai'].map(
    (name) => [name, `Script=${name}`] as const,
  ),
  ['White_Space', 'White_Space'],
]);

const known = new Map<string, CharSet>();

/** The code points with a property, kept once found; null for a property that is not in the list. */
export function property(name: string): CharSet | null {
  const written = PROPERTIES.get(name);
  if (written === undefined) return null;
  let set = known.get(name);
  if (set === undefined) {
    set = union(PLANES.map((plane) => inPlane(plane, new RegExp(`\\p{${written}}+`, 'gu'))));
    known.set(name, set);
  }
  return set;
}

/** What engines of this day may know of Unicode differs by version, so some characters have no certain place in a pattern. */
export interface UncertainCharacters {
  /** Given to no character yet, as Node knows it; those that never will be are not among them. */
  readonly unassigned: CharSet;
  /** Characters since Unicode 15. To an older library they are like `UNASSIGNED_EXAMPLE`. */
  readonly added: CharSet;
}

/** A code point that is given to no character in any version. */
export const UNASSIGNED_EXAMPLE = 0xffff;

let uncertain: UncertainCharacters | undefined;

export function uncertainCharacters(): UncertainCharacters {
  uncertain ??= {
    unassigned: union([
      ...PLANES.map((plane) => inPlane(plane, /(?:(?!\p{Noncharacter_Code_Point})\p{Cn})+/gu)),
      [0x40000, 0xdfffd],
    ]),
    added: ADDED_SINCE_UNICODE_14.trim()
      .split(/\s/)
      .flatMap((range) => {
        const [low, high] = range.split('-').map((hex) => Number.parseInt(hex, 16));
        return [low!, high ?? low!];
      }),
  };
  return uncertain;
}

/** Whether normalising may move or change the character: a mark, or one that is made of others. */
export function isMovedByNormalizing(code: number): boolean {
  const char = String.fromCodePoint(code);
  return /\p{M}/u.test(char) || char.normalize('NFD') !== char;
}

function inPlane(plane: number, runs: RegExp): CharSet {
  const units = plane === 0 ? 1 : 2;
  const first = plane * 0x10000;
  let text = '';
  // Surrogates are no characters; a placeholder keeps each character at its own place.
  for (let i = 0; i < 0x10000; i++) {
    text += String.fromCodePoint(plane === 0 && i >= 0xd800 && i <= 0xdfff ? 0xfffe : first + i);
  }
  const ranges: number[] = [];
  for (const { 0: run, index } of text.matchAll(runs)) {
    ranges.push(first + index / units, first + (index + run.length) / units - 1);
  }
  return ranges;
}

export function union(sets: readonly CharSet[]): CharSet {
  const ranges: [number, number][] = [];
  for (const set of sets) for (let i = 0; i < set.length; i += 2) ranges.push([set[i]!, set[i + 1]!]);
  ranges.sort((a, b) => a[0] - b[0]);
  const joined: number[] = [];
  for (const [low, high] of ranges) {
    const last = joined.length - 1;
    if (last >= 0 && low <= joined[last]! + 1) joined[last] = Math.max(joined[last]!, high);
    else joined.push(low, high);
  }
  return joined;
}

export function complement(set: CharSet): CharSet {
  const rest: number[] = [];
  let from = 0;
  for (let i = 0; i < set.length; i += 2) {
    if (set[i]! > from) rest.push(from, set[i]! - 1);
    from = set[i + 1]! + 1;
  }
  if (from < CODE_POINTS) rest.push(from, CODE_POINTS - 1);
  return rest;
}

/** The letter in both cases, and what Unicode folds to it: U+017F to s, U+212A to k. */
export function anyCase(char: string): CharSet {
  const codes = [char.toLowerCase(), char.toUpperCase()].map((one) => one.codePointAt(0)!);
  if (codes[0] === 0x73) codes.push(0x17f);
  if (codes[0] === 0x6b) codes.push(0x212a);
  return union(codes.map((code) => [code, code]));
}
