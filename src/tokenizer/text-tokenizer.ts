/** Text to tokens, by our own encoder or by the library. What a tokenizer needs is one value that a worker can be given. */
import { Tokenizer as LibraryTokenizer } from '@huggingface/tokenizers';
import { type AddedToken, type Part, TokenFinder } from './added-tokens.js';
import { ByteLevelEncoder, type EncoderTables } from './byte-level-encoder.js';
import type { Bounds } from './prompt.js';

/** Can be posted to another thread as it is. */
export type TokenizerPlan = ByteLevelPlan | LibraryPlan;

export interface ByteLevelPlan {
  readonly kind: 'byte-level';
  readonly encoder: EncoderTables;
  readonly added: readonly AddedToken[];
  readonly specialsAreText: boolean;
  readonly normalizer: 'NFC' | null;
  /** Tokens around a text that is no chat. */
  readonly textSpecials: number;
}

/** Kinds that are not byte-level BPE. */
export interface LibraryPlan {
  readonly kind: 'library';
  /** Texts of tokenizer.json and tokenizer_config.json. */
  readonly tokenizer: string;
  readonly config: string;
  /** Tokens around a text that is no chat; null: as the file's post-processor says. */
  readonly textSpecials: number | null;
}

export interface TextTokenizer {
  /** Tokens of a text; `isWhole`: with those that the engine puts around a text that is no chat. */
  count(text: string, isWhole: boolean): number;
  /** The same between two numbers, in time linear in the bytes. */
  bounds(text: string, isWhole: boolean): Bounds;
}

export function newTextTokenizer(plan: TokenizerPlan): TextTokenizer {
  return plan.kind === 'byte-level' ? new ByteLevelTokenizer(plan) : new Library(plan);
}

export class ByteLevelTokenizer implements TextTokenizer {
  readonly #plan: ByteLevelPlan;
  readonly #encoder: ByteLevelEncoder;
  readonly #raw: TokenFinder;
  readonly #normalized: TokenFinder;

  constructor(plan: ByteLevelPlan) {
    this.#plan = plan;
    this.#encoder = new ByteLevelEncoder(plan.encoder);
    const find = (tokens: readonly AddedToken[]): TokenFinder => new TokenFinder(tokens, plan.specialsAreText);
    this.#raw = find(plan.added.filter(({ normalized }) => !normalized));
    this.#normalized = find(
      plan.added
        .filter(({ normalized }) => normalized)
        .map((token) => ({ ...token, content: this.#normalize(token.content) })),
    );
  }

  #normalize(text: string): string {
    return this.#plan.normalizer === null ? text : text.normalize(this.#plan.normalizer);
  }

  #split(text: string, onPart: (part: Part) => void): void {
    this.#raw.split(text, (part) => {
      if (typeof part === 'number') onPart(part);
      else this.#normalized.split(this.#normalize(part), onPart);
    });
  }

  /** The ids, without those around a text. Throws `CannotSplit`. */
  encode(text: string): number[] {
    const ids: number[] = [];
    this.#split(text, (part) => {
      if (typeof part === 'number') ids.push(part);
      else for (const id of this.#encoder.encode(part)) ids.push(id);
    });
    return ids;
  }

  count(text: string, isWhole: boolean): number {
    let count = isWhole ? this.#plan.textSpecials : 0;
    this.#split(text, (part) => {
      count += typeof part === 'number' ? 1 : this.#encoder.encode(part).length;
    });
    return count;
  }

  /** A token of the vocabulary holds one byte at least and `tokenBytesMax` at most; an added token is one. */
  bounds(text: string, isWhole: boolean): Bounds {
    const { tokenBytesMax } = this.#plan.encoder.vocabulary;
    let least = isWhole ? this.#plan.textSpecials : 0;
    let most = least;
    this.#split(text, (part) => {
      const bytes = typeof part === 'number' ? 1 : Buffer.byteLength(part);
      most += bytes;
      least += typeof part === 'number' ? 1 : Math.ceil(bytes / tokenBytesMax);
    });
    return { kind: 'bounds', least, most };
  }
}

class Library implements TextTokenizer {
  readonly #tokenizer: LibraryTokenizer;
  readonly #textSpecials: number | null;

  constructor({ tokenizer, config, textSpecials }: LibraryPlan) {
    this.#tokenizer = new LibraryTokenizer(JSON.parse(tokenizer) as object, JSON.parse(config) as object);
    this.#textSpecials = textSpecials;
  }

  count(text: string, isWhole: boolean): number {
    const add_special_tokens = isWhole && this.#textSpecials === null;
    const { ids } = this.#tokenizer.encode(text, { add_special_tokens });
    return ids.length + (isWhole ? (this.#textSpecials ?? 0) : 0);
  }

  /** Normalisers may drop text, and unknown words of any length are one token: nothing is certain. */
  bounds(): Bounds {
    return { kind: 'bounds', least: 0, most: Number.POSITIVE_INFINITY };
  }
}
