import type { Clock, Timer } from '../base/clock.js';
import {
  PASSES_AFTER_PROOF,
  PASSES_AFTER_SENTINEL,
  SELF_TEST_MS_MAX,
  SELF_TEST_MS_MIN,
  SENTINEL_EVERY_MS,
  SENTINELS_UNSENT_MAX,
} from './bounds.js';

/** How a sentinel ended; `unsent`: it got no turn in time, which says nothing of the engine. */
export type SentinelOutcome = 'passed' | 'failed' | 'unsent';

/** Why an engine is out: a sentinel failed, none could be sent, or an answer held a live marker of another owner. */
export type OutReason = 'sentinel-failed' | 'unchecked' | 'foreign-marker';

export interface RotationOptions {
  readonly clock: Clock;
  /** Sends one sentinel of about so many prompt tokens through this engine alone. Must come to an end; a rejection counts as failed. */
  readonly sentinel: (promptTokens: number) => Promise<SentinelOutcome>;
  readonly onSentinel: (outcome: SentinelOutcome) => void;
  readonly onOut: (reason: OutReason) => void;
  readonly onBack: () => void;
}

/**
 * Whether one engine may serve. Suspicion sends a sentinel, and only a sentinel that fails takes the engine out; proof takes it out
 * at once. It comes back when self-tests, the same sentinels with growing pauses, have passed. What requests say decides when a
 * sentinel is sent, within a rate, and never how it ends: so no tenant takes an engine from another.
 */
export class Rotation {
  readonly #options: RotationOptions;
  #reason: OutReason | null = null;
  /** The largest prompt that raised suspicion since the engine was last trusted: sentinels are as long. */
  #promptTokens = 1;
  #isPending = false;
  #isBusy = false;
  #isClosed = false;
  #startedMs = Number.NEGATIVE_INFINITY;
  #unsent = 0;
  #passes = 0;
  #pauseMs = SELF_TEST_MS_MIN;
  #backMs = Number.NEGATIVE_INFINITY;
  #timer: Timer | null = null;

  constructor(options: RotationOptions) {
    this.#options = options;
  }

  get isIn(): boolean {
    return this.#reason === null;
  }

  /** Null: it is in. */
  get reason(): OutReason | null {
    return this.#reason;
  }

  /** An answer gave ground for suspicion; its prompt had so many tokens. */
  suspect(promptTokens: number): void {
    if (this.#isClosed || !this.isIn) return;
    this.#promptTokens = Math.max(this.#promptTokens, promptTokens);
    this.#isPending = true;
    this.#next();
  }

  /**
   * Sends a sentinel that nobody's suspicion asked for, unless one is under way or due. Where it fails, that is ground for suspicion
   * and no more: another one decides.
   */
  patrol(promptTokens: number): void {
    if (this.#isBusy || this.#isClosed || this.#timer !== null || !this.isIn) return;
    void this.#send(promptTokens);
  }

  /** An answer proved that the engine mixes up what belongs to whom. */
  prove(promptTokens: number): void {
    if (this.#isClosed) return;
    this.#promptTokens = Math.max(this.#promptTokens, promptTokens);
    this.#leave('foreign-marker');
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#timer = null;
  }

  /** Sees to it that what is due is sent, now or at its time. */
  #next(): void {
    if (this.#isBusy || this.#isClosed || this.#timer !== null) return;
    const nowMs = this.#options.clock.nowMs();
    if (!this.isIn) this.#arm(this.#pauseMs);
    else if (this.#isPending) {
      const waitMs = this.#startedMs + SENTINEL_EVERY_MS - nowMs;
      if (waitMs > 0) this.#arm(waitMs);
      else void this.#send();
    }
  }

  #arm(ms: number): void {
    this.#timer = this.#options.clock.after(ms, () => {
      this.#timer = null;
      void this.#send();
    });
  }

  /** `patrolTokens`: it is one that nobody's suspicion asked for. */
  async #send(patrolTokens: number | null = null): Promise<void> {
    if (this.#isBusy || this.#isClosed) return;
    this.#isBusy = true;
    if (patrolTokens === null) this.#isPending = false;
    this.#startedMs = this.#options.clock.nowMs();
    const wasIn = this.isIn;
    let outcome: SentinelOutcome = 'failed';
    try {
      outcome = await this.#options.sentinel(patrolTokens ?? this.#promptTokens);
    } catch {
      // What can't be sent without a throw does not serve.
    }
    this.#isBusy = false;
    if (this.#isClosed) return;
    this.#options.onSentinel(outcome);
    // A sentinel from before the engine left says nothing of what it is now.
    if (wasIn === this.isIn) {
      if (patrolTokens === null) this.#weigh(outcome);
      else if (outcome === 'failed') this.suspect(patrolTokens);
    }
    this.#next();
  }

  #weigh(outcome: SentinelOutcome): void {
    if (this.isIn) this.#weighSuspicion(outcome);
    else if (outcome === 'passed') this.#pass();
    else {
      this.#passes = 0;
      this.#pauseMs = Math.min(this.#pauseMs * 2, SELF_TEST_MS_MAX);
    }
  }

  #weighSuspicion(outcome: SentinelOutcome): void {
    this.#unsent = outcome === 'unsent' ? this.#unsent + 1 : 0;
    if (outcome === 'failed') this.#leave('sentinel-failed');
    else if (this.#unsent >= SENTINELS_UNSENT_MAX) this.#leave('unchecked');
    else if (outcome === 'unsent') this.#isPending = true;
    else if (!this.#isPending) this.#promptTokens = 1;
  }

  #leave(reason: OutReason): void {
    if (this.#reason === 'foreign-marker') return;
    const wasIn = this.isIn;
    this.#reason = reason;
    this.#passes = 0;
    this.#unsent = 0;
    this.#isPending = false;
    this.#timer?.cancel();
    this.#timer = null;
    // An engine that goes in and out is asked ever more rarely; one that has served for a while begins anew.
    const { clock } = this.#options;
    if (wasIn && clock.nowMs() - this.#backMs > SELF_TEST_MS_MAX) this.#pauseMs = SELF_TEST_MS_MIN;
    else if (wasIn) this.#pauseMs = Math.min(this.#pauseMs * 2, SELF_TEST_MS_MAX);
    this.#options.onOut(reason);
    this.#next();
  }

  #pass(): void {
    this.#passes++;
    const needed = this.#reason === 'foreign-marker' ? PASSES_AFTER_PROOF : PASSES_AFTER_SENTINEL;
    if (this.#passes < needed) return;
    this.#reason = null;
    this.#promptTokens = 1;
    this.#backMs = this.#options.clock.nowMs();
    this.#options.onBack();
  }
}
