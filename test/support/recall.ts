/** Prompts that state a marker once and ask for it; the lab model continues the longest match, so its answer is the marker. */
import type { Prng } from '../../src/base/prng.js';

/** Bytes of the cue that must occur nowhere else: as many tokens as the lab model compares. */
const CUE_TAIL_CHARACTERS = 5;

const LETTERS = 'abcdefghijklmnopqrstuvwxyz';

function word(chance: Prng): string {
  return Array.from({ length: chance.between(2, 9) }, () => LETTERS[chance.below(LETTERS.length)]).join('');
}

/** Exactly `length` characters of random words. */
export function filler(chance: Prng, length: number): string {
  let text = '';
  while (text.length < length) text += `${word(chance)}${chance.pick([' ', ' ', ' ', '. ', ', ', '\n'])}`;
  return text.slice(0, length);
}

/** A prompt of exactly `length` characters of ASCII; its greedy continuation begins with `marker`. */
export function recallPrompt(chance: Prng, marker: string, length: number): string {
  for (;;) {
    const cue = ` the code of ${word(chance)}: `;
    const rest = length - marker.length - 1 - 2 * cue.length;
    const before = chance.below(rest);
    const text = `${filler(chance, before)}${cue}${marker} ${filler(chance, rest - before)}${cue}`;
    if (text.split(cue.slice(-CUE_TAIL_CHARACTERS)).length === 3) return text;
  }
}
