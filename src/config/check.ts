/** A tree against its description: every mistake of the file with its place, and the values in their normal form. */
import { shown } from '../base/text.js';
import { isPowerOfTwo, parseCount } from '../base/units.js';
import type { Mistake, Place } from './mistake.js';
import { nearest } from './nearest.js';
import {
  type CountShape,
  expectedWords,
  type Field,
  type ListShape,
  parseTime,
  type RecordShape,
  secretPattern,
  type Shape,
  type TaggedShape,
  type TimeShape,
  type Value,
} from './shape.js';
import type { Tree } from './tree.js';

export interface Checked {
  /** What the file says, without defaults; whole only where there is no mistake. */
  readonly value: Value;
  /** The place of every value by its path, such as `tenants[0].name`. */
  readonly places: ReadonlyMap<string, Place>;
  readonly mistakes: readonly Mistake[];
}

/** Nothing that is wrong stops the check of what stands beside it. */
export function checkTree(tree: Tree, shape: Shape): Checked {
  const checker = new Checker();
  const value = checker.check(tree, shape, '') ?? {};
  return { value, places: checker.places, mistakes: checker.mistakes };
}

class Checker {
  readonly mistakes: Mistake[] = [];
  readonly places: Map<string, Place> = new Map();

  /** The value in its normal form; undefined where it is wrong. */
  check(tree: Tree, shape: Shape, path: string): Value | undefined {
    this.places.set(path, tree.at);
    switch (shape.kind) {
      case 'record':
        return this.#record(tree, shape, path);
      case 'tagged':
        return this.#tagged(tree, shape, path);
      case 'list':
        return this.#list(tree, shape, path);
      case 'text':
        if (isText(tree) && matches(shape.pattern, tree.value)) return tree.value;
        this.#wrong(
          tree,
          shape,
          path,
          shape.hidden === true ? kindOf(tree) : cameOf(tree),
          'Use only what is expected.',
        );
        return undefined;
      case 'choice':
        if (isText(tree) && shape.of.includes(tree.value)) return tree.value;
        this.#wrong(tree, shape, path, cameOf(tree), hint(isText(tree) ? tree.value : '', shape.of));
        return undefined;
      case 'switch':
        if (tree.kind === 'scalar' && typeof tree.value === 'boolean') return tree.value;
        this.#wrong(tree, shape, path, cameOf(tree), 'Write `true` or `false`, without quotes.');
        return undefined;
      case 'count':
        return this.#count(tree, shape, path);
      case 'time':
        return this.#time(tree, shape, path);
      case 'secret':
        if (isText(tree) && matches(secretPattern(shape), tree.value)) return tree.value;
        this.#wrong(tree, shape, path, secretCame(tree), SECRET_CHANGE);
        return undefined;
    }
  }

  #wrong(tree: Tree, shape: Shape, path: string, came: string, change: string): void {
    const what = path === '' ? 'the file' : `\`${path}\``;
    this.mistakes.push({ at: tree.at, expected: `${what} to be ${expectedWords(shape)}`, came, change });
  }

  #record(tree: Tree, shape: RecordShape, path: string): Value | undefined {
    if (tree.kind !== 'record') {
      this.#wrong(tree, shape, path, kindOf(tree), `Known here: ${list(shape.fields.map(({ name }) => name))}.`);
      return undefined;
    }
    const fields = new Map(shape.fields.map((field) => [field.name, field]));
    const values = new Map<string, Value>();
    const seen = new Map<string, Place>();
    for (const { name, at, value } of tree.entries) {
      const first = seen.get(name);
      if (first !== undefined) this.#duplicate(name, at, first, path);
      seen.set(name, first ?? at);
      const field = fields.get(name);
      if (field === undefined) this.#unknown(name, at, [...fields.keys()], path);
      else this.#field(field, value, values, path);
    }
    for (const field of shape.fields) {
      if (field.required !== true || seen.has(field.name)) continue;
      const own = join(path, field.name);
      const expected = `\`${own}\` to be ${expectedWords(field.shape)}`;
      this.mistakes.push({ at: tree.at, expected, came: 'nothing', change: `Add \`${field.name}:\` here.` });
    }
    return Object.fromEntries(values);
  }

  #field(field: Field, tree: Tree, values: Map<string, Value>, path: string): void {
    const { shape } = field;
    // `listen:` with everything in it commented out says nothing, and means nothing wrong.
    const nothing = tree.kind === 'scalar' && tree.value === null;
    if (nothing && field.required !== true && (shape.kind === 'record' || shape.kind === 'list')) {
      this.places.set(join(path, field.name), tree.at);
      return;
    }
    const value = this.check(tree, shape, join(path, field.name));
    if (value !== undefined) values.set(field.name, value);
  }

  #duplicate(name: string, at: Place, first: Place, path: string): void {
    const own = shown(join(path, name));
    const came = `it again; the first is in line ${first.line}`;
    this.mistakes.push({ at, expected: `${own} once`, came, change: 'Keep one of them.' });
  }

  #unknown(name: string, at: Place, known: readonly string[], path: string): void {
    const where = path === '' ? '' : ` in \`${path}\``;
    const expected = `only known names${where}`;
    this.mistakes.push({ at, expected, came: shown(name), change: hint(name, known) });
  }

  #tagged(tree: Tree, shape: TaggedShape, path: string): Value | undefined {
    const kinds = Object.keys(shape.variants);
    if (tree.kind !== 'record') {
      this.#wrong(tree, shape, path, kindOf(tree), `Write \`${shape.tag}: ${kinds[0]}\` and what belongs to it.`);
      return undefined;
    }
    const tag = tree.entries.find(({ name }) => name === shape.tag);
    const own = join(path, shape.tag);
    const expected = `\`${own}\` to be one of ${list(kinds)}`;
    if (tag === undefined) {
      this.mistakes.push({ at: tree.at, expected, came: 'nothing', change: `Add \`${shape.tag}: ${kinds[0]}\` here.` });
      return undefined;
    }
    const name = isText(tag.value) ? tag.value.value : '';
    const variant = Object.hasOwn(shape.variants, name) ? shape.variants[name] : undefined;
    if (variant === undefined) {
      this.mistakes.push({ at: tag.value.at, expected, came: cameOf(tag.value), change: hint(name, kinds) });
      return undefined;
    }
    return this.#record(tree, variant, path);
  }

  #list(tree: Tree, shape: ListShape, path: string): Value | undefined {
    if (tree.kind !== 'list') {
      this.#wrong(tree, shape, path, kindOf(tree), 'Put each item on a line of its own, behind `- `.');
      return undefined;
    }
    if (tree.items.length < shape.min || tree.items.length > shape.max) {
      this.#wrong(tree, shape, path, `${tree.items.length}`, 'Add what is missing, or take out what is too much.');
    }
    // What is wrong leaves its place empty, so that the places of what follows stay right.
    const values: (Value | undefined)[] = [];
    tree.items.slice(0, shape.max).forEach((item, index) => {
      const value = this.check(item, shape.item, `${path}[${index}]`);
      if (value !== undefined && shape.unique === true && values.includes(value)) {
        const came = `${shown(value)} again`;
        this.mistakes.push({
          at: item.at,
          expected: `each item of \`${path}\` once`,
          came,
          change: 'Keep one of them.',
        });
      }
      values.push(value);
    });
    return values as Value[];
  }

  #count(tree: Tree, shape: CountShape, path: string): number | undefined {
    const raw = tree.kind === 'scalar' ? tree.value : null;
    const text = typeof raw === 'string' && shape.suffixes && /\D$/.test(raw) ? parseCount(raw) : null;
    const value = typeof raw === 'number' ? raw : text;
    const fits = value !== null && Number.isSafeInteger(value) && value >= shape.min && value <= shape.max;
    if (fits && (shape.powerOfTwo !== true || isPowerOfTwo(value))) return value;
    const change = shape.suffixes ? 'Write `8192` or `8k`, without quotes.' : 'Write a number without quotes.';
    this.#wrong(tree, shape, path, cameOf(tree), change);
    return undefined;
  }

  #time(tree: Tree, shape: TimeShape, path: string): number | undefined {
    const value = isText(tree) ? parseTime(tree.value) : null;
    if (value !== null && value >= shape.minMs && value <= shape.maxMs) return value;
    this.#wrong(tree, shape, path, cameOf(tree), 'Write a number with its unit: `500ms`, `30s`, `5m` or `1h`.');
    return undefined;
  }
}

const SECRET_CHANGE =
  'Put the key into a variable or a file and name that; a key that stood in this file has been seen and wants replacing.';

function secretCame(tree: Tree): string {
  return isText(tree)
    ? `a text of ${tree.value.length} characters, not repeated here since it may be a key`
    : kindOf(tree);
}

function isText(tree: Tree): tree is Tree & { readonly kind: 'scalar'; readonly value: string } {
  return tree.kind === 'scalar' && typeof tree.value === 'string';
}

function matches(pattern: string, text: string): boolean {
  return new RegExp(`^(?:${pattern})$`, 'u').test(text);
}

export function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}

/** What came, without what it says. */
function kindOf(tree: Tree): string {
  if (tree.kind === 'record') return 'a mapping';
  if (tree.kind === 'list') return 'a list';
  if (tree.value === null) return 'nothing';
  return typeof tree.value === 'string' ? 'a text' : `a ${typeof tree.value}`;
}

function cameOf(tree: Tree): string {
  if (tree.kind !== 'scalar' || tree.value === null) return kindOf(tree);
  return typeof tree.value === 'string' ? `the text ${shown(tree.value)}` : shown(tree.value);
}

function list(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(', ');
}

function hint(name: string, known: readonly string[]): string {
  const near = nearest(name, known);
  return near === null ? `Known here: ${list(known)}.` : `Did you mean \`${near}\`? Known here: ${list(known)}.`;
}
