import { expectedWords, type Field, type RecordShape, type Shape } from './shape.js';
import { valueText } from './table.js';

const COMMENT_COLUMNS = 120;

/** A file with everything in it: what has a default stands there with it, the rest is a comment. */
export function exampleOf(shape: RecordShape, head: readonly string[]): string {
  const lines = head.map((line) => `# ${line}`.trimEnd());
  for (const field of shape.fields) lines.push('', ...fieldLines(field, ''));
  return `${lines.join('\n')}\n`;
}

function fieldLines(field: Field, indent: string): string[] {
  const { shape } = field;
  const lines = comment(`${field.words}${shape.kind === 'record' ? '' : ` (${expectedWords(shape)})`}.`, indent);
  const isTagged = shape.kind === 'list' && shape.item.kind === 'tagged';
  if (field.example !== undefined && !isTagged) return [...lines, ...exampleLines(field, indent)];
  if (shape.kind === 'record') return [...lines, `${indent}${field.name}:`, ...inner(shape, `${indent}  `)];
  if (shape.kind === 'list') return [...lines, ...listLines(field, shape.item, indent)];
  const text = valueText(shape, field.default);
  return [...lines, text === '' ? `${indent}# ${field.name}:` : `${indent}${field.name}: ${text}`];
}

function inner(shape: RecordShape, indent: string): string[] {
  return shape.fields.flatMap((field) => fieldLines(field, indent));
}

/** A list of tagged records shows the first kind, and the example of the others as a comment; any other list is empty. */
function listLines(field: Field, item: Shape, indent: string): string[] {
  const [first] = item.kind === 'tagged' ? Object.values(item.variants) : [];
  if (first === undefined) return [`${indent}${field.name}: []`];
  const all = inner(first, '').filter((line) => line !== '');
  const at = all.findIndex((line) => !line.startsWith('#'));
  const lines = all.map((line, index) => `${indent}  ${index < at ? '' : index === at ? '- ' : '  '}${line}`);
  return [`${indent}${field.name}:`, ...lines, ...exampleLines(field, indent)];
}

function exampleLines(field: Field, indent: string): string[] {
  return (field.example ?? []).map((line) => `${indent}# ${line}`.trimEnd());
}

function comment(text: string, indent: string): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && indent.length + line.length + word.length + 3 > COMMENT_COLUMNS) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].map((each) => `${indent}# ${each}`);
}
