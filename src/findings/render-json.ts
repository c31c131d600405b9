import { countBySeverity, escapeFinding, type Finding, isOpen, sortFindings } from './finding.js';
import type { FindingLog } from './finding-log.js';
import { countByStatus, type Report } from './report.js';
import { escapeReport } from './report-escape.js';

/** `[Finding, …]`, worst first, as one line of JSON. */
export function renderFindingsJson(findings: readonly Finding[]): string {
  return JSON.stringify(sortFindings(findings).map(escapeFinding));
}

/** `{ findings: [{ …Finding, count, firstMs, lastMs }], dropped }`, worst first: what the operators' port serves. */
export function renderLogJson(log: FindingLog): string {
  const findings = log.list().map((logged) => ({
    ...escapeFinding(logged),
    count: logged.count,
    firstMs: logged.firstMs,
    lastMs: logged.lastMs,
  }));
  return JSON.stringify({ findings, dropped: log.dropped });
}

/** The report as `parseReport` reads it again; ends with a line break. */
export function renderReportJson(report: Report): string {
  return `${JSON.stringify(escapeReport(report), null, 2)}\n`;
}

/**
 * One object a line, each with its `kind`: first `report` (tool, verb, version), then every `node`, `finding`, `check`,
 * `change` and `skipped`, last `verdict` with the counts. A stream cut short shows by its missing last line.
 */
export function renderReportJsonl(report: Report): string {
  const { nodes, findings, checks, changes, skipped, verdict, headline, ...head } = escapeReport(report);
  const lines: object[] = [
    { kind: 'report', ...head },
    ...nodes.map((node) => ({ kind: 'node', ...node })),
    ...findings.map((finding) => ({ kind: 'finding', ...finding })),
    ...checks.map((check) => ({ kind: 'check', ...check })),
    ...changes.map((change) => ({ kind: 'change', ...change })),
    ...skipped.map((skip) => ({ kind: 'skipped', ...skip })),
    {
      kind: 'verdict',
      verdict,
      ...(headline === undefined ? {} : { headline }),
      findings: countBySeverity(findings.filter(isOpen)),
      waived: findings.filter((finding) => !isOpen(finding)).length,
      checks: countByStatus(checks),
    },
  ];
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}
