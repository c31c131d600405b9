/**
 * Reading TypeScript source without a compiler: what is code and what is not, what a file imports, where its functions lie.
 * TypeScript 7 has no JavaScript interface, and these checks need only this much.
 */
export interface SourceFile {
  /** From the project's root, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

/** After these a slash begins a regular expression; after anything else it divides. */
const BEFORE_REGEX =
  /(?:^|[([{,;:=!&|?+\-*%<>~^}]|\b(?:return|typeof|case|in|of|do|else|void|delete|throw|await|yield))\s*$/;

/** Walks over the text once; each method leaves `#at` after what it read. */
class Masker {
  readonly #text: string;
  readonly #out: string[];
  #at = 0;
  #depth = 0;
  /** For each open template, the depth of braces at which its `${` ends. */
  readonly #templates: number[] = [];

  constructor(text: string) {
    this.#text = text;
    this.#out = text.split('');
  }

  run(): string {
    while (this.#at < this.#text.length) this.#step();
    return this.#out.join('');
  }

  #step(): void {
    const text = this.#text;
    const char = text[this.#at]!;
    if (text.startsWith('//', this.#at) || text.startsWith('#!', this.#at)) this.#skipPast('\n');
    else if (text.startsWith('/*', this.#at)) this.#skipPast('*/');
    else if (char === "'" || char === '"') this.#quoted(char);
    else if (char === '/' && this.#regexMayBegin()) this.#regex();
    else {
      this.#at++;
      if (char === '`') this.#template();
      else if (char === '{') this.#depth++;
      else if (char === '}') this.#closeBrace();
    }
  }

  #blank(from: number): void {
    for (let i = from; i < this.#at && i < this.#out.length; i++) if (this.#out[i] !== '\n') this.#out[i] = ' ';
  }

  #skipPast(ending: string): void {
    const from = this.#at;
    const end = this.#text.indexOf(ending, from + 2);
    this.#at = end < 0 ? this.#text.length : end + ending.length;
    this.#blank(from);
  }

  #quoted(quote: string): void {
    const from = ++this.#at;
    const text = this.#text;
    while (this.#at < text.length && text[this.#at] !== quote && text[this.#at] !== '\n') this.#advance();
    this.#blank(from);
    this.#at++;
  }

  /** One character, or an escaped pair. */
  #advance(): void {
    this.#at += this.#text[this.#at] === '\\' ? 2 : 1;
  }

  #regexMayBegin(): boolean {
    return BEFORE_REGEX.test(this.#out.slice(Math.max(0, this.#at - 40), this.#at).join(''));
  }

  #regex(): void {
    const from = ++this.#at;
    const text = this.#text;
    let inClass = false;
    while (this.#at < text.length && text[this.#at] !== '\n' && (inClass || text[this.#at] !== '/')) {
      if (text[this.#at] === '[') inClass = true;
      if (text[this.#at] === ']') inClass = false;
      this.#advance();
    }
    this.#blank(from);
    this.#at++;
  }

  /** From within a template to its end, or to the code it holds. */
  #template(): void {
    const from = this.#at;
    const text = this.#text;
    while (this.#at < text.length && text[this.#at] !== '`' && !text.startsWith('${', this.#at)) this.#advance();
    this.#blank(from);
    if (text[this.#at] === '$') {
      this.#templates.push(this.#depth++);
      this.#at += 2;
    } else this.#at++;
  }

  #closeBrace(): void {
    this.#depth--;
    if (this.#templates.at(-1) !== this.#depth) return;
    this.#templates.pop();
    this.#template();
  }
}

/**
 * The text with comments, the insides of strings, templates and regular expressions blanked, quotes and line breaks kept.
 * Every character stays at its place. Code within a template is code.
 */
export function maskText(text: string): string {
  return new Masker(text).run();
}

export function lineAt(text: string, index: number): number {
  let line = 1;
  for (let i = text.indexOf('\n'); i >= 0 && i < index; i = text.indexOf('\n', i + 1)) line++;
  return line;
}

export interface ImportOf {
  /** As written. */
  readonly specifier: string;
  readonly line: number;
  /** Only types: gone after the build, so that it makes no cycle at run time. */
  readonly typeOnly: boolean;
}

/** Static imports, re-exports, `import()` and `new URL('…', import.meta.url)`. */
export function importsOf(file: SourceFile): ImportOf[] {
  const masked = maskText(file.text);
  const found: ImportOf[] = [];
  const pattern =
    /\b(import|export)(\s+type\b)?(?:\s*[\w$*{}\s,]*?\bfrom)?\s*(['"])|\bimport\s*\(\s*(['"])|\bnew\s+URL\s*\(\s*(['"])/g;
  for (const match of masked.matchAll(pattern)) {
    const quote = match[3] ?? match[4] ?? match[5] ?? "'";
    if (match[1] === 'export' && !/\bfrom\s*['"]$/.test(match[0])) continue;
    const from = match.index + match[0].length;
    const specifier = file.text.slice(from, masked.indexOf(quote, from));
    if (match[5] !== undefined && !specifier.startsWith('.')) continue;
    found.push({ specifier, line: lineAt(file.text, match.index), typeOnly: match[2] !== undefined });
  }
  return found;
}

/** The source path that a relative specifier of `from` names (`./x.js` is `x.ts`); null for packages. */
export function resolveImport(from: string, specifier: string): string | null {
  if (!specifier.startsWith('.')) return null;
  const parts = from.split('/').slice(0, -1);
  for (const part of specifier.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '.') parts.push(part);
  }
  return parts.join('/').replace(/\.js$/, '.ts');
}

export interface FunctionOf {
  readonly name: string;
  readonly line: number;
  /** Lines from the one with the opening brace to the one with the closing brace. */
  readonly lines: number;
}

const CONTROL = new Set(['if', 'for', 'while', 'switch', 'catch', 'with', 'return', 'await', 'throw', 'typeof']);
const OPENING = '([{';
const CLOSING = ')]}';

/** The place of the bracket that closes the one at `open`; the text's length if none does. */
function closingOf(masked: string, open: number): number {
  let depth = 0;
  for (let i = open; i < masked.length; i++) {
    if (OPENING.includes(masked[i]!)) depth++;
    else if (CLOSING.includes(masked[i]!) && --depth === 0) return i;
  }
  return masked.length;
}

/** From just after a `:` that may begin a return type: the place of the body's brace, or -1. */
function bodyAfterType(masked: string, from: number): number {
  let operand = true;
  let angle = 0;
  for (let i = from; i < masked.length; i++) {
    const char = masked[i]!;
    if (/\s/.test(char)) continue;
    if (masked.startsWith('=>', i)) {
      // The arrow of a function whose return type this was, or of a function type within it.
      const next = masked.slice(i + 2).search(/\S/) + i + 2;
      if (angle === 0 && masked[next] === '{') return next;
      operand = true;
      i++;
    } else if (char === '{' && !operand && angle === 0) return i;
    else if (OPENING.includes(char)) {
      i = closingOf(masked, i);
      operand = false;
    } else if (char === '<') {
      angle++;
      operand = true;
    } else if (char === '>') {
      angle--;
      operand = false;
    } else if (char === '|' || char === '&' || char === '?' || char === ':' || (char === ',' && angle > 0)) {
      operand = true;
    } else if (/[\w$'".]/.test(char)) {
      const word = /^[\w$'".]+/.exec(masked.slice(i))![0];
      if (!operand && !['is', 'extends'].includes(word)) return -1;
      operand = ['is', 'extends', 'keyof', 'typeof', 'readonly', 'unique', 'asserts', 'infer'].includes(word);
      i += word.length - 1;
    } else return -1;
  }
  return -1;
}

/** The brace that opens the body of the function whose parameters close at `close`; -1 where it is no function. */
function bodyAfterParameters(masked: string, close: number): number {
  const next = masked.slice(close + 1).search(/\S/) + close + 1;
  if (masked[next] === '{') return next;
  if (masked.startsWith('=>', next)) {
    const after = masked.slice(next + 2).search(/\S/) + next + 2;
    return masked[after] === '{' ? after : -1;
  }
  return masked[next] === ':' ? bodyAfterType(masked, next + 1) : -1;
}

/** Functions, methods and arrows with a body in braces and parameters in parentheses. */
export function functionsOf(file: SourceFile): FunctionOf[] {
  const masked = maskText(file.text);
  const found: FunctionOf[] = [];
  for (let open = masked.indexOf('('); open >= 0; open = masked.indexOf('(', open + 1)) {
    const before = masked.slice(Math.max(0, open - 120), open);
    const word = /([\w$#]+)\s*(?:<[^()]*>)?\s*$/.exec(before)?.[1];
    if (word !== undefined && CONTROL.has(word)) continue;
    const body = bodyAfterParameters(masked, closingOf(masked, open));
    if (body < 0) continue;
    const assigned = /([\w$#]+)\s*(?::[^=;,{}()]*)?[=:]\s*(?:async\s*)?(?:function\b\s*\*?)?\s*$/.exec(before)?.[1];
    const own = word === 'function' || word === 'async' ? undefined : word;
    const line = lineAt(masked, body);
    found.push({
      name: own ?? assigned ?? 'anonymous',
      line,
      lines: lineAt(masked, closingOf(masked, body)) - line + 1,
    });
  }
  return found;
}
