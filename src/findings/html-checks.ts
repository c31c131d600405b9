import { escapeMarkup, escapeWithCode } from './markup.js';
import { type CheckStatus, countByStatus, type Report, type ReportCheck, requiredUnchecked } from './report.js';

/** What was not checked comes with its reason; what was, with the nodes it was checked on. */
export function checksSections(report: Report): string {
  return [uncheckedSection(report), checkedSection(report), changesSection(report), skippedSection(report)]
    .filter((section) => section !== '')
    .join('\n');
}

function uncheckedSection(report: Report): string {
  const required = requiredUnchecked(report);
  const keys = new Set(required.map(keyOf));
  const others = report.checks.filter((check) => check.status === 'not-checked' && !keys.has(keyOf(check)));
  if (required.length + others.length === 0) return '';
  const rows = [
    ...required.map((check) => uncheckedRow(check, ' <span class="chip t-medium">required</span>')),
    ...others.map((check) => uncheckedRow(check, '')),
  ];
  return `<section><h2>What was not checked</h2>
<p class="soft">Not checked is not the same as passed: each of these may be a problem that nobody saw.</p>
${table(['Check', 'Node', 'Why not'], rows)}</section>`;
}

const keyOf = ({ id, node }: ReportCheck): string => JSON.stringify([id, node]);

function uncheckedRow({ id, node, why }: ReportCheck, mark: string): string {
  return `<tr><td><code>${escapeMarkup(id)}</code>${mark}</td><td>${escapeMarkup(nodeName(node))}</td><td>${escapeWithCode(why)}</td></tr>`;
}

const nodeName = (node: string): string => (node === '' ? 'the deployment' : node);

function checkedSection({ checks }: Report): string {
  if (checks.length === 0) return '';
  const counts = countByStatus(checks);
  const rows = [...nodesById(checks)].map(([id, by]) => {
    const cells = [by.passed, by.failed, by['not-applicable']].map(
      (names) => `<td>${escapeMarkup(names.join(', '))}</td>`,
    );
    return `<tr><td><code>${escapeMarkup(id)}</code></td>${cells.join('')}</tr>`;
  });
  const words = `${counts.passed} passed, ${counts.failed} failed, ${counts['not-checked']} not checked, ${counts['not-applicable']} do not apply.`;
  const list = rows.length === 0 ? '' : table(['Check', 'Passed on', 'Failed on', 'Does not apply to'], rows);
  return `<section><h2>What was checked</h2>\n<p class="soft">${words}</p>\n${list}</section>`;
}

/** Checks that were made, or do not apply: one row a rule. */
function nodesById(checks: readonly ReportCheck[]): Map<string, Record<CheckStatus, string[]>> {
  const rows = new Map<string, Record<CheckStatus, string[]>>();
  for (const { id, node, status } of checks) {
    if (status === 'not-checked') continue;
    const row = rows.get(id) ?? { 'not-checked': [], failed: [], passed: [], 'not-applicable': [] };
    row[status].push(nodeName(node));
    rows.set(id, row);
  }
  return rows;
}

function changesSection({ changes }: Report): string {
  if (changes.length === 0) return '';
  const rows = changes.map(({ node, field, before, after }) => {
    const cells = [node, field, before, after].map((text) => `<td>${escapeMarkup(text)}</td>`);
    return `<tr>${cells.join('')}</tr>`;
  });
  return `<section><h2>Changed since the baseline</h2>${table(['Node', 'What', 'Before', 'Now'], rows)}</section>`;
}

function skippedSection({ skipped }: Report): string {
  if (skipped.length === 0) return '';
  const rows = skipped.map(
    ({ source, why }) => `<tr><td><code>${escapeMarkup(source)}</code></td><td>${escapeMarkup(why)}</td></tr>`,
  );
  return `<section><h2>Left out</h2>${table(['What', 'Why'], rows)}</section>`;
}

function table(head: readonly string[], rows: readonly string[]): string {
  const cells = head.map((name) => `<th>${name}</th>`).join('');
  return `<table><thead><tr>${cells}</tr></thead><tbody>\n${rows.join('\n')}\n</tbody></table>`;
}
