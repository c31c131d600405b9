/**
 * The patterns of a tokenizer.json's pre-tokenizer, read into a tree. They are written for another engine (Oniguruma), whose
 * `\s` and case folding differ from ECMAScript's; so only what is certain to mean the same is read, and all else is refused.
 */
import { anyCase, type CharSet, complement, property, union } from './char-set.js';

export type Pattern =
  | { readonly kind: 'set'; readonly set: CharSet }
  | { readonly kind: 'sequence'; readonly parts: readonly Pattern[] }
  | { readonly kind: 'choice'; readonly options: readonly Pattern[] }
  /** As many as can be, from `least` to `most`. */
  | { readonly kind: 'repeat'; readonly part: Pattern; readonly least: number; readonly most: number }
  /** Takes nothing; holds where the next character is not in the set, and at the end. */
  | { readonly kind: 'notBefore'; readonly set: CharSet };

/** Counted repeats are written out; more than this would make a large automaton. */
const REPEAT_MAX = 16;

/** Thrown for a part of a pattern that is not read; the message says which. */
export class PatternError extends Error {}

/** Throws `PatternError`. */
export function parsePattern(text: string): Pattern {
  return new Parser(text).whole();
}

/** A pattern that finds exactly `text`. */
export function literalPattern(text: string): Pattern {
  return { kind: 'sequence', parts: Array.from(text, (char) => ({ kind: 'set', set: one(char) })) };
}

function one(char: string): CharSet {
  const code = char.codePointAt(0)!;
  return [code, code];
}

/** Sequences of letters that Unicode folds to one character (ß, ligatures): not written letter by letter without case. */
const FOLDS_TO_ONE = /ss|st|f[fil]/i;

const ESCAPES: Readonly<Record<string, string>> = { r: '\r', n: '\n', t: '\t', f: '\f', v: '\v' };

class Parser {
  readonly #chars: readonly string[];
  #at = 0;
  #anyCase = false;

  constructor(text: string) {
    this.#chars = Array.from(text);
  }

  whole(): Pattern {
    const pattern = this.#choice();
    if (this.#at < this.#chars.length) this.#refuse('a closing bracket without an opening one');
    return pattern;
  }

  #refuse(what: string): never {
    throw new PatternError(`${what} at character ${this.#at}`);
  }

  #peek(): string | undefined {
    return this.#chars[this.#at];
  }

  #takes(text: string): boolean {
    if (this.#chars.slice(this.#at, this.#at + text.length).join('') !== text) return false;
    this.#at += text.length;
    return true;
  }

  #choice(): Pattern {
    const options = [this.#sequence()];
    while (this.#takes('|')) options.push(this.#sequence());
    return options.length === 1 ? options[0]! : { kind: 'choice', options };
  }

  #sequence(): Pattern {
    const start = this.#at;
    const parts: Pattern[] = [];
    for (;;) {
      const next = this.#peek();
      if (next === undefined || next === '|' || next === ')') break;
      parts.push(this.#repeated(this.#atom()));
    }
    if (this.#anyCase && FOLDS_TO_ONE.test(this.#chars.slice(start, this.#at).join(''))) {
      this.#refuse('letters that fold to one character');
    }
    return { kind: 'sequence', parts };
  }

  #atom(): Pattern {
    if (this.#takes('(?!')) return this.#notBefore();
    if (this.#takes('(?:')) return this.#group(this.#anyCase);
    if (this.#takes('(?i:')) return this.#group(true);
    const char = this.#peek()!;
    if (this.#takes('('))
      return this.#peek() === '?' ? this.#refuse('a group of this kind') : this.#group(this.#anyCase);
    if (this.#takes('[')) return { kind: 'set', set: this.#class() };
    if (this.#takes('\\')) return { kind: 'set', set: this.#escape() };
    if ('.^$*+?{}]'.includes(char)) this.#refuse(`\`${char}\``);
    this.#at++;
    return { kind: 'set', set: this.#letter(char) };
  }

  #letter(char: string): CharSet {
    if (!this.#anyCase) return one(char);
    if (char > '\x7f') this.#refuse('a letter beyond ASCII without case');
    return anyCase(char);
  }

  #group(withoutCase: boolean): Pattern {
    const outside = this.#anyCase;
    this.#anyCase = withoutCase;
    const inside = this.#choice();
    this.#anyCase = outside;
    if (!this.#takes(')')) this.#refuse('a group that is not closed');
    return inside;
  }

  #notBefore(): Pattern {
    const inside = this.#group(false);
    const only = inside.kind === 'sequence' && inside.parts.length === 1 ? inside.parts[0]! : inside;
    if (only.kind !== 'set') return this.#refuse('a look ahead of more than one character');
    return { kind: 'notBefore', set: only.set };
  }

  #repeated(part: Pattern): Pattern {
    let [least, most] = [1, 1];
    if (this.#takes('?')) [least, most] = [0, 1];
    else if (this.#takes('*')) [least, most] = [0, Number.POSITIVE_INFINITY];
    else if (this.#takes('+')) [least, most] = [1, Number.POSITIVE_INFINITY];
    else if (this.#takes('{')) [least, most] = this.#counts();
    else return part;
    if (part.kind === 'notBefore') this.#refuse('a repeated look ahead');
    if (['?', '*', '+', '{'].includes(this.#peek() ?? '')) this.#refuse('a repeat that is lazy or possessive');
    return { kind: 'repeat', part, least, most };
  }

  #counts(): [number, number] {
    const end = this.#chars.indexOf('}', this.#at);
    const found = /^(\d{1,2})(?:(,)(\d{0,2}))?$/.exec(this.#chars.slice(this.#at, end).join(''));
    if (end < 0 || found === null) return this.#refuse('a repeat');
    const least = Number(found[1]);
    const most = found[2] === undefined ? least : found[3] === '' ? Number.POSITIVE_INFINITY : Number(found[3]);
    if (least > REPEAT_MAX || (most > REPEAT_MAX && most !== Number.POSITIVE_INFINITY) || most < least) {
      return this.#refuse(`a repeat of more than ${REPEAT_MAX}`);
    }
    this.#at = end + 1;
    return [least, most];
  }

  /** After a backslash. */
  #escape(): CharSet {
    const char = this.#peek() ?? this.#refuse('a backslash at the end');
    this.#at++;
    if (char === 's' || char === 'S') {
      const space = property('White_Space')!;
      return char === 's' ? space : complement(space);
    }
    if (char === 'd') return property('Nd')!;
    if (char === 'p' || char === 'P') {
      const set = this.#named();
      return char === 'p' ? set : complement(set);
    }
    const control = ESCAPES[char];
    if (control !== undefined) return one(control);
    return /^[A-Za-z0-9]$/.test(char) ? this.#refuse(`\`\\${char}\``) : one(char);
  }

  #named(): CharSet {
    const end = this.#chars.indexOf('}', this.#at);
    if (!this.#takes('{') || end < 0) this.#refuse('a property without braces');
    const name = this.#chars.slice(this.#at, end).join('');
    this.#at = end + 1;
    return property(name) ?? this.#refuse(`the property \`${name}\``);
  }

  /** After an opening bracket. */
  #class(): CharSet {
    const negated = this.#takes('^');
    const sets: CharSet[] = [];
    while (!this.#takes(']')) {
      const low = this.#classItem();
      if (this.#peek() === '-' && this.#chars[this.#at + 1] !== ']') {
        this.#at++;
        sets.push(this.#range(low, this.#classItem()));
      } else sets.push(low);
    }
    if (sets.length === 0) this.#refuse('an empty class');
    if (this.#anyCase) this.#refuse('a class without case');
    return negated ? complement(union(sets)) : union(sets);
  }

  #range(low: CharSet, high: CharSet): CharSet {
    const single = (set: CharSet): boolean => set.length === 2 && set[0] === set[1];
    if (!single(low) || !single(high) || high[0]! < low[0]!) this.#refuse('a range');
    return [low[0]!, high[0]!];
  }

  #classItem(): CharSet {
    if (this.#takes('\\')) return this.#escape();
    const char = this.#peek() ?? this.#refuse('a class that is not closed');
    // Oniguruma nests classes, and `&&` intersects them.
    if (char === '[' || (char === '&' && this.#chars[this.#at + 1] === '&')) this.#refuse(`\`${char}\` in a class`);
    this.#at++;
    return one(char);
  }
}
