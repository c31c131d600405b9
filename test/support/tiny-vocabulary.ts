/** Byte-level tokenizers in small: trained here on a few sentences, written as a tokenizer.json of each style that is read. */
import assert from 'node:assert/strict';
import { byteCharacters } from '../../src/tokenizer/byte-alphabet.js';

const TRAINING_TEXT = [
  'The quick brown fox jumps over the lazy dog, and the other dogs don’t mind. There are 1234567 reasons for that.',
  "It's what they'll say: we've seen it, I'm told, you're right, she'd rather not. ITS HTTPServer getElementById(x) {}",
  'for (let i = 0; i < 100; i++) {\n    console.log("hello, world", i);\n\n    return null;\n}\n=======---------\n',
  'Über die Straße gehen; naïve café déjà vu. Привет, мир! Как дела? 世界你好，世界世界。カタカナとかな 한국어',
  'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa                                \n\n\n\n\n\n\n\t\t\t\t 000 111 ٣٤٥ ½ 👩‍👧 👍🏽',
].join('\n');

const QWEN =
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const O200K = [
  "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
  "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
  '\\p{N}{1,3}',
  ' ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*',
  '\\s*[\\r\\n]+',
  '\\s+(?!\\S)',
  '\\s+',
].join('|');
const DEEPSEEK = [
  '\\p{N}{1,3}',
  '[一-龥\u3040-ゟ゠-ヿ]+',
  '[!"#$%&\'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+',
];

const split = (pattern: string): object => ({
  type: 'Split',
  pattern: { Regex: pattern },
  behavior: 'Isolated',
  invert: false,
});
const byteLevel = (useRegex: boolean): object => ({
  type: 'ByteLevel',
  add_prefix_space: false,
  trim_offsets: false,
  use_regex: useRegex,
});
const sequence = (...patterns: string[]): object => ({
  type: 'Sequence',
  pretokenizers: [...patterns.map(split), byteLevel(false)],
});

export interface Style {
  readonly pre_tokenizer: object;
  readonly normalizer: object | null;
  readonly ignoreMerges: boolean;
}

/** As the models of these names are tokenized. */
export const STYLES: Readonly<Record<'qwen3' | 'llama3' | 'gptoss' | 'deepseek' | 'gpt2', Style>> = {
  qwen3: { pre_tokenizer: sequence(QWEN), normalizer: { type: 'NFC' }, ignoreMerges: false },
  llama3: { pre_tokenizer: sequence(QWEN.replace('\\p{N}|', '\\p{N}{1,3}|')), normalizer: null, ignoreMerges: true },
  gptoss: { pre_tokenizer: sequence(O200K), normalizer: null, ignoreMerges: true },
  deepseek: {
    pre_tokenizer: sequence(...DEEPSEEK),
    normalizer: { type: 'Sequence', normalizers: [] },
    ignoreMerges: false,
  },
  gpt2: { pre_tokenizer: byteLevel(true), normalizer: null, ignoreMerges: false },
};

/** Merges of the commonest pair, again and again; equals go to the pair that comes first by text. */
function train(text: string, merges: number): [string, string][] {
  const chars = byteCharacters();
  const words = Array.from(text.matchAll(/\s?\S+|\s+/g), ([word]) =>
    Array.from(Buffer.from(word), (byte) => chars[byte]!),
  );
  const found: [string, string][] = [];
  for (let i = 0; i < merges; i++) {
    const counts = new Map<string, number>();
    for (const word of words) {
      for (let at = 0; at + 1 < word.length; at++) {
        const pair = `${word[at]} ${word[at + 1]}`;
        counts.set(pair, (counts.get(pair) ?? 0) + 1);
      }
    }
    const [best] = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))[0] ?? assert.fail('all merged');
    const [left, right] = best.split(' ') as [string, string];
    found.push([left, right]);
    for (const word of words) {
      for (let at = 0; at + 1 < word.length; at++) {
        if (word[at] === left && word[at + 1] === right) word.splice(at, 2, left + right);
      }
    }
  }
  return found;
}

const MERGES = train(TRAINING_TEXT, 200);
/** Tokens that no merge leads to. */
const UNREACHABLE = ['Ġreasons', 'zebra', 'qqq', 'ĊĊĊĊĊĊĊ', 'Ã¼ber'];

export const TINY_SPECIALS = [
  '<|im_start|>',
  '<|im_end|>',
  '<|im_end|>x',
  '<think>',
  '</think>',
  '<tool_call>',
] as const;

/** A tokenizer.json; `changes` replace its fields, `modelChanges` those of its model. */
export function tinyTokenizer(
  { pre_tokenizer, normalizer, ignoreMerges }: Style,
  changes: object = {},
  modelChanges: object = {},
): object {
  const texts = [...new Set([...byteCharacters(), ...MERGES.map((merge) => merge.join('')), ...UNREACHABLE])];
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: TINY_SPECIALS.map((content, at) => ({
      id: texts.length + at,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: !content.includes('think'),
    })),
    normalizer,
    pre_tokenizer,
    post_processor: byteLevel(false),
    decoder: byteLevel(false),
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: '',
      end_of_word_suffix: '',
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: ignoreMerges,
      vocab: Object.fromEntries(texts.map((text, id) => [text, id])),
      merges: MERGES,
      ...modelChanges,
    },
    ...changes,
  };
}
