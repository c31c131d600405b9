import type { Clock } from '../base/clock.js';
import type { GuardBits } from '../handoff/guards.js';
import type { Upstream } from '../upstream/upstream.js';
import type { FindingSink } from './findings.js';
import type { GatewayMetrics } from './metrics.js';
import type { EngineSafety } from './safety-metrics.js';
import type { Shield } from './shield.js';
import type { Watch } from './watch.js';

/** What the relay of a request may use: the part of the gateway that belongs to its engine. */
export interface RelayContext {
  /** The engine, to tell its requests from those of another. */
  readonly engine: object;
  readonly upstream: Upstream;
  readonly watch: Watch;
  /** Of all engines: a tenant's bound holds over them together. */
  readonly shield: Shield;
  readonly guards: GuardBits;
  readonly metrics: GatewayMetrics;
  readonly safety: EngineSafety;
  readonly findings: FindingSink;
  readonly clock: Clock;
}
