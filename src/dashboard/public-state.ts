import { escapeControl, truncate } from '../base/text.js';
import { countBySeverity, type Finding, sortFindings } from '../findings/finding.js';
import type { DashboardState, FindingRow, FindingsPart, TenantRow, TenantsPart } from './state.js';

/** Findings on the page; `/findings` has the rest. */
export const FINDINGS_SHOWN_MAX = 100;
/** Tenants on the page: more rows than that nobody reads, and `/metrics` has all of them. */
export const TENANTS_SHOWN_MAX = 200;
/** Characters of one text on the page; longer ones say that they were cut. */
export const TEXT_CHARACTERS_MAX = 600;

/** As much of a logged finding as the page needs. */
export type SeenFinding = Finding & Pick<FindingRow, 'count' | 'firstMs' | 'lastMs'>;

export function findingsPart(findings: readonly SeenFinding[]): FindingsPart {
  const rows = sortFindings(findings).slice(0, FINDINGS_SHOWN_MAX);
  return { bySeverity: countBySeverity(findings), total: findings.length, rows: rows.map(findingRow) };
}

function findingRow(finding: SeenFinding): FindingRow {
  const { id, severity, title, where, observed, wanted, change, references, certain, count, firstMs, lastMs } = finding;
  const line = where.line === undefined ? '' : `:${where.line}`;
  const place = `${where.node}, ${where.source}${line}`;
  return { id, severity, title, place, observed, wanted, change, references, certain, count, firstMs, lastMs };
}

/** Keeps the order it is given, so that rows do not jump; when there are too many, idle tenants are left out first. */
export function tenantsPart(rows: readonly TenantRow[]): TenantsPart {
  if (rows.length <= TENANTS_SHOWN_MAX) return { rows, total: rows.length };
  const busy = (row: TenantRow): boolean => row.running + row.waiting + row.leased + row.draining > 0;
  const shown = [...rows.filter(busy), ...rows.filter((row) => !busy(row))].slice(0, TENANTS_SHOWN_MAX);
  return { rows: shown, total: rows.length };
}

/** The state as it leaves: JSON in which no string holds a control character, or more than TEXT_CHARACTERS_MAX. */
export function stateJson(state: DashboardState): string {
  return JSON.stringify(state, (_key, value: unknown) =>
    typeof value === 'string' ? truncate(escapeControl(value), TEXT_CHARACTERS_MAX) : value,
  );
}
