import Table from 'cli-table3';

/** Columns of a terminal, when nobody knows how many it has, and the fewest that a table is laid out for. */
export const TABLE_WIDTH_DEFAULT = 120;
export const TABLE_WIDTH_MIN = 60;

/** Blanks beside the text of a cell. */
const PADDING = 2;
/** From here up a character is taken to be two columns wide: true for most, and a line is never too long by it. */
const WIDE_FROM = 0x1100;

export interface Cell {
  readonly text: string;
  /** Applied to the first line of the cell once it has been laid out. */
  readonly paint?: (text: string) => string;
}

/** Columns left for texts and padding, once the borders of `columns` columns are drawn. */
export function innerWidth(width: number | undefined, columns: number): number {
  return Math.max(TABLE_WIDTH_MIN, width ?? TABLE_WIDTH_DEFAULT) - columns - 1;
}

/**
 * A table with a head and a rule above every row (`rules`), or above the first only. `widths` are columns of the terminal,
 * padding included. One row of the library's table a line: its time grows with the square of the lines in a cell, and texts
 * come from outside.
 */
export function renderGrid(
  head: readonly string[],
  rows: readonly (readonly Cell[])[],
  widths: readonly number[],
  rules: boolean,
): string {
  const table = new Table({
    colWidths: [...widths],
    style: { head: [], border: [] },
    chars: { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' },
  });
  table.push([...head]);
  rows.forEach((row, index) => {
    if (rules || index === 0) table.push(widths.map((columns) => '─'.repeat(columns - PADDING)));
    const cells = row.map(({ text }, column) => wrap(text, widths[column]! - PADDING).split('\n'));
    const lines = Math.max(...cells.map((cell) => cell.length));
    for (let line = 0; line < lines; line++) {
      table.push(
        cells.map((cell, column) => {
          const paint = row[column]!.paint;
          const text = cell[line] ?? '';
          return line === 0 && paint !== undefined ? paint(text) : text;
        }),
      );
    }
  });
  return table.toString();
}

/** Breaks at blanks, and within words that fill a line. In one pass: the table's own wrapping takes seconds for a long word. */
export function wrap(text: string, width: number): string {
  return text
    .split('\n')
    .map((line) => wrapLine(line, width))
    .join('\n');
}

function wrapLine(text: string, width: number): string {
  const lines: string[] = [];
  let line = '';
  let used = 0;
  for (const word of text.split(/(?<= )/)) {
    const wordWidth = widthOf(word.trimEnd());
    if (used > 0 && used + wordWidth > width) {
      lines.push(line.trimEnd());
      line = '';
      used = 0;
    }
    for (const char of word) {
      const charWidth = widthOf(char);
      if (used + charWidth > width && char !== ' ') {
        lines.push(line);
        line = '';
        used = 0;
      }
      line += char;
      used += charWidth;
    }
  }
  return [...lines, line.trimEnd()].join('\n');
}

function widthOf(text: string): number {
  let width = 0;
  for (const char of text) width += char.codePointAt(0)! >= WIDE_FROM ? 2 : 1;
  return width;
}
