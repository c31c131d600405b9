import { countText, expectedWords, type Field, fieldsOf, type PlacedField, type Shape, timeText } from './shape.js';

const cell = (text: string): string => text.replaceAll('|', '\\|');

/** The description as a table for people: one row for each name that takes a value; kinds that share a field share its row. */
export function fieldTable(shape: Shape): string {
  const rows = sharedRows(fieldsOf(shape).filter(({ field }) => field.shape.kind !== 'record'));
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const head = ['name', 'value', 'default', 'flag', 'changes', 'what it is'];
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function sharedRows(placed: readonly PlacedField[]): string[][] {
  const kinds = [...new Set(placed.flatMap(({ variant }) => (variant === undefined ? [] : [variant])))];
  const rows = new Map<string, PlacedField[]>();
  for (const one of placed) {
    const { path, field } = one;
    // The tag of each kind takes its own name only; together they say which there are.
    const isTag = field.shape.kind === 'choice' && field.shape.of.length === 1;
    const key = [path, field.words, isTag ? '' : expectedWords(field.shape)].join('\n');
    rows.set(key, [...(rows.get(key) ?? []), one]);
  }
  return [...rows.values()].map((shared) => sharedRow(shared as [PlacedField, ...PlacedField[]], kinds));
}

function sharedRow(shared: readonly [PlacedField, ...PlacedField[]], kinds: readonly string[]): string[] {
  const [{ path, field, live }] = shared;
  const values = [...new Set(shared.map((one) => expectedWords(one.field.shape)))];
  const having = shared.flatMap(({ variant }) => (variant === undefined ? [] : [variant]));
  return [
    `\`${path}\``,
    cell(values.join(' or ')),
    field.required === true ? 'needed' : defaultText(field),
    field.flag === undefined ? '' : `\`${field.flag}\``,
    live ? 'at once' : 'by a restart',
    cell(`${field.words}${kindWords(having, kinds)}`),
  ];
}

/** Which kinds of a tagged record have a field, said the shorter way; empty where all do. */
function kindWords(having: readonly string[], kinds: readonly string[]): string {
  const missing = kinds.filter((kind) => !having.includes(kind));
  if (having.length === 0 || missing.length === 0) return '';
  const names = (list: readonly string[]): string => list.map((kind) => `\`${kind}\``).join(', ');
  return missing.length < having.length ? ` (not ${names(missing)})` : ` (${names(having)})`;
}

function defaultText({ shape, default: value }: Field): string {
  const text = valueText(shape, value);
  return text === '' ? '' : `\`${text}\``;
}

/** A value of the normal form as a file holds it; empty for none, and for lists. */
export function valueText(shape: Shape, value: Field['default']): string {
  if (value === undefined || typeof value === 'object') return '';
  if (shape.kind === 'time') return timeText(value as number);
  return shape.kind === 'count' ? countText(value as number, shape.suffixes) : String(value);
}
