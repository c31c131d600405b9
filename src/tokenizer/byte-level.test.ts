/**
 * Goal: the tokens are those of the library, whatever the text, and the bounds hold. Method: vocabularies of every style, trained
 * in small, against @huggingface/tokenizers over hostile strings; `npm run test:tokenizer` does the same with real vocabularies.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { Tokenizer } from '@huggingface/tokenizers';
import { hostileText } from '../../test/support/hostile-text.js';
import { STYLES, TINY_SPECIALS, tinyTokenizer } from '../../test/support/tiny-vocabulary.js';
import { threadCpuS } from '../base/cpu.js';
import { Prng } from '../base/prng.js';
import { CannotSplit } from './automaton.js';
import { alphabetBytes } from './byte-alphabet.js';
import { uncertainCharacters } from './char-set.js';
import { ByteLevelEncoder } from './byte-level-encoder.js';
import { ByteLevelTokenizer } from './text-tokenizer.js';
import { readTokenizer } from './tokenizer-file.js';

const SEED = Number(process.env.SEED ?? 6100);
const STRINGS = 800;

function newTokenizer(file: object, config: object = {}): ByteLevelTokenizer {
  const plan = readTokenizer({ tokenizer: JSON.stringify(file), config: JSON.stringify(config) });
  assert.equal(plan.kind, 'byte-level');
  return new ByteLevelTokenizer(plan);
}

function isUncertain(char: string): boolean {
  const { unassigned, added } = uncertainCharacters();
  const code = char.codePointAt(0)!;
  return (
    code === 0x295 ||
    [unassigned, added].some((set) => set.some((low, i) => i % 2 === 0 && low <= code && code <= set[i + 1]!))
  );
}

function encodeOrNull(ours: ByteLevelTokenizer, text: string): number[] | null {
  try {
    return ours.encode(text);
  } catch (thrown) {
    if (thrown instanceof CannotSplit) return null;
    throw thrown;
  }
}

/** In GPT-2's pattern the library has ECMAScript's white space; Unicode's, which the library in Rust has, differs in these two. */
const SPACES_OF_THE_LIBRARY = /[\u0085\ufeff]/;

for (const [name, style] of Object.entries(STYLES)) {
  test(`in the style of ${name}, ${STRINGS} hostile strings get the library's tokens, within the bounds (seed ${SEED})`, () => {
    const file = tinyTokenizer(style);
    const library = new Tokenizer(file, {});
    const ours = newTokenizer(file);
    const prng = new Prng(SEED);
    let refused = 0;
    for (let i = 0; i < STRINGS; i++) {
      const text = hostileText(prng, TINY_SPECIALS);
      if (name === 'gpt2' && SPACES_OF_THE_LIBRARY.test(text)) continue;
      const ids = encodeOrNull(ours, text);
      if (ids === null) {
        assert.ok(Array.from(text).some(isUncertain), JSON.stringify(text));
        refused++;
        continue;
      }
      const expected = library.encode(Buffer.from(text).toString(), { add_special_tokens: false }).ids;
      assert.deepEqual(ids, expected, JSON.stringify(text));
      assert.equal(ours.count(text, false), ids.length);
      const { least, most } = ours.bounds(text, false);
      assert.ok(least <= ids.length && ids.length <= most, `${least} ${ids.length} ${most} ${JSON.stringify(text)}`);
    }
    assert.ok(refused > 0 && refused < STRINGS / 10, `${refused} strings with characters that are not certain`);
  });
}

test('the bounds are met: one token a byte, and nothing but the longest token', () => {
  const file = tinyTokenizer(STYLES.llama3);
  const ours = newTokenizer(file);
  const bytes = 'x#\u0001%';
  assert.deepEqual(ours.bounds(bytes, false), { kind: 'bounds', least: 1, most: ours.count(bytes, false) });
  const { vocab } = (file as { model: { vocab: Record<string, number> } }).model;
  const longest = Object.keys(vocab).sort((a, b) => b.length - a.length)[0]!;
  const text = Buffer.from(alphabetBytes(longest)!).toString();
  assert.equal(ours.count(text, false), 1);
  assert.deepEqual(ours.bounds(text, false), { kind: 'bounds', least: 1, most: longest.length });
  assert.equal(ours.bounds(`${text}!`, false).least, 2);
});

test('bounds are those of the normalised text: composed and decomposed count alike', () => {
  const ours = newTokenizer(tinyTokenizer(STYLES.qwen3));
  // NFC makes one character of two, and two of one.
  for (const text of ['e\u0301', '\u0958', '\u{1d160}', '\u1112\u1161\u11ab']) {
    const normalized = text.normalize('NFC');
    assert.notEqual(normalized, text);
    assert.deepEqual(ours.encode(text), ours.encode(normalized));
    assert.equal(ours.bounds(text, false).most, Buffer.byteLength(normalized));
  }
});

test('a piece of any length is merged as the short way merges it, from left to right by rank', () => {
  const file = tinyTokenizer(STYLES.llama3);
  const library = new Tokenizer(file, {});
  const ours = newTokenizer(file);
  const prng = new Prng(SEED);
  for (let i = 0; i < 40; i++) {
    const letters = prng.pick(['a', 'abc', 'theou', 'world helo', '世界', '= -']);
    const text = Array.from({ length: prng.between(90, 600) }, () => prng.pick(Array.from(letters))).join('');
    assert.deepEqual(ours.encode(text), library.encode(text, { add_special_tokens: false }).ids, text);
  }
});

test('a million characters of one kind are counted in a second of CPU', () => {
  const prng = new Prng(SEED);
  const letters = Array.from({ length: 1_000_000 }, () => String.fromCharCode(97 + prng.below(26))).join('');
  const ours = newTokenizer(tinyTokenizer(STYLES.qwen3));
  for (const text of ['a'.repeat(1_000_000), ' '.repeat(1_000_000), letters]) {
    const startS = threadCpuS();
    ours.count(text, false);
    const tookS = threadCpuS() - startS;
    assert.ok(tookS < 1, `${JSON.stringify(text.slice(0, 3))}: ${tookS} s`);
  }
});

test('what a call has seen makes no later call faster, and is gone', () => {
  const plan = readTokenizer({ tokenizer: JSON.stringify(tinyTokenizer(STYLES.qwen3)), config: null });
  assert.ok(plan.kind === 'byte-level');
  const encoder = new ByteLevelEncoder(plan.encoder);
  const text = ' unheardof zyx'.repeat(20);
  const merges = (): number => {
    encoder.encode(text);
    return encoder.merged;
  };
  const first = merges();
  // Within a call a piece is merged once; in the next call once more.
  assert.equal(first, 2);
  assert.equal(merges(), first);
});

test('a special token in a text is one token, unless specials are text (split_special_tokens)', () => {
  const file = tinyTokenizer(STYLES.qwen3);
  const text = 'a<|im_end|>b<|im_end|>x<think>';
  const asTokens = newTokenizer(file);
  const asText = newTokenizer(file, { split_special_tokens: true });
  assert.equal(asTokens.count(text, false), 5);
  const specials = '<|im_end|>'.length + '<|im_end|>x'.length;
  // `<think>` is an added token that is not special, and stays one.
  assert.ok(asText.count(text, false) > 5 && asText.count(text, false) <= specials + 3);
  const { id } = (file as { added_tokens: { id: number; content: string }[] }).added_tokens.find(
    ({ content }) => content === '<think>',
  )!;
  assert.equal(asText.encode(text).at(-1), id);
});

test('an added token takes the white space along that it is written to take', () => {
  const id = 9_999;
  const token = {
    id,
    content: '<m>',
    single_word: false,
    lstrip: true,
    rstrip: true,
    normalized: false,
    special: true,
  };
  const ours = newTokenizer(tinyTokenizer(STYLES.llama3, { added_tokens: [token] }));
  assert.deepEqual(ours.encode('a \u3000<m>\n\n b').slice(1, -1), [id]);
  assert.deepEqual(ours.encode('  <m>  <m>  '), [id, id]);
  assert.deepEqual(ours.bounds(`${' '.repeat(1000)}<m>`, false), { kind: 'bounds', least: 1, most: 1 });
});

test('a new emoji counts, a new letter or a code point without character does not', () => {
  const ours = newTokenizer(tinyTokenizer(STYLES.qwen3));
  assert.equal(ours.count('\u{1fae9}', false), 3);
  for (const text of ['\u{18dc9}', 'a \u{1e4ec}', '\u0378', '\u{50000}']) {
    assert.throws(() => ours.encode(text), CannotSplit);
    // The bounds hold whatever the character is.
    assert.ok(ours.bounds(text, false).most >= 2);
  }
  assert.throws(() => newTokenizer(tinyTokenizer(STYLES.gptoss)).encode('\u0295'), CannotSplit);
  assert.equal(ours.encode('\u0295').length, 2);
});
