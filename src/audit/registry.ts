/** Every rule, in the order in which checks are listed. docs/RULES.md holds the same set. */
import type { Rule } from './rule.js';
import { acceptLimitsDiffer } from './rules/capacity-accept-limits-differ.js';
import { poolBelowContext } from './rules/capacity-pool-below-context.js';
import { poolMargin } from './rules/capacity-pool-margin.js';

export const RULES: readonly Rule[] = [poolBelowContext, poolMargin, acceptLimitsDiffer];
