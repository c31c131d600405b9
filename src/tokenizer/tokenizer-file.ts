/** Reads tokenizer.json and tokenizer_config.json. What is not understood is refused, since a wrong count is worse than none. */
import { CodedError } from '../base/errors.js';
import { escapeControl, truncate } from '../base/text.js';
import type { AddedToken } from './added-tokens.js';
import { type AutomatonTables, compilePattern } from './automaton.js';
import { literalPattern, PatternError, parsePattern } from './pattern.js';
import type { ByteLevelPlan, TokenizerPlan } from './text-tokenizer.js';
import { buildVocabulary, type VocabularySource } from './vocabulary.js';

/** Texts of the files; null for one that is not there. */
export interface TokenizerTexts {
  readonly tokenizer: string;
  readonly config: string | null;
}

type Json = Readonly<Record<string, unknown>>;

/** Cuts as GPT-2 does: what `ByteLevel` does with `use_regex`. */
const GPT2_PATTERN = String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;
/** Classes of `transformers` that put BOS and EOS by their own settings, whatever the post-processor says. */
const LLAMA_CLASSES: readonly unknown[] = ['LlamaTokenizer', 'LlamaTokenizerFast'];
const SPECIAL_NAMES = ['bos_token', 'eos_token', 'unk_token', 'sep_token', 'pad_token', 'cls_token', 'mask_token'];

/** Throws `CodedError` (`usage`). */
export function readTokenizer(texts: TokenizerTexts): TokenizerPlan {
  const file = parseObject(texts.tokenizer, 'tokenizer.json');
  const config = texts.config === null ? {} : parseObject(texts.config, 'tokenizer_config.json');
  const model = object(file.model);
  const llama = LLAMA_CLASSES.includes(config.tokenizer_class);
  const textSpecials = llama ? Number(config.add_bos_token ?? true) + Number(config.add_eos_token ?? false) : null;
  if (isByteLevel(file, model)) {
    return byteLevelPlan(file, model, config, textSpecials ?? specialsOf(object(file.post_processor)));
  }
  if (!['Unigram', 'WordPiece', 'BPE'].includes(String(model.type))) refuse(`a model of type ${quoted(model.type)}`);
  return { kind: 'library', tokenizer: texts.tokenizer, config: texts.config ?? '{}', textSpecials };
}

/** The texts of the special tokens by name (`bos_token`, …), as a chat template gets them. */
export function specialTexts(config: Json): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const name of SPECIAL_NAMES) {
    const text = contentOf(config[name]);
    if (text !== null) texts[name] = text;
  }
  return texts;
}

/** Throws `CodedError` where `text` is no JSON object. */
export function parseObject(text: string, name: string): Json {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {
    // Said below.
  }
  throw new CodedError('usage', `Expected ${name} to hold one JSON object, got something else.`);
}

function byteLevelPlan(file: Json, model: Json, config: Json, textSpecials: number): ByteLevelPlan {
  for (const name of ['dropout', 'unk_token', 'continuing_subword_prefix', 'end_of_word_suffix']) {
    if ((model[name] ?? '') !== '') refuse(`\`${name}\` of the model (${quoted(model[name])})`);
  }
  if (!isObject(model.vocab) || !Array.isArray(model.merges)) refuse('a model without vocabulary or merges');
  const vocabulary = {
    vocab: model.vocab,
    merges: model.merges,
    ignoreMerges: model.ignore_merges === true,
  } as VocabularySource;
  const splits = splitsOf(object(file.pre_tokenizer));
  try {
    return {
      kind: 'byte-level',
      encoder: { vocabulary: buildVocabulary(vocabulary), splits },
      added: addedTokens(file, config),
      specialsAreText: config.split_special_tokens === true,
      normalizer: normalizerOf(file.normalizer),
      textSpecials,
    };
  } catch (thrown) {
    if (thrown instanceof CodedError || !(thrown instanceof Error)) throw thrown;
    return refuse(thrown.message);
  }
}

function isByteLevel(file: Json, model: Json): boolean {
  if (model.byte_fallback === true || (model.type !== 'BPE' && model.type !== undefined)) return false;
  return flat(object(file.pre_tokenizer), 'pretokenizers').some(({ type }) => type === 'ByteLevel');
}

/** The steps of a `Sequence`, or the one step; none for an absent one. */
function flat(step: Json, name: string): Json[] {
  if (step.type === 'Sequence') return array(step[name]).flatMap((inner) => flat(object(inner), name));
  return step.type === undefined ? [] : [step];
}

function splitsOf(preTokenizer: Json): AutomatonTables[] {
  const steps = flat(preTokenizer, 'pretokenizers');
  const last = steps.pop()!;
  if (last.type !== 'ByteLevel') refuse(`a step after \`ByteLevel\` (${quoted(last.type)})`);
  if (last.add_prefix_space === true) refuse('`add_prefix_space`');
  const splits = steps.map(splitOf);
  // Absent means true.
  if (last.use_regex !== false) splits.push(compile(GPT2_PATTERN));
  return splits;
}

function splitOf(step: Json): AutomatonTables {
  if (step.type === 'Digits') return compile(step.individual_digits === true ? '\\p{N}' : '\\p{N}+');
  if (step.type !== 'Split') refuse(`a pre-tokenizer of type ${quoted(step.type)}`);
  if (step.behavior !== 'Isolated' || step.invert === true) refuse('a `Split` that is not `Isolated`, or inverted');
  const { Regex, String: literal } = object(step.pattern);
  if (typeof literal === 'string' && literal !== '') return compilePattern(literalPattern(literal));
  return typeof Regex === 'string' ? compile(Regex) : refuse('a `Split` without a pattern');
}

function compile(pattern: string): AutomatonTables {
  try {
    return compilePattern(parsePattern(pattern));
  } catch (thrown) {
    if (!(thrown instanceof PatternError)) throw thrown;
    return refuse(`the pattern ${quoted(pattern)} (${thrown.message})`);
  }
}

function normalizerOf(normalizer: unknown): 'NFC' | null {
  const types = flat(object(normalizer), 'normalizers').map(({ type }) => type);
  const other = types.find((type) => type !== 'NFC');
  if (other !== undefined) refuse(`a normalizer of type ${quoted(other)}`);
  return types.length === 0 ? null : 'NFC';
}

/** Tokens that the post-processor puts around one text. */
function specialsOf(processor: Json): number {
  let count = 0;
  for (const step of flat(processor, 'processors')) {
    if (step.type === 'TemplateProcessing') {
      for (const piece of array(step.single)) {
        const { SpecialToken } = object(piece);
        if (SpecialToken === undefined) continue;
        const { ids } = object(object(step.special_tokens)[String(object(SpecialToken).id)]);
        count += array(ids).length;
      }
    } else if (step.type !== 'ByteLevel') refuse(`a post-processor of type ${quoted(step.type)}`);
  }
  return count;
}

/** Those of tokenizer.json, then those that only tokenizer_config.json knows, as `transformers` adds them. */
function addedTokens(file: Json, config: Json): AddedToken[] {
  const added = array(file.added_tokens).map((token) => addedToken(object(token), object(token).id));
  const known = new Set(added.map(({ content }) => content));
  const vocab = object(object(file.model).vocab);
  const add = (token: AddedToken): void => {
    if (known.has(token.content)) return;
    known.add(token.content);
    added.push(token);
  };
  for (const [id, token] of Object.entries(object(config.added_tokens_decoder))) {
    add(addedToken(object(token), Number(id)));
  }
  const specials = [...Object.values(specialTexts(config)), ...array(config.additional_special_tokens).map(contentOf)];
  for (const content of specials) {
    if (content === null) continue;
    // Its id does not matter where it is counted; one that is new comes after all others.
    const id = vocab[content] ?? Object.keys(vocab).length + added.length;
    add(addedToken({ content, special: true }, id));
  }
  return added;
}

function addedToken(token: Json, id: unknown): AddedToken {
  const { content } = token;
  if (typeof content !== 'string' || typeof id !== 'number') return refuse('an added token without text or id');
  if (token.single_word === true) refuse('an added token that is a `single_word`');
  return {
    id,
    content,
    normalized: token.normalized === true,
    special: token.special === true,
    lstrip: token.lstrip === true,
    rstrip: token.rstrip === true,
  };
}

function contentOf(token: unknown): string | null {
  if (typeof token === 'string') return token;
  const { content } = object(token);
  return typeof content === 'string' ? content : null;
}

function refuse(what: string): never {
  throw new CodedError(
    'usage',
    `Expected a tokenizer.json that can be counted with, got one with ${what}; leave it out, and the engine's own count is asked for.`,
  );
}

function quoted(value: unknown): string {
  return `\`${truncate(escapeControl(String(value)), 60)}\``;
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function object(value: unknown): Json {
  return isObject(value) ? value : {};
}

function array(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
