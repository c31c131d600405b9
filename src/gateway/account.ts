import type { Tenant } from './tenants.js';

/** What one tenant has open at all engines together. All zero when it has nothing open, whatever happened before. */
export interface TenantAccount {
  readonly tenant: Tenant;
  running: number;
  waiting: number;
  /** Tokens that what waits has asked for, whole pages. */
  waitingTokens: number;
  /** Tokens of the decode pool, whole pages: from dispatch to `end`. */
  leasedTokens: number;
  /** From `end` to `released`. */
  drainingTokens: number;
  /** Bytes of bodies that are being read. */
  bodyBytes: number;
}

export function openAccount(tenant: Tenant): TenantAccount {
  return { tenant, running: 0, waiting: 0, waitingTokens: 0, leasedTokens: 0, drainingTokens: 0, bodyBytes: 0 };
}
