import type { Clock } from '../base/clock.js';
import type { GuardBits } from '../handoff/guards.js';
import type { UpstreamFeature } from '../upstream/upstream.js';
import type { Engine } from './engine.js';
import type { FindingSink } from './findings.js';
import type { GatewayMetrics } from './metrics.js';
import type { Settlement } from './settlement.js';
import type { TenantMeter } from './tenant-meter.js';
import type { Tenant, TenantRegistry } from './tenants.js';
import type { TenantAccount } from './waiting.js';

/** What every rung of the ladder may use. */
export interface LadderContext {
  /** At least one. */
  readonly engines: readonly Engine[];
  /** The names that all of them serve, each once. */
  models(): readonly string[];
  /** What every engine of that model can be asked for. */
  features(model: string): ReadonlySet<UpstreamFeature>;
  readonly registry: TenantRegistry;
  readonly accounts: ReadonlyMap<Tenant, TenantAccount>;
  /** What the tenant of an account has used of its limits. */
  readonly meters: ReadonlyMap<Tenant, TenantMeter>;
  readonly guards: GuardBits;
  readonly metrics: GatewayMetrics;
  readonly findings: FindingSink;
  readonly onSettled: (settlement: Settlement) => void;
  readonly clock: Clock;
  readonly bodyBytesMax: number;
  readonly temperatureDefault: number;
}
