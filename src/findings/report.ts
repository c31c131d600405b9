/**
 * The report of one run of a verb: what every renderer takes, and what `--output json` writes. Stable: a field may be added
 * within one version; whatever changes the meaning of a field raises `REPORT_VERSION`.
 */
import { compareIds, compareText, type Finding, isAtLeast, isOpen, type Severity, sortFindings } from './finding.js';

export const REPORT_VERSION = 1;

export const NODE_ROLES = ['prefill', 'decode', 'single', 'router', 'unknown'] as const;
export type NodeRole = (typeof NODE_ROLES)[number];

/** One node of the deployment. Tokens; null: not known. */
export interface ReportNode {
  readonly name: string;
  readonly engine: string | null;
  readonly version: string | null;
  readonly role: NodeRole;
  /** The context that it tells its clients. */
  readonly advertised: number | null;
  /** What its KV pool holds. */
  readonly pool: number | null;
  /** The largest prompt that it serves. */
  readonly acceptLimit: number | null;
  /** `pool / advertised`: below 1, a prompt that is let in may not fit. */
  readonly ratio: number | null;
  /** Where each of these came from; a number read twice stands twice. */
  readonly sources: readonly NodeSource[];
}

export interface NodeSource {
  /** `advertised`, `pool`, `version`, … */
  readonly field: string;
  /** As it was read, numbers in plain digits. */
  readonly value: string;
  /** A file, a route, a metric, a flag. */
  readonly source: string;
  readonly line?: number;
}

export const CHECK_STATUSES = ['not-checked', 'failed', 'passed', 'not-applicable'] as const;
export type CheckStatus = (typeof CHECK_STATUSES)[number];

export interface ReportCheck {
  /** The id of its rule; a finding of that rule has the same. */
  readonly id: string;
  /** Empty: the deployment as a whole. */
  readonly node: string;
  readonly status: CheckStatus;
  /** Why it has this status: for one not checked, what was missing. */
  readonly why: string;
}

/** What differs from a baseline. */
export interface ReportChange {
  readonly node: string;
  readonly field: string;
  readonly before: string;
  readonly after: string;
}

/** What was looked at and left out: of no known kind, or too large. */
export interface ReportSkip {
  readonly source: string;
  readonly why: string;
}

/** In words: nothing found · something at or above the threshold · nothing found, but what was required could not be checked. */
export const VERDICTS = ['clean', 'findings', 'not-checked'] as const;
export type Verdict = (typeof VERDICTS)[number];

/** The least severity that fails a run; `none`: nothing does. */
export type FailOn = Severity | 'none';

export interface Report {
  readonly reportVersion: typeof REPORT_VERSION;
  readonly tool: { readonly name: string; readonly version: string };
  /** Which verb made it: `audit`, `probe`, `exposure`. */
  readonly verb: string;
  /** ISO 8601, in UTC. */
  readonly createdAt?: string;
  readonly verdict: Verdict;
  /** One sentence in the verb's own words, beside the verdict: `isolated`, `no power to tell`. */
  readonly headline?: string;
  readonly failOn: FailOn;
  /** What had to be checked: ids of rules, or groups of them (`capacity` stands for every `capacity.…`). */
  readonly required: readonly string[];
  readonly nodes: readonly ReportNode[];
  /** Worst first. */
  readonly findings: readonly Finding[];
  readonly checks: readonly ReportCheck[];
  readonly changes: readonly ReportChange[];
  readonly skipped: readonly ReportSkip[];
}

/** What a verb hands in; the rest follows from it. Lists may be left out: a probe has no nodes. */
export type ReportParts = Pick<Report, 'tool' | 'verb' | 'failOn' | 'required' | 'findings'> &
  Partial<Pick<Report, 'createdAt' | 'headline' | 'nodes' | 'checks' | 'changes' | 'skipped'>>;

/** Puts everything in its order and draws the verdict. Nodes, changes and skipped sources keep the order that they came in. */
export function makeReport(parts: ReportParts): Report {
  const { createdAt, headline, failOn, required, nodes = [], checks = [], changes = [], skipped = [] } = parts;
  const findings = sortFindings(parts.findings);
  return {
    reportVersion: REPORT_VERSION,
    tool: parts.tool,
    verb: parts.verb,
    ...(createdAt === undefined ? {} : { createdAt }),
    verdict: verdictOf({ findings, checks, failOn, required }),
    ...(headline === undefined ? {} : { headline }),
    failOn,
    required,
    nodes,
    findings,
    checks: sortChecks(checks),
    changes,
    skipped,
  };
}

/** By id, then node, status and words. Thousands of nodes have the same hundred ids: both are sorted once, and the rest finds order. */
function sortChecks(checks: readonly ReportCheck[]): ReportCheck[] {
  const byNode = groupedBy(checks, ({ node }) => node);
  const byId = groupedBy(
    [...byNode.keys()].sort(compareText).flatMap((node) => byNode.get(node)!),
    ({ id }) => id,
  );
  const ids = [...byId.keys()].sort(compareIds);
  return ids.flatMap((id) =>
    byId
      .get(id)!
      .sort(
        (a, b) =>
          compareText(a.node, b.node) ||
          CHECK_STATUSES.indexOf(a.status) - CHECK_STATUSES.indexOf(b.status) ||
          compareText(a.why, b.why),
      ),
  );
}

function groupedBy(checks: readonly ReportCheck[], keyOf: (check: ReportCheck) => string): Map<string, ReportCheck[]> {
  const groups = new Map<string, ReportCheck[]>();
  for (const check of checks) {
    const key = keyOf(check);
    const same = groups.get(key);
    if (same === undefined) groups.set(key, [check]);
    else same.push(check);
  }
  return groups;
}

/** The same report against another threshold or another set of what is required. */
export function judgeAgain(report: Report, failOn: FailOn, required: readonly string[]): Report {
  return { ...report, failOn, required, verdict: verdictOf({ ...report, failOn, required }) };
}

type Judged = Pick<Report, 'findings' | 'checks' | 'failOn' | 'required'>;

/** Findings weigh more than what could not be checked. */
function verdictOf(judged: Judged): Verdict {
  if (judged.findings.some((finding) => failsRun(finding, judged.failOn))) return 'findings';
  return requiredUnchecked(judged).length > 0 ? 'not-checked' : 'clean';
}

/** Whether it counts and is as bad as the threshold; one whose waiver is over fails however small it is: somebody promised. */
export function failsRun(finding: Finding, failOn: FailOn): boolean {
  if (failOn === 'none' || !isOpen(finding)) return false;
  return finding.waiver?.expired === true || isAtLeast(finding.severity, failOn);
}

/** What was required and not checked. A requirement that no check speaks of was not checked either. */
export function requiredUnchecked({ checks, required }: Pick<Judged, 'checks' | 'required'>): ReportCheck[] {
  return required.flatMap((wanted) => {
    const concerned = checks.filter(({ id }) => id === wanted || id.startsWith(`${wanted}.`));
    if (concerned.length > 0) return concerned.filter(({ status }) => status === 'not-checked');
    return [
      { id: wanted, node: '', status: 'not-checked' as const, why: 'nothing was given that it could be read from' },
    ];
  });
}

/** The exit code of a run with this verdict. */
export function exitCodeOfVerdict(verdict: Verdict): 0 | 1 | 3 {
  switch (verdict) {
    case 'clean':
      return 0;
    case 'findings':
      return 1;
    case 'not-checked':
      return 3;
  }
}

/** `pool / advertised`; null where one of them is not known. */
export function poolRatio(pool: number | null, advertised: number | null): number | null {
  return pool === null || advertised === null || advertised <= 0 ? null : pool / advertised;
}

/** Two decimals, never rounded up: what is below 1 does not look like 1. */
export function ratioText(ratio: number | null): string {
  return ratio === null ? 'unknown' : (Math.floor(ratio * 100 + 1e-9) / 100).toFixed(2);
}

export function countByStatus(checks: readonly ReportCheck[]): Record<CheckStatus, number> {
  const counts: Record<CheckStatus, number> = { 'not-checked': 0, failed: 0, passed: 0, 'not-applicable': 0 };
  for (const { status } of checks) counts[status]++;
  return counts;
}

/** What the verdict says, in one sentence. */
export function verdictText(report: Report): string {
  switch (report.verdict) {
    case 'findings': {
      const { failOn } = report;
      const count = report.findings.filter((finding) => failsRun(finding, failOn)).length;
      const over = report.findings.some((one) => failsRun(one, failOn) && !isAtLeast(one.severity, failOn as Severity))
        ? ', or with a waiver that is over'
        : '';
      return `Problems found: ${count} ${count === 1 ? 'finding' : 'findings'} at or above ${failOn}${over}`;
    }
    case 'not-checked': {
      const count = requiredUnchecked(report).length;
      return `Not shown to be clean: ${count} required ${count === 1 ? 'check' : 'checks'} could not be made`;
    }
    case 'clean':
      return report.failOn === 'none'
        ? 'Everything required was checked; no threshold was set'
        : `Nothing found at or above ${report.failOn}, and everything required was checked`;
  }
}
