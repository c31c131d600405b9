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
  /** What tells findings of one rule at one place apart: an advisory's id. It stays the same from run to run. */
  readonly subject?: string;
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
  /** Somebody took it into account, for a time. */
  readonly waiver?: Waiver;
}

export interface Waiver {
  readonly reason: string;
  /** The last day on which it holds: `2027-01-31`. */
  readonly expires: string;
  /** Whether that day was over when the findings were made. Then the finding counts like any other. */
  readonly expired: boolean;
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

/** Whether it counts: nobody waived it, or the waiver is over. */
export function isOpen(finding: Finding): boolean {
  return finding.waiver === undefined || finding.waiver.expired;
}

export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Ids, and groups of them, that come before the others: what the incident needed is read first. */
const FIRST: readonly string[] = ['capacity.pool-below-context', 'capacity', 'version'];

const RANKS = new Map<string, number>();
/** Ids of one run are some hundreds; a saved report may hold any. */
const RANKS_MAX = 10_000;

/** The place of an id, or of its group (`capacity` of `capacity.pool-margin`): 0 comes first. */
function groupRank(id: string): number {
  const known = RANKS.get(id);
  if (known !== undefined) return known;
  const own = FIRST.indexOf(id);
  const found = own < 0 ? FIRST.indexOf(id.split('.', 1)[0]!) : own;
  const rank = found < 0 ? FIRST.length : found;
  if (RANKS.size < RANKS_MAX) RANKS.set(id, rank);
  return rank;
}

/** Capacity, then versions, then the rest, each in order of the alphabet. */
export function compareIds(a: string, b: string): number {
  return groupRank(a) - groupRank(b) || compareText(a, b);
}

function compareFindings(a: Finding, b: Finding): number {
  return (
    compareSeverity(a.severity, b.severity) ||
    compareIds(a.id, b.id) ||
    compareText(a.where.node, b.where.node) ||
    compareText(a.where.source, b.where.source) ||
    (a.where.line ?? -1) - (b.where.line ?? -1)
  );
}

/** Worst first, among equals capacity before versions before the rest, then by id and place, so that the same findings always come in the same order. */
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
    ...(finding.subject === undefined ? {} : { subject: escapeControl(finding.subject) }),
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
    ...(finding.waiver === undefined ? {} : { waiver: escapeWaiver(finding.waiver) }),
  };
}

function escapeWaiver({ reason, expires, expired }: Waiver): Waiver {
  return { reason: escapeControl(reason), expires: escapeControl(expires), expired };
}

/** `waived until 2027-01-31: reason`, or that the waiver is over; null for none. */
export function waiverText(finding: Finding): string | null {
  if (finding.waiver === undefined) return null;
  const { reason, expires, expired } = finding.waiver;
  return escapeControl(expired ? `its waiver ended on ${expires}: ${reason}` : `waived until ${expires}: ${reason}`);
}
