import { createColors } from 'picocolors';
import { truncate } from '../base/text.js';
import {
  countBySeverity,
  escapeFinding,
  type Finding,
  isOpen,
  placeText,
  SEVERITIES,
  type Severity,
  sortFindings,
  waiverText,
} from './finding.js';
import { innerWidth, renderGrid } from './grid.js';

export { TABLE_WIDTH_DEFAULT, TABLE_WIDTH_MIN, wrap } from './grid.js';

/** Characters of one text in a table; the JSON has all of it. */
export const TABLE_TEXT_CHARACTERS_MAX = 600;

/** Findings of one table, worst first, and lines of one list: nobody reads more in a terminal. */
export const TABLE_FINDINGS_MAX = 1000;
export const TABLE_LINES_MAX = 500;

export interface TableOptions {
  /** Colours only when asked for: a file or a pipe gets none. */
  readonly colour?: boolean;
  /** Columns. */
  readonly width?: number;
}

const SEVERITY_WIDTH = 12;

/** `2 high, 1 info`, worst first, and how many are waived besides; `nothing found` for none. */
export function severityCounts(findings: readonly Finding[]): string {
  const open = findings.filter(isOpen);
  const counts = countBySeverity(open);
  const parts = SEVERITIES.filter((severity) => counts[severity] > 0).map((name) => `${counts[name]} ${name}`);
  if (open.length < findings.length) parts.push(`${findings.length - open.length} waived`);
  return parts.length === 0 ? 'nothing found' : parts.join(', ');
}

/** Findings as a table, worst first, with the counts per severity below; ends with a line break. */
export function renderFindingsTable(findings: readonly Finding[], options: TableOptions = {}): string {
  if (findings.length === 0) return `${severityCounts(findings)}\n`;
  const paint = severityPainter(options.colour ?? false);
  const width = innerWidth(options.width, 3) - SEVERITY_WIDTH;
  const placeWidth = Math.floor(width / 3);
  const rows = sortFindings(findings)
    .slice(0, TABLE_FINDINGS_MAX)
    .map((finding) => {
      const safe = escapeFinding(finding);
      return [
        { text: safe.severity, paint: () => paint(safe.severity) },
        { text: cut(placeText(safe.where)) },
        { text: words(safe) },
      ];
    });
  const head = ['severity', 'where', 'what, and what to change'];
  const grid = renderGrid(head, rows, [SEVERITY_WIDTH, placeWidth, width - placeWidth], true);
  const left = findings.length - rows.length;
  const more =
    left > 0 ? `${left} more, none worse than the last one above: \`--output json=FILE\` has them all\n` : '';
  return `${grid}\n${more}${severityCounts(findings)}\n`;
}

export function cut(text: string): string {
  return truncate(text, TABLE_TEXT_CHARACTERS_MAX);
}

function words(finding: Finding): string {
  const waiver = waiverText(finding);
  const lines = [
    `${cut(finding.title)}${finding.certain ? '' : ' (a sign, not a proof)'}`,
    ...(waiver === null ? [] : [cut(waiver)]),
    `observed: ${cut(finding.observed)}`,
    `wanted: ${cut(finding.wanted)}`,
    `change: ${cut(finding.change)}`,
    `id: ${cut(finding.id)}`,
  ];
  for (const reference of finding.references) lines.push(`see: ${cut(reference)}`);
  return lines.join('\n');
}

export function severityPainter(colour: boolean): (severity: Severity) => string {
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
