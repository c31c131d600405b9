/** The findings: a list of entries that open, worst first. */
import type { DashboardState, FindingRow } from '../state.js';
import { byId, eachKeyed, make, setClass, setText } from './dom.js';
import { clockTime, plural, whole } from './format.js';
import { SEVERITY_ORDER } from './panels.js';

export function main_findings(state: DashboardState): void {
  const { findings } = state;
  const counts = SEVERITY_ORDER.filter((severity) => findings.bySeverity[severity] > 0).map(
    (severity) => `${whole(findings.bySeverity[severity])} ${severity}`,
  );
  setText(
    byId('findings-words'),
    counts.length === 0 ? 'Nothing has been noticed since the start.' : `${counts.join(', ')}.`,
  );
  const left = findings.total - findings.rows.length;
  setText(byId('findings-left'), left === 0 ? '' : `${plural(left, 'further finding')} in /findings.`);
  eachKeyed(byId('findings-rows'), findings.rows, (row) => `${row.id} ${row.place}`, newEntry, fillEntry);
}

const DETAILS: readonly { readonly name: string; readonly text: (row: FindingRow) => string }[] = [
  { name: 'Seen', text: (row) => row.observed },
  { name: 'Wanted', text: (row) => row.wanted },
  { name: 'Change', text: (row) => row.change },
  { name: 'Read', text: (row) => row.references.join(' ') || 'docs/OPERATORS.md' },
  { name: 'Sure', text: (row) => (row.certain ? 'yes' : 'no: the sign is there, the proof is not') },
  {
    name: 'When',
    text: (row) => `${plural(row.count, 'time')}, first ${clockTime(row.firstMs)}, last ${clockTime(row.lastMs)}`,
  },
];

function newEntry(): HTMLElement {
  const item = make('li');
  const details = make('details');
  const summary = make('summary');
  summary.append(make('span'), make('span', 'title'), make('span', 'place'), make('span', 'times'));
  const list = make('dl');
  for (const { name } of DETAILS) list.append(make('dt', '', name), make('dd'));
  details.append(summary, list);
  item.append(details);
  return item;
}

function fillEntry(item: HTMLElement, row: FindingRow): void {
  const [severity, title, place, times] = Array.from(item.querySelectorAll('summary > span'));
  setClass(severity!, `severity ${row.severity}`);
  setText(severity!, row.severity);
  setText(title!, row.title);
  setText(place!, `${row.id} · ${row.place}`);
  setText(times!, row.count === 1 ? clockTime(row.lastMs) : `${whole(row.count)} ×, ${clockTime(row.lastMs)}`);
  const values = item.querySelectorAll('dd');
  for (const [index, { text }] of DETAILS.entries()) setText(values[index]!, text(row));
}
