/**
 * What the operators' page shows, as one plain object: `GET /state` is this as JSON, once a second. Whoever runs the gateway
 * fills it; the page only reads it. Numbers and names, never a prompt, an answer or a key. `null` is "not known", never 0.
 * This file imports nothing, so that the page's own script can have its types.
 */
export interface DashboardState {
  /** Milliseconds since 1970. */
  readonly atMs: number;
  readonly startedMs: number;
  readonly engine: { readonly kind: string; readonly models: readonly string[] };
  /** Guards that are off and faults that are on: any of them means that tenants are not kept apart. */
  readonly guardsOff: readonly string[];
  readonly faults: readonly string[];
  readonly capacity: CapacityPart;
  readonly requests: RequestsPart;
  readonly tenants: TenantsPart;
  /** Pages of the embedded engine's pools; empty for other engines. */
  readonly pools: readonly PoolRow[];
  /** Those that happened, most frequent first. */
  readonly refusals: readonly RefusalRow[];
  readonly guards: readonly GuardRow[];
  /** What the guards looked at; null for other engines. */
  readonly checks: ChecksPart | null;
  readonly latency: { readonly ttft: LatencyRow; readonly total: LatencyRow };
  readonly findings: FindingsPart;
}

/** Tokens, all of them. */
export interface CapacityPart {
  /** The configured context that tenants would be told without Cofferdam. */
  readonly context: number | null;
  readonly prefillPool: number | null;
  readonly decodePool: number | null;
  readonly pageTokens: number;
  /** The largest prompt served, and which number set it. */
  readonly limit: { readonly tokens: number; readonly limitedBy: string } | null;
  readonly nodes: readonly NodeRow[];
}

export interface NodeRow {
  readonly node: string;
  readonly role: string;
  readonly advertised: number | null;
  readonly pool: number | null;
  readonly acceptLimit: number | null;
  /** Where it was read. */
  readonly source: string;
}

export interface RequestsPart {
  readonly running: number;
  readonly runningMax: number;
  readonly waiting: number;
  readonly admitted: number;
  /** Admitted with less output than was asked for. */
  readonly clamped: number;
  readonly refused: number;
  /** Clients that left before the first token and did not become an abort in the engine; null: there is no shield. */
  readonly shielded: number | null;
}

export interface TenantsPart {
  /** At most TENANTS_SHOWN_MAX; those with something open come first when there are more. */
  readonly rows: readonly TenantRow[];
  readonly total: number;
}

/** Tokens of the decode pool, in whole pages. */
export interface TenantRow {
  readonly name: string;
  readonly running: number;
  readonly waiting: number;
  readonly leased: number;
  readonly draining: number;
  /** Sealed prefix pages that only this tenant can hit; null: the engine does not say it by tenant. */
  readonly cached: number | null;
}

export interface PoolRow {
  readonly role: string;
  readonly total: number;
  readonly free: number;
  readonly leased: number;
  readonly draining: number;
  readonly sealed: number;
}

export interface RefusalRow {
  readonly reason: string;
  readonly status: number;
  readonly count: number;
}

export interface GuardRow {
  readonly guard: string;
  readonly on: boolean;
  readonly stopped: number;
}

export interface ChecksPart {
  readonly pagesVerified: number;
  readonly tagsChecked: number;
  readonly landingsRefused: number;
}

/** Milliseconds; null while there is none. */
export interface LatencyRow {
  /** Since the start, as in `/metrics`. */
  readonly count: number;
  /** How many of the latest the percentiles are over. */
  readonly samples: number;
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
}

export type SeverityName = 'critical' | 'high' | 'medium' | 'low' | 'info';

export interface FindingsPart {
  readonly bySeverity: Readonly<Record<SeverityName, number>>;
  readonly total: number;
  /** Worst first; at most FINDINGS_SHOWN_MAX. */
  readonly rows: readonly FindingRow[];
}

export interface FindingRow {
  readonly id: string;
  readonly severity: SeverityName;
  readonly title: string;
  readonly place: string;
  readonly observed: string;
  readonly wanted: string;
  readonly change: string;
  readonly references: readonly string[];
  readonly certain: boolean;
  readonly count: number;
  readonly firstMs: number;
  readonly lastMs: number;
}
