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
  const table = new Table({
    head: ['severity', 'where', 'what, and what to change'],
    colWidths: [SEVERITY_WIDTH, placeWidth, width - placeWidth],
    wordWrap: true,
    wrapOnWordBoundary: false,
    style: { head: [], border: [] },
  });
  for (const finding of sortFindings(findings)) {
    const safe = escapeFinding(finding);
    table.push([paint(safe.severity), truncate(placeText(safe.where), TABLE_TEXT_CHARACTERS_MAX), words(safe)]);
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
