/** YAML as a tree with the line and column of everything in it. Nothing is copied, merged or run: aliases, anchors and tags are mistakes. */
import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node as YamlNode,
  parseDocument,
  type YAMLError,
} from 'yaml';
import type { Mistake, Place } from './mistake.js';

/** Bytes of a file: a thousand tenants with two keys each are some 100 KB. */
export const FILE_BYTES_MAX = 262_144;
/** Levels; the description has five. */
const DEPTH_MAX = 20;
/** Brackets open at once, counted before the parser is asked: it goes down with each. */
const BRACKETS_MAX = 50;
/** Errors of the syntax that are said; after the first few they follow from each other. */
const SYNTAX_MISTAKES_MAX = 10;

export type Tree =
  | { readonly kind: 'record'; readonly entries: readonly TreeEntry[]; readonly at: Place }
  | { readonly kind: 'list'; readonly items: readonly Tree[]; readonly at: Place }
  | { readonly kind: 'scalar'; readonly value: string | number | boolean | null; readonly at: Place };

export interface TreeEntry {
  readonly name: string;
  /** Of the name. */
  readonly at: Place;
  readonly value: Tree;
}

export interface ReadTree {
  /** Null where `mistakes` says why. */
  readonly tree: Tree | null;
  readonly mistakes: readonly Mistake[];
}

const START: Place = { line: 1, column: 1 };

/** The tree of a file's bytes, or every mistake of its syntax. */
export function readTree(bytes: Uint8Array): ReadTree {
  if (bytes.length > FILE_BYTES_MAX) {
    return refused(START, `at most ${FILE_BYTES_MAX} bytes`, 'more', 'Take out what is no configuration.');
  }
  const decoded = decode(bytes);
  if (typeof decoded !== 'string') {
    return refused(decoded, 'text in UTF-8', 'bytes that are none', 'Save the file as UTF-8.');
  }
  const deep = tooNested(decoded);
  if (deep !== null) return refused(deep, `at most ${BRACKETS_MAX} open brackets`, 'more', 'Close some of them.');
  return parse(decoded);
}

function refused(at: Place, expected: string, came: string, change: string): ReadTree {
  return { tree: null, mistakes: [{ at, expected, came, change }] };
}

/** The text without its byte order mark, or the place of the first byte that is not UTF-8. */
function decode(bytes: Uint8Array): string | Place {
  const text = Buffer.from(bytes).toString('utf8');
  const again = Buffer.from(text, 'utf8');
  let same = 0;
  while (same < bytes.length && again[same] === bytes[same]) same++;
  if (same === bytes.length && same === again.length) return text.replace(/^\ufeff/, '');
  return placeIn(Buffer.from(bytes.subarray(0, same)).toString('utf8'));
}

/** The place behind `text`. */
function placeIn(text: string): Place {
  const lines = text.split('\n');
  return { line: lines.length, column: lines.at(-1)!.length + 1 };
}

/** Text in quotes may hold brackets: a little too strict for it, which nobody meets. */
function tooNested(text: string): Place | null {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 91 || code === 123) {
      if (++depth > BRACKETS_MAX) return placeIn(text.slice(0, at));
    } else if ((code === 93 || code === 125) && depth > 0) depth--;
  }
  return null;
}

function parse(text: string): ReadTree {
  const lines = new LineCounter();
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    const document = parseDocument(text, {
      lineCounter: lines,
      prettyErrors: false,
      uniqueKeys: false,
      merge: false,
      version: '1.2',
      schema: 'core',
      // `silent` would hide a second document.
      logLevel: 'error',
    });
    const wrong: readonly YAMLError[] = [...document.errors, ...document.warnings];
    if (wrong.length > 0) return { tree: null, mistakes: syntaxMistakes(wrong, lines) };
    if (document.contents === null || isNothing(document.contents)) {
      return refused(START, 'a configuration', 'an empty file', 'Write one: `cofferdam init` makes an example.');
    }
    const planter = new Planter(lines);
    const tree = planter.plant(document.contents, 0);
    return { tree: planter.mistakes.length > 0 ? null : tree, mistakes: planter.mistakes };
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    return refused(START, `at most ${DEPTH_MAX} levels`, 'more', 'Take some of them out.');
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

function isNothing(node: YamlNode): boolean {
  return isScalar(node) && node.value === null && node.tag === undefined && node.anchor === undefined;
}

/** Our own words for each code: the parser's may repeat what stands in the file, and that may be a key. */
const SYNTAX: Readonly<Record<string, readonly [expected: string, came: string, change: string]>> = {
  TAB_AS_INDENT: ['blanks at the beginning of a line', 'a tab', 'Replace the tab by blanks.'],
  MULTIPLE_DOCS: ['one document', 'a second one', 'Take out the line `---` between them.'],
  BAD_INDENT: ['lines of one block to begin in one column', 'another column', 'Line them up.'],
  MISSING_CHAR: ['a closing quote, a bracket, a comma or a colon', 'none', 'Add what is missing here.'],
  BLOCK_AS_IMPLICIT_KEY: ['one `name: value` on a line', 'more', 'Put each on a line of its own, or quote the text.'],
  UNEXPECTED_TOKEN: ['YAML', 'characters that do not belong here', 'Quote the text or take them out.'],
  TAG_RESOLVE_FAILED: ['a value without a tag', 'a tag', 'Take out the word that begins with `!`.'],
  BAD_ALIAS: ['values that are written out', 'an alias', 'Write the value out instead of `*name`.'],
};

function syntaxMistakes(errors: readonly YAMLError[], lines: LineCounter): Mistake[] {
  return errors.slice(0, SYNTAX_MISTAKES_MAX).map((error) => {
    const [expected, came, change] = SYNTAX[error.code] ?? [
      'well-formed YAML',
      `what the parser calls ${error.code}`,
      'Compare the line with the example of `cofferdam init`.',
    ];
    const { line, col } = lines.linePos(error.pos[0]);
    return { at: { line, column: col }, expected, came, change };
  });
}

class Planter {
  readonly mistakes: Mistake[] = [];
  readonly #lines: LineCounter;

  constructor(lines: LineCounter) {
    this.#lines = lines;
  }

  plant(node: unknown, depth: number): Tree {
    const at = this.#placeOf(node);
    const nothing: Tree = { kind: 'scalar', value: null, at };
    if (depth > DEPTH_MAX) {
      this.#wrong(at, `at most ${DEPTH_MAX} levels`, 'more', 'Take some of them out.');
      return nothing;
    }
    if (isAlias(node)) {
      this.#wrong(at, 'values that are written out', 'an alias', 'Write the value out instead of `*name`.');
      return nothing;
    }
    if (isMap(node) || isSeq(node) || isScalar(node)) {
      if (node.anchor !== undefined) {
        this.#wrong(at, 'values that are written out', 'an anchor', 'Take out the word that begins with `&`.');
      }
      if (node.tag !== undefined) {
        this.#wrong(at, 'a value without a tag', 'a tag', 'Take out the word that begins with `!`.');
      }
    }
    if (isMap(node)) return { kind: 'record', entries: this.#entries(node.items, depth), at };
    if (isSeq(node)) return { kind: 'list', items: node.items.map((item) => this.plant(item, depth + 1)), at };
    return { kind: 'scalar', value: isScalar(node) ? scalarOf(node.value) : null, at };
  }

  #entries(items: readonly { key: unknown; value: unknown }[], depth: number): TreeEntry[] {
    const entries: TreeEntry[] = [];
    for (const { key, value } of items) {
      const at = this.#placeOf(key);
      const planted: Tree = value === null ? { kind: 'scalar', value: null, at } : this.plant(value, depth + 1);
      if (isScalar(key) && key.value !== null && key.anchor === undefined && key.tag === undefined) {
        entries.push({ name: String(scalarOf(key.value)), at, value: planted });
      } else this.#wrong(at, 'a plain name before the colon', 'something else', 'Write `name: value`.');
    }
    return entries;
  }

  #wrong(at: Place, expected: string, came: string, change: string): void {
    this.mistakes.push({ at, expected, came, change });
  }

  #placeOf(node: unknown): Place {
    const range = isMap(node) || isSeq(node) || isScalar(node) || isAlias(node) ? node.range : null;
    if (range === null || range === undefined) return START;
    const { line, col } = this.#lines.linePos(range[0]);
    return { line, column: col };
  }
}

function scalarOf(value: unknown): string | number | boolean | null {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  return typeof value === 'bigint' ? Number(value) : null;
}
