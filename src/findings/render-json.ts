import { escapeFinding, type Finding, sortFindings } from './finding.js';
import type { FindingLog } from './finding-log.js';

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
