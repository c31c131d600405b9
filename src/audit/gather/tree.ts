/** YAML as a tree with lines. Aliases point, they are never copied; depth and size are bounded; nothing in it is run. */
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseAllDocuments } from 'yaml';
import { readPlainYaml } from './plain-yaml.js';
import type { Tree } from './yaml-tree.js';

/** Bytes of one YAML text: a rendered chart is some 200 KB. */
export const YAML_CHARACTERS_MAX = 8_388_608;
/** Levels that are followed; a Dynamo graph has some 12. */
export const YAML_DEPTH_MAX = 60;
/** Nodes of one text that are followed. */
export const YAML_NODES_MAX = 400_000;
/** Brackets open at once, seen before the parser is asked: it goes down with each. */
const BRACKETS_MAX = 200;

/** Documents of one text, or why it is none. */
export type Parsed = { readonly documents: readonly Tree[] } | { readonly why: string };

export function parseYaml(text: string): Parsed {
  if (text.length > YAML_CHARACTERS_MAX) return { why: `YAML of more than ${YAML_CHARACTERS_MAX} characters` };
  const documents: Tree[] = [];
  for (const { part, linesBefore } of documentsOf(text)) {
    const plain = readPlainYaml(part, linesBefore);
    if (plain !== null) {
      documents.push(plain);
      continue;
    }
    const parsed = parseWholeYaml(part, linesBefore);
    if ('why' in parsed) return parsed;
    documents.push(...parsed.documents);
  }
  return { documents };
}

interface Part {
  readonly part: string;
  readonly linesBefore: number;
}

/** Kinds that start nothing and lead nowhere; they are most of a cluster, and Secrets are better not looked at. */
const PASSED_OVER =
  /^kind:[ \t]{0,10}["']?(?:CustomResourceDefinition|ConfigMap|Secret|SealedSecret|ExternalSecret|ServiceAccount|(?:Cluster)?Role(?:Binding)?|PersistentVolume(?:Claim)?|StorageClass|PriorityClass|PodDisruptionBudget|HorizontalPodAutoscaler|ServiceMonitor|PodMonitor|PrometheusRule|LimitRange|ResourceQuota|Namespace|(?:Validating|Mutating)WebhookConfiguration)["']?[ \t]{0,10}(?:#.*)?$/m;

/** The documents of a text, each with its marker: nothing in one refers to another. */
function documentsOf(text: string): Part[] {
  const parts: Part[] = [];
  let start = 0;
  let linesBefore = 0;
  while (start < text.length) {
    const next = text.indexOf('\n---', start);
    const end = next < 0 ? text.length : next + 1;
    const part = text.slice(start, end);
    if (!PASSED_OVER.test(part)) parts.push({ part, linesBefore });
    for (let at = part.indexOf('\n'); at >= 0; at = part.indexOf('\n', at + 1)) linesBefore++;
    start = end;
  }
  return parts;
}

/** The whole language. `linesBefore` are added to every line that is told. */
export function parseWholeYaml(text: string, linesBefore: number): Parsed {
  if (tooNested(text)) return { why: `YAML nested more than ${BRACKETS_MAX} brackets deep` };
  const lines = new LineCounter();
  // A text can hold an error on every line, and each would take a picture of the stack.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    const documents = parseAllDocuments(text, {
      lineCounter: lines,
      prettyErrors: false,
      uniqueKeys: false,
      strict: false,
      logLevel: 'silent',
    });
    if (!Array.isArray(documents)) return { documents: [] };
    if (documents.some(({ errors }) => errors.length > 0)) return { why: 'not well-formed YAML' };
    return { documents: documents.map((document) => new Planter(document, lines, linesBefore).plant()) };
  } catch (error) {
    return { why: error instanceof RangeError ? 'YAML nested too deeply' : 'not well-formed YAML' };
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** Text in quotes may hold brackets: a little too strict for it, which nobody meets. */
function tooNested(text: string): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 91 || code === 123) {
      if (++depth > BRACKETS_MAX) return true;
    } else if ((code === 93 || code === 125) && depth > 0) depth--;
  }
  return false;
}

class Planter {
  readonly #lines: LineCounter;
  readonly #document: Document;
  readonly #linesBefore: number;
  /** By anchor; a name that comes again means the later place from there on. */
  readonly #planted: Map<string, Tree> = new Map();
  #nodes = 0;

  constructor(document: Document, lines: LineCounter, linesBefore: number) {
    this.#document = document;
    this.#lines = lines;
    this.#linesBefore = linesBefore;
  }

  plant(): Tree {
    return this.#tree(this.#document.contents, 0);
  }

  #tree(node: unknown, depth: number): Tree {
    const line = this.#lineOf(node);
    const nothing: Tree = { kind: 'scalar', text: null, line };
    if (depth > YAML_DEPTH_MAX || ++this.#nodes > YAML_NODES_MAX) return nothing;
    // The parser's own way to an anchor walks the whole document each time.
    if (isAlias(node)) return this.#planted.get(node.source) ?? nothing;
    if (isScalar(node)) return this.#keep(node, { kind: 'scalar', text: scalarText(node.value, node.source), line });
    if (isSeq(node)) {
      return this.#keep(node, { kind: 'list', items: node.items.map((item) => this.#tree(item, depth + 1)), line });
    }
    if (!isMap(node)) return nothing;
    const entries = new Map<string, Tree>();
    for (const { key, value } of node.items) {
      const name = isScalar(key) ? scalarText(key.value, key.source) : typeof key === 'string' ? key : null;
      if (name === null) continue;
      const child = this.#tree(value, depth + 1);
      if (name === '<<') mergeInto(entries, child);
      else
        entries.set(
          name,
          child.kind === 'scalar' && child.text === null ? { ...child, line: this.#lineOf(key) } : child,
        );
    }
    return this.#keep(node, { kind: 'map', entries, line });
  }

  #keep(node: Node, tree: Tree): Tree {
    if ('anchor' in node && node.anchor !== undefined) this.#planted.set(node.anchor, tree);
    return tree;
  }

  #lineOf(node: unknown): number {
    const range = (node as { range?: readonly number[] } | null)?.range;
    return range === undefined || range === null ? 0 : this.#linesBefore + this.#lines.linePos(range[0] ?? 0).line;
  }
}

/** `<<: *base`: what the map itself says counts. */
function mergeInto(entries: Map<string, Tree>, from: Tree): void {
  for (const one of from.kind === 'list' ? from.items : [from]) {
    if (one.kind !== 'map') continue;
    for (const [name, value] of one.entries) if (!entries.has(name)) entries.set(name, value);
  }
}

/** Numbers as they were written, so that `1048576` and `"1048576"` are alike. */
function scalarText(value: unknown, source: string | undefined): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'bigint') return source ?? String(value);
  return typeof value === 'boolean' ? String(value) : null;
}

/** Down the maps by name; a number picks of a list. */
export function dig(tree: Tree | undefined, ...path: readonly (string | number)[]): Tree | undefined {
  let at = tree;
  for (const step of path) {
    if (at?.kind === 'map' && typeof step === 'string') at = at.entries.get(step);
    else if (at?.kind === 'list' && typeof step === 'number') at = at.items[step];
    else return undefined;
  }
  return at;
}

export function textAt(tree: Tree | undefined, ...path: readonly (string | number)[]): string | null {
  const found = dig(tree, ...path);
  return found?.kind === 'scalar' ? found.text : null;
}

export function itemsAt(tree: Tree | undefined, ...path: readonly (string | number)[]): readonly Tree[] {
  const found = dig(tree, ...path);
  return found?.kind === 'list' ? found.items : [];
}

export function entriesAt(tree: Tree | undefined, ...path: readonly (string | number)[]): ReadonlyMap<string, Tree> {
  const found = dig(tree, ...path);
  return found?.kind === 'map' ? found.entries : new Map();
}

/** Scalars of a map, as text: labels and selectors. */
export function textsAt(tree: Tree | undefined, ...path: readonly (string | number)[]): Map<string, string> {
  const texts = new Map<string, string>();
  for (const [name, value] of entriesAt(tree, ...path)) {
    if (value.kind === 'scalar' && value.text !== null) texts.set(name, value.text);
  }
  return texts;
}
