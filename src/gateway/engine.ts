import type { Timer } from '../base/clock.js';
import { CodedError } from '../base/errors.js';
import { effectiveLimit } from '../handoff/admission.js';
import type { Upstream } from '../upstream/upstream.js';
import { HEALTH_POLL_MS, RETRY_AFTER_S } from './bounds.js';
import type { RelayContext } from './relay-context.js';
import type { WaitingRoom } from './waiting.js';
import type { Watch } from './watch.js';

/**
 * One engine of the gateway: an upstream, the room where its requests wait, and the watch over its answers. What one engine does or
 * suffers touches the requests of no other.
 */
export class Engine {
  /** As metrics and findings call it. */
  readonly name: string;
  readonly upstream: Upstream;
  readonly room: WaitingRoom;
  readonly watch: Watch;
  readonly relay: RelayContext;
  #timer: Timer | null = null;
  #isClosed = false;

  constructor(name: string, room: WaitingRoom, relay: Omit<RelayContext, 'engine'>) {
    this.name = name;
    this.upstream = relay.upstream;
    this.room = room;
    this.watch = relay.watch;
    this.relay = { ...relay, engine: this };
  }

  /** Whether it may be sent requests: in rotation, and up. */
  get isServing(): boolean {
    return this.watch.rotation.isIn && this.upstream.health().isUp;
  }

  /** Why it may not, for operators; null: it serves. */
  whyOut(): string | null {
    const { reason } = this.watch.rotation;
    if (reason !== null) return `out of rotation: ${reason}`;
    const health = this.upstream.health();
    return health.isUp ? null : `${health.reason}: ${health.words}`;
  }

  serves(model: string): boolean {
    return this.upstream.describe().models.includes(model);
  }

  /**
   * To be called when a request waits here: as long as any does, the engine's health is looked at, and when that is gone they leave
   * for another engine.
   */
  watchHealth(): void {
    if (this.#isClosed || this.#timer !== null || this.room.waiting === 0) return;
    this.#timer = this.relay.clock.after(HEALTH_POLL_MS, () => {
      this.#timer = null;
      if (!this.upstream.health().isUp) this.room.evict(engineOut);
      this.watchHealth();
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.watch.close();
  }
}

/** The largest request that is admitted, in tokens of the decode pool. */
export function requestTokensMax(upstream: Upstream): number {
  const capacity = upstream.capacity();
  const limit = effectiveLimit(capacity);
  return limit === null ? 0 : Math.min((capacity.context ?? 1) - 1, capacity.decodePool ?? 0);
}

export function engineOut(): CodedError {
  return new CodedError('engine_unavailable', 'No engine is in service for this request; send it again later.', {
    retryAfterS: RETRY_AFTER_S,
  });
}
