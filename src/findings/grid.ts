/** Columns of a terminal, when nobody knows how many it has, and the fewest that a table is laid out for. */
export const TABLE_WIDTH_DEFAULT = 120;
export const TABLE_WIDTH_MIN = 60;

/** Blanks beside the text of a cell. */
const PADDING = 2;
/** Two columns wide in a terminal: East Asian scripts and forms, and what is shown as a picture. */
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\p{Emoji_Presentation}\u{16fe0}-\u{1b2ff}\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
/** No column of their own: they sit on the character before. */
const MARK = /\p{M}/u;

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
 * A table with a head, and a rule above every row (`rules`) or above the first only. `widths` are columns of the terminal,
 * padding included. Drawn here because the texts come from outside: a library's time grew with the square of their lines.
 */
export function renderGrid(
  head: readonly string[],
  rows: readonly (readonly Cell[])[],
  widths: readonly number[],
  rules: boolean,
): string {
  const edge = (left: string, middle: string, right: string): string =>
    `${left}${widths.map((columns) => '─'.repeat(columns)).join(middle)}${right}`;
  const lines = [
    edge('┌', '┬', '┐'),
    ...rowLines(
      head.map((text) => ({ text })),
      widths,
    ),
  ];
  const rule = rowLines(
    widths.map((columns) => ({ text: '─'.repeat(columns - PADDING) })),
    widths,
  );
  for (const [index, row] of rows.entries()) {
    if (rules || index === 0) lines.push(...rule);
    for (const line of rowLines(row, widths)) lines.push(line);
  }
  lines.push(edge('└', '┴', '┘'));
  return lines.join('\n');
}

/** One row, as many lines high as its highest cell. */
function rowLines(row: readonly Cell[], widths: readonly number[]): string[] {
  const cells = row.map(({ text }, column) => wrap(text, widths[column]! - PADDING).split('\n'));
  const height = Math.max(...cells.map((cell) => cell.length));
  return Array.from({ length: height }, (_, line) => {
    const drawn = cells.map((cell, column) => {
      const text = cell[line] ?? '';
      const paint = line === 0 ? row[column]!.paint : undefined;
      return ` ${paint === undefined ? text : paint(text)}${' '.repeat(Math.max(0, widths[column]! - PADDING - widthOf(text)))} `;
    });
    return `│${drawn.join('│')}│`;
  });
}

/** Breaks at blanks, and within words that fill a line. In one pass over the text. */
export function wrap(text: string, width: number): string {
  return text
    .split('\n')
    .map((line) => wrapLine(line, width))
    .join('\n');
}

function wrapLine(text: string, width: number): string {
  if (widthOf(text) <= width) return text.trimEnd();
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
    if (used + wordWidth <= width) {
      line += word;
      used += wordWidth + (word.endsWith(' ') ? 1 : 0);
      continue;
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

/** Columns of a terminal that a text takes. */
function widthOf(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length;
  let width = 0;
  for (const char of text) width += MARK.test(char) ? 0 : WIDE.test(char) ? 2 : 1;
  return width;
}
