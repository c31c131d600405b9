import { countText, expectedWords, type Field, fieldsOf, type Shape, timeText } from './shape.js';

const cell = (text: string): string => text.replaceAll('|', '\\|');

/** The description as a table for people: one row for each name that takes a value. */
export function fieldTable(shape: Shape): string {
  const rows = fieldsOf(shape)
    .filter(({ field }) => field.shape.kind !== 'record')
    .map(({ path, field, live }) => [
      `\`${path}\``,
      cell(expectedWords(field.shape)),
      field.required === true ? 'needed' : defaultText(field),
      field.flag === undefined ? '' : `\`${field.flag}\``,
      live ? 'at once' : 'by a restart',
      cell(field.words),
    ]);
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const head = ['name', 'value', 'default', 'flag', 'changes', 'what it is'];
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
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
