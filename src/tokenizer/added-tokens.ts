/** Added tokens: texts that are one token wherever they stand in a prompt, before any merging. */

/** As a tokenizer.json writes them. */
export interface AddedToken {
  readonly id: number;
  readonly content: string;
  /** Found in the normalised text, not in the text as it came. */
  readonly normalized: boolean;
  /** A special token is text like any other where `split_special_tokens` is set. */
  readonly special: boolean;
  /** Takes the white space before it, or behind it, along. */
  readonly lstrip: boolean;
  readonly rstrip: boolean;
}

const SPACE = /\p{White_Space}/u;

/** A piece of text, or the id of a token that stood there. */
export type Part = string | number;

/** Finds some tokens in a text: the first place at which one begins, and there the longest. */
export class TokenFinder {
  readonly #tokens: ReadonlyMap<string, AddedToken>;
  readonly #pattern: RegExp | null;
  readonly #specialsAreText: boolean;

  constructor(tokens: readonly AddedToken[], specialsAreText: boolean) {
    const wanted = tokens.filter(({ content }) => content !== '');
    this.#tokens = new Map(wanted.map((token) => [token.content, token]));
    this.#specialsAreText = specialsAreText;
    const longestFirst = wanted.map(({ content }) => content).sort((a, b) => b.length - a.length);
    const escaped = longestFirst.map((content) => content.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'));
    this.#pattern = escaped.length === 0 ? null : new RegExp(escaped.join('|'), 'g');
  }

  /** Hands out text and tokens in order. */
  split(text: string, onPart: (part: Part) => void): void {
    let from = 0;
    if (this.#pattern !== null) {
      this.#pattern.lastIndex = 0;
      for (let found = this.#pattern.exec(text); found !== null; found = this.#pattern.exec(text)) {
        const token = this.#tokens.get(found[0])!;
        if (token.special && this.#specialsAreText) continue;
        const start = token.lstrip ? startOfSpace(text, from, found.index) : found.index;
        if (start > from) onPart(text.slice(from, start));
        onPart(token.id);
        const end = found.index + found[0].length;
        from = token.rstrip ? endOfSpace(text, end) : end;
        this.#pattern.lastIndex = from;
      }
    }
    if (from < text.length) onPart(from === 0 ? text : text.slice(from));
  }
}

/** White space is in the first plane, one unit a character. */
function startOfSpace(text: string, from: number, to: number): number {
  let start = to;
  while (start > from && SPACE.test(text[start - 1]!)) start--;
  return start;
}

function endOfSpace(text: string, from: number): number {
  let end = from;
  while (end < text.length && SPACE.test(text[end]!)) end++;
  return end;
}
