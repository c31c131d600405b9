/** Values of a checked file, taken apart by their fields. */
import { join } from './check.js';
import type { Field, RecordShape, Shape, Value } from './shape.js';

/** One value with the field that it belongs to. Lists of plain values are one; records, and lists of tagged ones, are taken apart. */
export interface Leaf {
  /** `upstreams[0].context` */
  readonly path: string;
  readonly field: Field;
  readonly live: boolean;
  /** Whether the file says it, or its default holds. */
  readonly given: boolean;
  /** Undefined: neither. */
  readonly value: Value | undefined;
}

type Values = Readonly<Record<string, Value>>;

/** Every leaf of the description, with what holds for it. */
export function leavesOf(shape: RecordShape, value: Value, path: string = '', live: boolean = false): Leaf[] {
  const values = value as Values;
  return shape.fields.flatMap((field) =>
    fieldLeaves(field, values[field.name], join(path, field.name), live || field.live === true),
  );
}

function fieldLeaves(field: Field, value: Value | undefined, path: string, live: boolean): Leaf[] {
  if (field.shape.kind === 'record') return leavesOf(field.shape, value ?? {}, path, live);
  const item = field.shape.kind === 'list' ? field.shape.item : null;
  if (item?.kind !== 'tagged') {
    return [{ path, field, live, given: value !== undefined, value: value ?? field.default }];
  }
  const list = (value ?? field.default ?? []) as readonly Values[];
  return list.flatMap((each, index) => variantLeaves(item, each, `${path}[${index}]`, live));
}

function variantLeaves(
  shape: Shape & { readonly kind: 'tagged' },
  values: Values,
  path: string,
  live: boolean,
): Leaf[] {
  const tag = values[shape.tag];
  const variant = typeof tag === 'string' ? shape.variants[tag] : undefined;
  return variant === undefined ? [] : leavesOf(variant, values, path, live);
}

/** The name under which the parser of the command line holds a flag: `opsPort` for `--ops-port`, `prefixCache` for `--no-prefix-cache`. */
export function flagProperty(flag: string): string {
  return flag.replace(/^--(?:no-)?/, '').replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** A value as the command line would have given it. */
export function flagValue(value: Value): string | boolean | readonly string[] {
  if (typeof value === 'boolean') return value;
  return Array.isArray(value) ? value.map(String) : String(value as string | number);
}
