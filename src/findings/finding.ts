import { escapeControl } from '../base/text.js';

/** Worst first; the place in this list is the order. */
export const SEVERITIES = ['critical', 'high', 'medium', 'low', 'info'] as const;

export type Severity = (typeof SEVERITIES)[number];

/**
 * One condition that somebody should know of. Holds no prompt, answer, key or tenant's text: figures, names and places only.
 * Every renderer takes this and nothing else.
 */
export interface Finding {
  /** Stable, most significant word first: `capacity.advertised-above-pool`. */
  readonly id: string;
  readonly severity: Severity;
  /** One line. */
  readonly title: string;
  readonly where: FindingPlace;
  /** What was seen, and what it should have been. */
  readonly observed: string;
  readonly wanted: string;
  /** What to do about it. */
  readonly change: string;
  /** Addresses or documents to read. */
  readonly references: readonly string[];
  /** False: the sign is there, the proof is not. */
  readonly certain: boolean;
}

export interface FindingPlace {
  readonly node: string;
  /** Where it was read: a file, a route, a metric. */
  readonly source: string;
  readonly line?: number;
}

/** Below zero when `a` is worse than `b`. */
export function compareSeverity(a: Severity, b: Severity): number {
  return SEVERITIES.indexOf(a) - SEVERITIES.indexOf(b);
}

export function isSeverity(text: string): text is Severity {
  return (SEVERITIES as readonly string[]).includes(text);
}

/** Whether `severity` is as bad as `threshold`, or worse. */
export function isAtLeast(severity: Severity, threshold: Severity): boolean {
  return compareSeverity(severity, threshold) <= 0;
}

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Among equally grave ones: what holds too little first, then versions, then the rest. */
const GROUPS_FIRST: readonly string[] = ['capacity', 'version'];

function groupRank(id: string): number {
  const place = GROUPS_FIRST.indexOf(id.slice(0, Math.max(0, id.indexOf('.'))));
  return place < 0 ? GROUPS_FIRST.length : place;
}

function compareFindings(a: Finding, b: Finding): number {
  return (
    compareSeverity(a.severity, b.severity) ||
    groupRank(a.id) - groupRank(b.id) ||
    compareText(a.id, b.id) ||
    compareText(a.where.node, b.where.node) ||
    compareText(a.where.source, b.where.source) ||
    (a.where.line ?? -1) - (b.where.line ?? -1)
  );
}

/** Worst first, then by group, id and place, so that the same findings always come in the same order. */
export function sortFindings<T extends Finding>(findings: readonly T[]): T[] {
  return [...findings].sort(compareFindings);
}

export function countBySeverity(findings: readonly Finding[]): Record<Severity, number> {
  const counts: Record<Severity, number> = { critical: 0, high: 0, medium: 0, low: 0, info: 0 };
  for (const { severity } of findings) counts[severity]++;
  return counts;
}

/** Where it is, in one string: `node source:line`. */
export function placeText(where: FindingPlace): string {
  return escapeControl(`${where.node} ${where.source}${where.line === undefined ? '' : `:${where.line}`}`.trim());
}

/** The same finding with the control characters of every string escaped. What is rendered has gone through here. */
export function escapeFinding(finding: Finding): Finding {
  const { where } = finding;
  return {
    id: escapeControl(finding.id),
    severity: finding.severity,
    title: escapeControl(finding.title),
    where: {
      node: escapeControl(where.node),
      source: escapeControl(where.source),
      ...(where.line === undefined ? {} : { line: where.line }),
    },
    observed: escapeControl(finding.observed),
    wanted: escapeControl(finding.wanted),
    change: escapeControl(finding.change),
    references: finding.references.map(escapeControl),
    certain: finding.certain,
  };
}
