/** One rule: what it is for, and a pure function over what was gathered. One file each in `rules/`. */
import type { Severity } from '../findings/finding.js';
import type { EngineName } from '../upstream/reading.js';
import type { Fleet, NodeFacts, Source } from './facts.js';

/** In the order in which equally grave findings are shown. */
export const RULE_GROUPS = [
  'capacity',
  'version',
  'rejection',
  'release',
  'detection',
  'sharing',
  'exposure',
  'sources',
] as const;

export type RuleGroup = (typeof RULE_GROUPS)[number];

/** What a rule reads; shown by `explain`. */
export const NEEDS = [
  'version',
  'role',
  'advertised',
  'pool',
  'acceptLimit',
  'slots',
  'flags',
  'variables',
  'log',
  'metrics',
  'endpoint',
  'manifest',
  'transfer-config',
] as const;

export type Need = (typeof NEEDS)[number];

export interface RuleMeta {
  /** `group.what-is-wrong`, stable for ever: waivers and fingerprints hang on it. */
  readonly id: string;
  readonly group: RuleGroup;
  /** What is wrong, in one line, for lists; a finding's own title may say it with figures. */
  readonly title: string;
  /** The gravest that it gives. */
  readonly severity: Severity;
  readonly engines: readonly EngineName[] | 'all';
  readonly needs: readonly Need[];
  /** What a tenant could lose, with the public source. */
  readonly why: string;
  /** How it is seen. */
  readonly how: string;
  /** The one change to make; a finding may say it for its engine and version. */
  readonly change: string;
  readonly references: readonly string[];
  /** OWASP AISVS requirements, such as `C5.5.5`. */
  readonly aisvs?: readonly string[];
  /** `CWE-200`. */
  readonly cwe?: readonly string[];
}

/** What one rule saw at one place. What is not given comes from the rule's meta. */
export interface Observed {
  readonly severity?: Severity;
  /** What tells several findings of this rule at one place apart; a waiver can name it. */
  readonly subject?: string;
  readonly title?: string;
  /** Null: the absence of something is what was seen. */
  readonly at: Source | null;
  readonly observed: string;
  readonly wanted: string;
  readonly change?: string;
  readonly references?: readonly string[];
  /** False: the sign is there, the proof is not. */
  readonly certain?: boolean;
}

export type RuleOutcome =
  | { readonly status: 'passed'; readonly why: string }
  | { readonly status: 'failed'; readonly findings: readonly [Observed, ...Observed[]] }
  | { readonly status: 'not-applicable'; readonly why: string }
  | { readonly status: 'not-checked'; readonly why: string };

/**
 * Called once for each node whose engine it names. It never passes on what it did not read: `not-checked` then, with the one
 * thing that would settle it. If it throws, that check is `not-checked` and the other rules still run.
 */
export interface Rule {
  readonly meta: RuleMeta;
  check(fleet: Fleet, node: NodeFacts): RuleOutcome;
}

export const passed = (why: string): RuleOutcome => ({ status: 'passed', why });
export const notApplicable = (why: string): RuleOutcome => ({ status: 'not-applicable', why });
export const notChecked = (why: string): RuleOutcome => ({ status: 'not-checked', why });
export const failed = (first: Observed, ...more: readonly Observed[]): RuleOutcome => ({
  status: 'failed',
  findings: [first, ...more],
});
