import type { Clock } from '../base/clock.js';
import type { GuardBits } from '../handoff/guards.js';
import type { Upstream } from '../upstream/upstream.js';
import type { FindingSink } from './findings.js';
import type { GatewayMetrics } from './metrics.js';
import type { Shield } from './shield.js';
import type { Tenant, TenantRegistry } from './tenants.js';
import type { TenantAccount, WaitingRoom } from './waiting.js';
import type { Watch } from './watch.js';

/** What every rung of the ladder may use. */
export interface LadderContext {
  readonly upstream: Upstream;
  readonly registry: TenantRegistry;
  readonly accounts: ReadonlyMap<Tenant, TenantAccount>;
  readonly room: WaitingRoom;
  readonly watch: Watch;
  readonly shield: Shield;
  readonly guards: GuardBits;
  readonly metrics: GatewayMetrics;
  readonly findings: FindingSink;
  readonly clock: Clock;
  readonly bodyBytesMax: number;
  readonly temperatureDefault: number;
}
