/** SARIF 2.1.0, for code scanning and for viewers. Section numbers are those of the standard. */
import { createHash } from 'node:crypto';
import { compareText, type Finding, isOpen, type Severity, waiverText } from './finding.js';
import { type Report, type ReportCheck, requiredUnchecked } from './report.js';
import { escapeReport } from './report-escape.js';
import type { RuleText } from './rule-text.js';
import { locationOf } from './sarif-location.js';
import { type SarifRules, sarifRules } from './sarif-rules.js';
import { messageText } from './sarif-text.js';

export const SARIF_SCHEMA =
  'https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json';

const LEVEL: Readonly<Record<Severity, 'error' | 'warning' | 'note'>> = {
  critical: 'error',
  high: 'error',
  medium: 'warning',
  low: 'note',
  info: 'note',
};

/** One log with one run. Findings are results; what was not checked is a notification of the run; waivers are suppressions. */
export function renderSarif(report: Report, rules: readonly RuleText[] = []): string {
  const safe = escapeReport(report);
  const notChecked = safe.checks.filter(({ status }) => status === 'not-checked');
  const described = sarifRules([...safe.findings.map(({ id }) => id), ...notChecked.map(({ id }) => id)], safe, rules);
  const run = {
    tool: { driver: { name: safe.tool.name, version: safe.tool.version, rules: described.list } },
    // 3.17: keeps the runs of one verb apart from those of another.
    automationDetails: { id: `${encodeURIComponent(safe.tool.name)}/${encodeURIComponent(safe.verb)}/` },
    columnKind: 'utf16CodeUnits',
    originalUriBaseIds: { '%SRCROOT%': { description: { text: 'The folder that the audit was started in.' } } },
    invocations: [invocation(safe, notChecked, described)],
    results: results(safe, described),
    properties: { verdict: safe.verdict, failOn: safe.failOn },
  };
  return `${JSON.stringify({ $schema: SARIF_SCHEMA, version: '2.1.0', runs: [run] }, null, 2)}\n`;
}

function invocation(report: Report, notChecked: readonly ReportCheck[], rules: SarifRules): object {
  const required = new Set(requiredUnchecked(report).map(checkKey));
  return {
    executionSuccessful: report.verdict !== 'not-checked',
    ...(report.createdAt === undefined ? {} : utcEnd(report.createdAt)),
    toolExecutionNotifications: notChecked.map((check) => ({
      level: required.has(checkKey(check)) ? 'warning' : 'note',
      message: {
        text: messageText(`Not checked: ${check.id}${check.node === '' ? '' : ` on ${check.node}`}. ${check.why}`),
      },
      associatedRule: rules.reference(check.id),
      ...(check.node === '' ? {} : { locations: [{ logicalLocations: [{ name: check.node, kind: 'resource' }] }] }),
    })),
  };
}

const checkKey = ({ id, node }: ReportCheck): string => JSON.stringify([id, node]);

/** 3.9: a date and time in UTC, or none. */
function utcEnd(text: string): object {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/.test(text) ? { endTimeUtc: text } : {};
}

function results(report: Report, rules: SarifRules): object[] {
  const prints = fingerprints(report.findings);
  const anyWaived = report.findings.some((finding) => !isOpen(finding));
  return report.findings.map((finding) => ({
    ruleId: finding.id,
    ruleIndex: rules.reference(finding.id).index,
    kind: 'fail',
    level: LEVEL[finding.severity],
    message: { text: messageText(resultWords(finding)) },
    locations: [locationOf(finding.where)],
    partialFingerprints: {
      'cofferdamFinding/v1': prints.get(finding)!,
      // The one name that GitHub compares; without it, it would hash a line of a file that may not exist.
      primaryLocationLineHash: `${prints.get(finding)!}:1`,
    },
    // 3.27.23: once one result says whether it is suppressed, all do.
    ...(anyWaived ? { suppressions: suppressions(finding) } : {}),
    properties: { severity: finding.severity, certain: finding.certain, references: finding.references },
  }));
}

function resultWords(finding: Finding): string {
  const waiver = waiverText(finding);
  const parts = [
    `${finding.title}${finding.certain ? '' : ' (a sign, not a proof)'}`,
    `Observed: ${finding.observed}`,
    `Wanted: ${finding.wanted}`,
    `Change: ${finding.change}`,
    ...(waiver === null ? [] : [`Waiver: ${waiver}`]),
  ];
  return parts.map((part) => (/[.!?]$/.test(part) ? part : `${part}.`)).join(' ');
}

function suppressions(finding: Finding): object[] {
  if (isOpen(finding) || finding.waiver === undefined) return [];
  return [{ kind: 'external', status: 'accepted', justification: messageText(waiverText(finding) ?? '') }];
}

/**
 * What stays the same from run to run: rule, node, source and, where a rule has one, subject. Neither the line nor any number seen is part of it, so an edit
 * above it or another pool size does not make a new alert. Several in one place are counted in the order of their lines.
 */
export function fingerprints(findings: readonly Finding[]): Map<Finding, string> {
  const seen = new Map<string, number>();
  const prints = new Map<Finding, string>();
  const inOrder = [...findings].sort(
    (a, b) =>
      (a.where.line ?? 0) - (b.where.line ?? 0) || compareText(a.title, b.title) || compareText(a.observed, b.observed),
  );
  for (const finding of inOrder) {
    const { id, where, subject } = finding;
    const key = JSON.stringify([id, where.node, where.source, ...(subject === undefined ? [] : [subject])]);
    const place = seen.get(key) ?? 0;
    seen.set(key, place + 1);
    prints.set(finding, createHash('sha256').update(`${key}#${place}`).digest('hex').slice(0, 32));
  }
  return prints;
}
