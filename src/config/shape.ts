/**
 * What a configuration file may hold, as data. The check of a file, the JSON Schema for editors, the table of the documentation and the
 * commented example all come from one description of this kind.
 */
export type Value = string | number | boolean | readonly Value[] | { readonly [name: string]: Value };

export interface Field {
  readonly name: string;
  readonly shape: Shape;
  /** What it is for: one sentence without its full stop. */
  readonly words: string;
  /** In the normal form: numbers for counts, milliseconds for times. Absent: nothing holds when it is not said. */
  readonly default?: Value;
  readonly required?: true;
  /** Whether a reload applies it to what already runs. Records and lists hand it down. */
  readonly live?: true;
  /** The flag that overrides it: `--ops-port`. */
  readonly flag?: string;
  /** Lines of YAML that the example shows as a comment, in place of the default. */
  readonly example?: readonly string[];
}

export interface RecordShape {
  readonly kind: 'record';
  readonly fields: readonly Field[];
}

export interface ListShape {
  readonly kind: 'list';
  readonly item: Shape;
  readonly min: number;
  readonly max: number;
  /** Each item once. */
  readonly unique?: true;
}

/** A record whose field `tag` says which fields it has. */
export interface TaggedShape {
  readonly kind: 'tagged';
  readonly tag: string;
  readonly variants: Readonly<Record<string, RecordShape>>;
}

export interface TextShape {
  readonly kind: 'text';
  /** Without anchors: the whole text has to match. */
  readonly pattern: string;
  readonly words: string;
  /** People put keys into it by mistake, so a message does not repeat it. */
  readonly hidden?: true;
}

export interface ChoiceShape {
  readonly kind: 'choice';
  readonly of: readonly string[];
}

export interface SwitchShape {
  readonly kind: 'switch';
}

/** A whole number; with `suffixes`, `8k` is 8192 and `1M` is 1048576. */
export interface CountShape {
  readonly kind: 'count';
  readonly min: number;
  readonly max: number;
  readonly unit: string;
  readonly suffixes: boolean;
  readonly powerOfTwo?: true;
}

/** `500ms`, `30s`, `5m` or `1h`; the normal form is milliseconds. */
export interface TimeShape {
  readonly kind: 'time';
  readonly minMs: number;
  readonly maxMs: number;
}

/** Where a key is to be found, never the key. */
export interface SecretShape {
  readonly kind: 'secret';
  /** The key itself is needed, so that its digest does not do. */
  readonly whole?: true;
}

export type Shape =
  | RecordShape
  | ListShape
  | TaggedShape
  | TextShape
  | ChoiceShape
  | SwitchShape
  | CountShape
  | TimeShape
  | SecretShape;

const WHOLE_SECRET_PATTERN = 'env:[A-Za-z_][A-Za-z0-9_]{0,127}|file:.{1,4095}';
const SECRET_PATTERN = `${WHOLE_SECRET_PATTERN}|sha256:[0-9a-fA-F]{64}`;
export function secretPattern({ whole }: SecretShape): string {
  return whole === true ? WHOLE_SECRET_PATTERN : SECRET_PATTERN;
}

export const COUNT_PATTERN = '[0-9]{1,15}[kKmMgG]';
export const TIME_PATTERN = '[0-9]{1,9}(?:ms|s|m|h)';

const MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Milliseconds of `30s`; null for what is no time. */
export function parseTime(text: string): number | null {
  if (!new RegExp(`^(?:${TIME_PATTERN})$`).test(text)) return null;
  const unit = text.replace(/^\d+/, '');
  return Number.parseInt(text, 10) * MS[unit]!;
}

/** The shortest way to write milliseconds down. */
export function timeText(ms: number): string {
  const unit = ['h', 'm', 's'].find((each) => ms > 0 && ms % MS[each]! === 0) ?? 'ms';
  return `${ms / MS[unit]!}${unit}`;
}

/** Bytes and tokens as people write them: 8388608 is `8M`. */
export function countText(count: number, suffixes: boolean): string {
  if (!suffixes || count === 0) return String(count);
  for (const [suffix, factor] of [
    ['M', 1024 ** 2],
    ['k', 1024],
  ] as const) {
    if (count % factor === 0) return `${count / factor}${suffix}`;
  }
  return String(count);
}

/** What a value has to be, in words. */
export function expectedWords(shape: Shape): string {
  switch (shape.kind) {
    case 'record':
    case 'tagged':
      return 'a mapping of names and values';
    case 'list': {
      const { item, min, max } = shape;
      const each = item.kind === 'record' || item.kind === 'tagged' ? '' : `, each ${expectedWords(item)}`;
      if (min === max) return `a list of ${min}${each}`;
      return `a list of ${min === 0 ? `at most ${max}` : `${min} to ${max}`}${each}`;
    }
    case 'text':
      return shape.words;
    case 'choice':
      return shape.of.map((each) => `\`${each}\``).join(' or ');
    case 'switch':
      return '`true` or `false`';
    case 'count': {
      const what = shape.powerOfTwo === true ? 'a power of two' : 'a whole number';
      const unit = shape.unit === '' ? '' : ` ${shape.unit}`;
      return `${what} from ${countText(shape.min, shape.suffixes)} to ${countText(shape.max, shape.suffixes)}${unit}`;
    }
    case 'time':
      return `a time from ${timeText(shape.minMs)} to ${timeText(shape.maxMs)}`;
    case 'secret':
      return shape.whole === true ? '`env:NAME` or `file:PATH`' : '`env:NAME`, `file:PATH` or `sha256:HEX64`';
  }
}

/** One field of the whole description, with the way to it: `upstreams[].pools.prefill`. */
export interface PlacedField {
  readonly path: string;
  readonly field: Field;
  /** Whether it, or what it stands in, is applied by a reload. */
  readonly live: boolean;
  /** Of tagged records: the kind that has it; absent: all do. */
  readonly variant?: string;
}

/** Every field, outer ones first, in the order of the description. */
export function fieldsOf(shape: Shape, path: string = '', live: boolean = false): PlacedField[] {
  switch (shape.kind) {
    case 'record':
      return shape.fields.flatMap((field) => {
        const own = path === '' ? field.name : `${path}.${field.name}`;
        const placed = { path: own, field, live: live || field.live === true };
        return [placed, ...fieldsOf(field.shape, own, placed.live)];
      });
    case 'tagged':
      return Object.entries(shape.variants).flatMap(([name, variant]) =>
        fieldsOf(variant, path, live).map((placed) => ({ ...placed, variant: name })),
      );
    case 'list':
      return fieldsOf(shape.item, `${path}[]`, live);
    default:
      return [];
  }
}
