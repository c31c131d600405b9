/** The audit's report: the JSON of `--output json` and what every renderer takes. Documented in docs/AUDIT.md; stable. */
import type { Finding } from './finding.js';

export const CHECK_STATUSES = ['passed', 'failed', 'not-applicable', 'not-checked'] as const;

export type CheckStatus = (typeof CHECK_STATUSES)[number];

/** One row per node. Tokens; null: not known, never a guess. */
export interface ReportNode {
  readonly name: string;
  readonly engine: string | null;
  readonly version: string | null;
  readonly role: 'prefill' | 'decode' | 'single' | 'router' | 'unknown';
  readonly advertised: number | null;
  readonly pool: number | null;
  /** The largest prompt served. */
  readonly acceptLimit: number | null;
  /** Pool over advertised context, two digits behind the point. */
  readonly ratio: number | null;
  readonly sources: ReportSources;
}

/** Where each number was read: `prefill.log:12`, `/server_info`. */
export interface ReportSources {
  readonly version: string | null;
  readonly advertised: string | null;
  readonly pool: string | null;
  readonly acceptLimit: string | null;
  /** Everything that spoke of the node. */
  readonly all: readonly string[];
}

export interface ReportCheck {
  readonly id: string;
  readonly node: string;
  readonly status: CheckStatus;
  readonly why: string;
}

export interface ReportSkipped {
  readonly name: string;
  readonly why: string;
}

/** A finding that somebody has answered for. */
export interface ReportWaived {
  readonly finding: Finding;
  readonly reason: string;
  /** `YYYY-MM-DD`, the last day on which it holds. */
  readonly expires: string;
}

/** What differs from an earlier report. */
export interface ReportChange {
  readonly node: string;
  readonly what: string;
  readonly was: string;
  readonly is: string;
}

/** `clean`: nothing at or above the threshold, and all that was required was checked. */
export type ReportVerdict = 'clean' | 'findings' | 'not-checked';

export interface AuditReport {
  readonly nodes: readonly ReportNode[];
  /** Worst first, among equals capacity before versions before the rest. */
  readonly findings: readonly Finding[];
  readonly checks: readonly ReportCheck[];
  readonly verdict: ReportVerdict;
  readonly waived: readonly ReportWaived[];
  readonly skipped: readonly ReportSkipped[];
  readonly changes: readonly ReportChange[];
}
