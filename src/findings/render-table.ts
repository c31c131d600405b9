import Table from 'cli-table3';
import { createColors } from 'picocolors';
import { truncate } from '../base/text.js';
import {
  countBySeverity,
  escapeFinding,
  type Finding,
  placeText,
  SEVERITIES,
  type Severity,
  sortFindings,
} from './finding.js';

/** Characters of one text in a table; the JSON has all of it. */
export const TABLE_TEXT_CHARACTERS_MAX = 600;
/** Columns of a terminal, when nobody knows how many it has, and the fewest that the table is laid out for. */
export const TABLE_WIDTH_DEFAULT = 120;
export const TABLE_WIDTH_MIN = 60;

export interface TableOptions {
  /** Colours only when asked for: a file or a pipe gets none. */
  readonly colour?: boolean;
  /** Columns. */
  readonly width?: number;
}

const SEVERITY_WIDTH = 12;
/** Borders and padding of three columns. */
const FRAME_WIDTH = 4;
/** Blanks beside the text of a cell. */
const PADDING = 2;
/** From here up a character is taken to be two columns wide: true for most, and a line is never too long by it. */
const WIDE_FROM = 0x1100;

/** `2 high, 1 info`, worst first; `nothing found` for none. */
export function severityCounts(findings: readonly Finding[]): string {
  const counts = countBySeverity(findings);
  const parts = SEVERITIES.filter((severity) => counts[severity] > 0).map((name) => `${counts[name]} ${name}`);
  return parts.length === 0 ? 'nothing found' : parts.join(', ');
}

/** Findings as a table, worst first, with the counts per severity below; ends with a line break. */
export function renderFindingsTable(findings: readonly Finding[], options: TableOptions = {}): string {
  if (findings.length === 0) return `${severityCounts(findings)}\n`;
  const paint = painter(options.colour ?? false);
  const width = Math.max(TABLE_WIDTH_MIN, options.width ?? TABLE_WIDTH_DEFAULT) - FRAME_WIDTH - SEVERITY_WIDTH;
  const placeWidth = Math.floor(width / 3);
  const widths = [SEVERITY_WIDTH, placeWidth, width - placeWidth];
  const table = new Table({
    colWidths: widths,
    style: { head: [], border: [] },
    // One row a line: the table's time grows with the square of the lines in a cell, and texts come from outside.
    chars: { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' },
  });
  table.push(['severity', 'where', 'what, and what to change']);
  for (const finding of sortFindings(findings)) {
    const safe = escapeFinding(finding);
    const place = wrap(truncate(placeText(safe.where), TABLE_TEXT_CHARACTERS_MAX), placeWidth - PADDING).split('\n');
    const what = wrap(words(safe), width - placeWidth - PADDING).split('\n');
    table.push(widths.map((columns) => '─'.repeat(columns - PADDING)));
    for (let line = 0; line < Math.max(place.length, what.length); line++) {
      table.push([line === 0 ? paint(safe.severity) : '', place[line] ?? '', what[line] ?? '']);
    }
  }
  return `${table.toString()}\n${severityCounts(findings)}\n`;
}

function words(finding: Finding): string {
  const cut = (text: string): string => truncate(text, TABLE_TEXT_CHARACTERS_MAX);
  const lines = [
    `${cut(finding.title)}${finding.certain ? '' : ' (a sign, not a proof)'}`,
    `observed: ${cut(finding.observed)}`,
    `wanted: ${cut(finding.wanted)}`,
    `change: ${cut(finding.change)}`,
    `id: ${cut(finding.id)}`,
  ];
  for (const reference of finding.references) lines.push(`see: ${cut(reference)}`);
  return lines.join('\n');
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

function painter(colour: boolean): (severity: Severity) => string {
  const colours = createColors(colour);
  const paint: Readonly<Record<Severity, (text: string) => string>> = {
    critical: (text) => colours.bold(colours.red(text)),
    high: colours.red,
    medium: colours.yellow,
    low: colours.cyan,
    info: colours.dim,
  };
  return (severity) => paint[severity](severity);
}
