/** Texts that are meant to be counted wrongly: every rule of a tokenizer has its edge here. */
import type { Prng } from '../../src/base/prng.js';

const SPACES = [
  ' ',
  '  ',
  '\n',
  '\r\n',
  '\t',
  '\n\n',
  ' \n',
  '\u0085',
  '\u00a0',
  '\u3000',
  '\u2028',
  '\ufeff',
  '\u200b',
  '\u1680',
  '\v\f',
  '\x1c',
];
const WORDS = [
  'the',
  'Hello',
  'tokenizer',
  'HTTPServer',
  'getElementById',
  'über',
  'naïve',
  'ﬁne',
  'straße',
  'İstanbul',
  'мир',
  '世界',
  'かな',
  'カナ',
  '한국어',
  'שלום',
  'नमस्ते',
  'ก็',
];
const CONTRACTIONS = ["'s", "'S", "'ſ", "'t", "'re", "'RE", "'Ve", "'m", "'ll", "'lL", "'d", "'x", '’s', "''", "'K"];
const DIGITS = ['0', '12', '123', '1234', '3.14159', '٣٤٥', '½²', 'Ⅷ', '１２', '1e10'];
const SIGNS = [
  '...',
  '!?',
  '{}',
  '());',
  '</',
  '<|',
  '|>',
  '://',
  '--',
  '_',
  '$',
  '`',
  '\\n',
  '€',
  '→',
  '¿',
  '、',
  '。',
  '/',
  '//\n',
];
const MARKS = [
  'e\u0301',
  'a\u0308\u0323',
  '\u0301',
  '\u0338',
  '\u1112\u1161\u11ab',
  '\ud55c\u11a8',
  '\u0958',
  '\u212b',
  '\u2126',
  '\u0f73',
  '👩\u200d👧',
  '🇩🇪',
  '👍🏽',
  '\ufe0f',
];
const CONTROLS = [
  '\0',
  '\x01',
  '\x7f',
  '\x9f',
  '\u00ad',
  '\u202e',
  '\ue000',
  '\uffff',
  '\ufdd0',
  '\ud800',
  '\udc00x',
  '\u{10ffff}',
];

/** Of any script; rarely one that is not assigned. */
function anyCharacter(prng: Prng): string {
  for (;;) {
    const plane = prng.pick([0, 0, 0, 1, 1, 2, 14]);
    const code = plane * 0x10000 + prng.below(0x10000);
    if (code >= 0xd800 && code <= 0xdfff) continue;
    const char = String.fromCodePoint(code);
    if (!/\p{Cn}/u.test(char) || prng.chance(0.01)) return char;
  }
}

/** One text of up to some 200 characters, rarely 2,000. `specials` are the vocabulary's added tokens. */
export function hostileText(prng: Prng, specials: readonly string[]): string {
  const pick =
    (items: readonly string[]): (() => string) =>
    () =>
      prng.pick(items);
  const kinds: readonly (() => string)[] = [
    pick(SPACES),
    pick(SPACES),
    pick(WORDS),
    pick(WORDS),
    pick(CONTRACTIONS),
    pick(DIGITS),
    pick(SIGNS),
    pick(MARKS),
    pick(CONTROLS),
    () => anyCharacter(prng),
    () => String.fromCharCode(97 + prng.below(26), 97 + prng.below(26), 65 + prng.below(26)),
    () => prng.pick([' ', 'a', '\n', '=', '1', '世', 'e\u0301']).repeat(prng.between(2, prng.chance(0.05) ? 400 : 20)),
    () => (specials.length === 0 ? '<s>' : prng.pick(specials)),
    () => (specials.length === 0 ? '</s>' : prng.pick(specials).slice(0, -1)),
  ];
  const some = Array.from({ length: prng.between(1, 4) }, () => prng.pick(kinds));
  return Array.from({ length: prng.between(0, 24) }, () => prng.pick(prng.chance(0.5) ? some : kinds)()).join('');
}
