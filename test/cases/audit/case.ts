/** One fixture of a rule: what must come of it, then the nodes; the first is the one that is asked. */
import type { NodeSpec } from '../../../src/audit/rules/fixtures.js';

/** A finding's severity (with `?`: not certain), or the status of a check without one. */
export type Expected =
  | `${'critical' | 'high' | 'medium' | 'low' | 'info'}${'' | '?'}`
  | 'passed'
  | 'not-applicable'
  | 'not-checked';

export type Case = readonly [Expected, NodeSpec, ...NodeSpec[]];

/** Every rule has one that fails, one that does not, and one that looks like the first and is harmless. */
export interface RuleCases {
  readonly bad: Case;
  readonly good: Case;
  readonly benign: Case;
  readonly more?: readonly Case[];
}

export type CaseTable = Readonly<Record<string, RuleCases>>;

export const P = 'prefill' as const;
export const D = 'decode' as const;
