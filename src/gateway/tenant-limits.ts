import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';

/**
 * What one tenant may have, whatever the others do; what is absent does not bind. Each gateway process keeps its own: several of them
 * grant as many times as much.
 */
export interface TenantLimits {
  /** Requests that arrive. */
  readonly requestsPerMinute?: number;
  /** Tokens of prompts that are sent and of the output that comes. */
  readonly tokensPerMinute?: number;
  /** Tokens of prompts and granted output that wait, run or drain at once. */
  readonly tokensInFlight?: number;
  /** Requests that wait or run at once. */
  readonly requestsInFlight?: number;
  /** Where requests wait, one of a higher class has four turns for one of the next. @default normal */
  readonly priority?: TenantPriority;
}

export type TenantPriority = 'high' | 'normal' | 'low';

/** How far a turn moves a tenant on in the round. */
export const PRIORITY_STRIDES: Readonly<Record<TenantPriority, number>> = { high: 0.25, normal: 1, low: 4 };

const NUMBERS = ['requestsPerMinute', 'tokensPerMinute', 'tokensInFlight', 'requestsInFlight'] as const;

/** Throws CodedError `usage`. `name`: the tenant's. */
export function checkLimits(name: string, limits: TenantLimits): void {
  for (const each of NUMBERS) {
    const value = limits[each];
    if (value === undefined || (Number.isSafeInteger(value) && value >= 1)) continue;
    throw new CodedError(
      'usage',
      `Expected \`${each}\` of tenant ${shown(name)} to be a whole number of at least 1, got ${shown(String(value))}.`,
    );
  }
  if (limits.priority === undefined || Object.hasOwn(PRIORITY_STRIDES, limits.priority)) return;
  throw new CodedError(
    'usage',
    `Expected \`priority\` of tenant ${shown(name)} to be \`high\`, \`normal\` or \`low\`, got ${shown(limits.priority)}.`,
  );
}
