/** A whole report for a terminal: the nodes with the two numbers side by side, the findings, and what was not checked. */
import { createColors } from 'picocolors';
import { escapeControl } from '../base/text.js';
import { type Cell, innerWidth, renderGrid, TABLE_WIDTH_DEFAULT, TABLE_WIDTH_MIN, wrap } from './grid.js';
import { cut, renderFindingsTable, TABLE_LINES_MAX, type TableOptions } from './render-table.js';
import {
  CHECK_STATUSES,
  countByStatus,
  type Report,
  type ReportCheck,
  type ReportNode,
  ratioText,
  verdictText,
} from './report.js';
import { escapeReport } from './report-escape.js';

/** Columns, padding included: eight digits, so a hundred million tokens. */
const NUMBER_WIDTH = 10;
const ROLE_WIDTH = 9;
const RATIO_WIDTH = 9;
const FIXED_WIDTH: number = ROLE_WIDTH + 3 * NUMBER_WIDTH + RATIO_WIDTH;
/** Below this many columns the nodes are lines of text: a grid would break their numbers. */
const NODES_GRID_WIDTH_MIN = 76;

/** Sections that have nothing to say are left out. Ends with a line break. */
export function renderReportTable(report: Report, options: TableOptions = {}): string {
  // What is not shown is not escaped either: most checks of thousands of nodes are only counted.
  const open = report.checks.filter(({ status }) => status === 'not-checked');
  const safe = escapeReport({ ...report, findings: [], checks: open.slice(0, TABLE_LINES_MAX + 1) });
  const width = Math.max(TABLE_WIDTH_MIN, options.width ?? TABLE_WIDTH_DEFAULT);
  const fold = (lines: readonly string[]): string => lines.map((line) => `${wrap(line, width)}\n`).join('');
  const nodes =
    width < NODES_GRID_WIDTH_MIN ? fold(nodeLines(safe)) : nodesGrid(safe.nodes, width, options.colour ?? false);
  const sections = [
    nodes,
    renderFindingsTable(report.findings, options),
    fold(changeLines(safe)),
    fold(checkLines(report, safe.checks, open.length)),
    fold(skippedLines(safe)),
    verdictWords(report, fold, options.colour ?? false),
  ];
  return sections.filter((section) => section !== '').join('\n');
}

function nodesGrid(nodes: readonly ReportNode[], width: number, colour: boolean): string {
  if (nodes.length === 0) return '';
  const left = innerWidth(width, 7) - FIXED_WIDTH;
  const nameWidth = Math.ceil(left / 2);
  const widths = [nameWidth, left - nameWidth, ROLE_WIDTH, NUMBER_WIDTH, NUMBER_WIDTH, NUMBER_WIDTH, RATIO_WIDTH];
  const rows = nodes.map((node) => nodeRow(node, colour));
  return `${renderGrid(['node', 'engine', 'role', 'context', 'pool', 'accepts', 'ratio'], rows, widths, false)}\n`;
}

function nodeLines({ nodes }: Report): string[] {
  return nodes.map((node) => {
    const numbers = `context ${numberText(node.advertised)}, pool ${numberText(node.pool)}`;
    const limit = `accepts ${numberText(node.acceptLimit)}, ratio ${ratioText(node.ratio)}`;
    return `${cut(node.name)} (${engineText(node)}, ${node.role}): ${numbers}, ${limit}`;
  });
}

const engineText = (node: ReportNode): string => cut(`${node.engine ?? 'unknown'} ${node.version ?? ''}`.trim());

function nodeRow(node: ReportNode, colour: boolean): Cell[] {
  const colours = createColors(colour);
  const small = node.ratio !== null && node.ratio < 1;
  const ratio: Cell = { text: ratioText(node.ratio), ...(small ? { paint: colours.red } : {}) };
  return [
    { text: cut(node.name) },
    { text: engineText(node) },
    { text: node.role },
    { text: numberText(node.advertised) },
    { text: numberText(node.pool) },
    { text: numberText(node.acceptLimit) },
    ratio,
  ];
}

const numberText = (value: number | null): string => (value === null ? 'unknown' : String(value));

function changeLines({ changes }: Report): string[] {
  if (changes.length === 0) return [];
  const lines = changes.map(({ node, field, before, after }) => {
    return `  ${cut(node)} ${cut(field)}: ${cut(before)} -> ${cut(after)}`;
  });
  return ['changed since the baseline:', ...bounded(lines)];
}

/** `shown`: the first of those that were not checked, escaped. */
function checkLines({ checks }: Report, shown: readonly ReportCheck[], open: number): string[] {
  if (checks.length === 0) return [];
  const counts = countByStatus(checks);
  const summary = CHECK_STATUSES.filter((status) => counts[status] > 0).map((status) => `${counts[status]} ${status}`);
  const lines = shown.map(({ id, node, why }) => `  not checked: ${cut(`${id} ${node}`.trim())}: ${cut(why)}`);
  return [`checks: ${summary.join(', ')}`, ...bounded(lines, open)];
}

function bounded(lines: readonly string[], all: number = lines.length): string[] {
  const left = all - TABLE_LINES_MAX;
  return left <= 0
    ? [...lines]
    : [...lines.slice(0, TABLE_LINES_MAX), `  and ${left} more: \`--output json=FILE\` has them all`];
}

function skippedLines({ skipped }: Report): string[] {
  if (skipped.length === 0) return [];
  return ['skipped:', ...bounded(skipped.map(({ source, why }) => `  ${cut(source)}: ${cut(why)}`))];
}

function verdictWords(report: Report, fold: (lines: readonly string[]) => string, colour: boolean): string {
  const colours = createColors(colour);
  const paint = { clean: colours.green, findings: colours.red, 'not-checked': colours.yellow }[report.verdict];
  const headline = report.headline === undefined ? '' : fold([cut(escapeControl(report.headline))]);
  return `${headline}${paint(fold([verdictText(report)]).trimEnd())}\n`;
}
