/**
 * The YAML that nearly every manifest is written in: block maps and lists, scalars of one line, `|` blocks, brackets that close
 * on their own line. Ten times as fast as the whole language; whatever else a text holds is left to the full parser.
 */
import type { Tree } from './yaml-tree.js';

/** Longer texts go to the full parser, which counts what it follows. */
const CHARACTERS_MAX = 400_000;
/** Levels; a Dynamo graph has some 12. */
const DEPTH_MAX = 40;

const KEY = /^([A-Za-z_][\w./-]*|"[\w ./:-]+"|'[\w ./:-]+')(?: *):(?: +|$)/;
/** Names that are values of another kind when they stand without quotes. */
const NOT_A_KEY = /^(?:null|Null|NULL|true|True|TRUE|false|False|FALSE)$/;
/** What a plain scalar may begin with here; a dash needs something right behind it. */
const PLAIN = /^(?:[A-Za-z0-9_./$~+(=]|-[A-Za-z0-9_./$-])/;
const FLOW_PLAIN = /-{0,2}[A-Za-z0-9_./][\w./@+=-]*(?::[\w./@+=-]+)*/y;
const FLOW_KEY = /([A-Za-z_][\w./-]*|"[\w ./:-]+"|'[\w ./:-]+') *: +/y;
const FLOW_QUOTED = /"([^"\\]*)"|'([^']*)'/y;

/** One document, with its marker `---` or without. Null: something in it is not of this kind, which may still be good YAML. */
export function readPlainYaml(text: string, linesBefore: number): Tree | null {
  if (text.length > CHARACTERS_MAX || !text.endsWith('\n') || /[^\n\x20-\x7e]/.test(text)) return null;
  return new Reader(text.split('\n'), linesBefore).read();
}

class Reader {
  readonly #lines: string[];
  readonly #linesBefore: number;
  #at = 0;

  constructor(lines: string[], linesBefore: number) {
    this.#lines = lines;
    this.#linesBefore = linesBefore;
  }

  read(): Tree | null {
    if (/^--- *$/.test(this.#lines[0]!)) this.#at = 1;
    if (this.#indent() !== 0) return null;
    const tree = this.#block(0, 0);
    return this.#indent() === -1 ? tree : null;
  }

  /** Steps to the next line that says something: how far it is indented; -1 at the end. */
  #indent(): number {
    for (; this.#at < this.#lines.length; this.#at++) {
      const line = this.#lines[this.#at]!;
      let indent = 0;
      while (line.charCodeAt(indent) === 32) indent++;
      if (indent < line.length && line.charCodeAt(indent) !== 35) return indent;
    }
    return -1;
  }

  #lineNumber(): number {
    return this.#linesBefore + this.#at + 1;
  }

  #block(indent: number, depth: number): Tree | null {
    if (depth > DEPTH_MAX) return null;
    return this.#isItem(indent) ? this.#list(indent, depth) : this.#map(indent, depth);
  }

  #isItem(indent: number): boolean {
    const line = this.#lines[this.#at]!;
    return line[indent] === '-' && (line[indent + 1] === ' ' || line.length === indent + 1);
  }

  #list(indent: number, depth: number): Tree | null {
    const line = this.#lineNumber();
    const items: Tree[] = [];
    while (this.#indent() === indent && this.#isItem(indent)) {
      const text = this.#lines[this.#at]!;
      let start = indent + 1;
      while (text.charCodeAt(start) === 32) start++;
      const rest = text.slice(start);
      let item: Tree | null;
      if (KEY.test(rest)) {
        // The map begins in the middle of the line: its first key stands where the others will.
        this.#lines[this.#at] = ' '.repeat(start) + rest;
        item = depth < DEPTH_MAX ? this.#map(start, depth + 1) : null;
      } else item = this.#inline(rest, indent);
      if (item === null) return null;
      items.push(item);
    }
    return this.#indent() > indent ? null : { kind: 'list', items, line };
  }

  #map(indent: number, depth: number): Tree | null {
    const line = this.#lineNumber();
    const entries = new Map<string, Tree>();
    while (this.#indent() === indent) {
      const text = this.#lines[this.#at]!;
      const rest = text.slice(indent);
      const key = KEY.exec(rest);
      if (key === null || NOT_A_KEY.test(key[1]!)) {
        // A list's end at the same indent as its key is seen by the map around it.
        return null;
      }
      const value = this.#value(rest.slice(key[0].length), indent, depth);
      if (value === null) return null;
      entries.set(unquoted(key[1]!), value);
      if (this.#indent() === indent && this.#isItem(indent)) return null;
    }
    return this.#indent() > indent || entries.size === 0 ? null : { kind: 'map', entries, line };
  }

  /** What stands behind a key, or below it. */
  #value(rest: string, indent: number, depth: number): Tree | null {
    if (rest !== '' && !rest.startsWith('#')) return this.#inline(rest, indent);
    const nothing: Tree = { kind: 'scalar', text: null, line: this.#lineNumber() };
    const keyAt = this.#at++;
    const below = this.#indent();
    if (below > indent || (below === indent && this.#isItem(indent))) {
      // Where a comment stands between the two, whose it is decides on the line that is told.
      return this.#at === keyAt + 1 ? this.#block(below, depth + 1) : null;
    }
    return nothing;
  }

  /** A value that begins on this line; it ends there, but for a `|` block. */
  #inline(rest: string, indent: number): Tree | null {
    const line = this.#lineNumber();
    const first = rest[0];
    if (first === '|') return this.#literal(rest, indent, line);
    this.#at++;
    const tree = first === '[' || first === '{' ? flowLine(rest, line) : scalarLine(rest, line);
    // What is indented deeper goes on with this value.
    return this.#indent() > indent ? null : tree;
  }

  #literal(header: string, indent: number, line: number): Tree | null {
    if (header !== '|' && header !== '|-') return null;
    this.#at++;
    const own = /^ */.exec(this.#lines[this.#at] ?? '')![0].length;
    if (own <= indent || own === this.#lines[this.#at]!.length) return null;
    const texts: string[] = [];
    for (; this.#at < this.#lines.length; this.#at++) {
      const text = this.#lines[this.#at]!;
      const begins = text.search(/[^ ]/);
      if (begins >= 0 && begins < own) {
        if (begins > indent) return null;
        break;
      }
      texts.push(text.slice(own));
    }
    while (texts.at(-1) === '') texts.pop();
    const text = texts.join('\n');
    return { kind: 'scalar', text: header === '|' ? `${text}\n` : text, line };
  }
}

const unquoted = (key: string): string => (/^["']/.test(key) ? key.slice(1, -1) : key);

function scalarLine(rest: string, line: number): Tree | null {
  const quoted = /^(?:"([^"\\]*)"|'([^']*)') *(?: #.*)?$/.exec(rest);
  if (quoted !== null) return { kind: 'scalar', text: quoted[1] ?? quoted[2] ?? '', line };
  if (!PLAIN.test(rest)) return null;
  const comment = rest.indexOf(' #');
  const text = (comment < 0 ? rest : rest.slice(0, comment)).trimEnd();
  if (/:(?: |$)/.test(text)) return null;
  return { kind: 'scalar', text: plainText(text), line };
}

/** Numbers stay as they are written. */
function plainText(text: string): string | null {
  if (/^(?:~|[Nn]ull|NULL)$/.test(text)) return null;
  return /^(?:[Tt]rue|TRUE|[Ff]alse|FALSE)$/.test(text) ? text.toLowerCase() : text;
}

function flowLine(rest: string, line: number): Tree | null {
  const flow = new Flow(rest, line);
  const tree = flow.read(0);
  return tree !== null && /^ *(?: #.*)?$/.test(rest.slice(flow.at)) ? tree : null;
}

class Flow {
  readonly #text: string;
  readonly #line: number;
  at = 0;

  constructor(text: string, line: number) {
    this.#text = text;
    this.#line = line;
  }

  read(depth: number): Tree | null {
    const open = this.#text[this.at];
    if (open === '[' && depth < DEPTH_MAX) return this.#list(depth);
    if (open === '{' && depth < DEPTH_MAX) return this.#map(depth);
    const quoted = this.#match(FLOW_QUOTED);
    if (quoted !== null) return { kind: 'scalar', text: quoted[1] ?? quoted[2] ?? '', line: this.#line };
    const plain = this.#match(FLOW_PLAIN);
    return plain === null ? null : { kind: 'scalar', text: plainText(plain[0]), line: this.#line };
  }

  #list(depth: number): Tree | null {
    const items: Tree[] = [];
    return this.#each(']', () => {
      const item = this.read(depth + 1);
      if (item !== null) items.push(item);
      return item !== null;
    })
      ? { kind: 'list', items, line: this.#line }
      : null;
  }

  #map(depth: number): Tree | null {
    const entries = new Map<string, Tree>();
    return this.#each('}', () => {
      const key = this.#match(FLOW_KEY);
      if (key === null || NOT_A_KEY.test(key[1]!)) return false;
      const value = this.read(depth + 1);
      if (value !== null) entries.set(unquoted(key[1]!), value);
      return value !== null;
    })
      ? { kind: 'map', entries, line: this.#line }
      : null;
  }

  /** Items with single commas between them, up to the bracket. */
  #each(close: string, item: () => boolean): boolean {
    this.at++;
    this.#spaces();
    if (this.#text[this.at] === close) {
      this.at++;
      return true;
    }
    while (item()) {
      this.#spaces();
      const next = this.#text[this.at++];
      if (next === close) return true;
      if (next !== ',') return false;
      this.#spaces();
    }
    return false;
  }

  #spaces(): void {
    while (this.#text.charCodeAt(this.at) === 32) this.at++;
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.#text);
    if (found !== null) this.at = pattern.lastIndex;
    return found;
  }
}
