import { assert } from '../base/assert.js';
import type { Clock, Timer } from '../base/clock.js';
import { SHIELDED_MAX, SHIELDED_MS_MAX, SHIELDED_TOKENS_MAX } from './bounds.js';
import type { TenantAccount } from './waiting.js';

/**
 * How the shield of a request ended: at its first token, then aborted; with the request's own end; at the bound of time; or cut off,
 * since the gateway closes or the engine is out.
 */
export type ShieldOutcome = 'first_token' | 'ended' | 'timed_out' | 'cut_off';

export interface ShieldBounds {
  /** Requests of one tenant at once; 0: there is no shield. @default SHIELDED_MAX */
  readonly requestsMax?: number;
  /** Tokens of their prompts together. @default SHIELDED_TOKENS_MAX */
  readonly tokensMax?: number;
  /** For each request. @default SHIELDED_MS_MAX */
  readonly msMax?: number;
}

export interface ShieldOptions extends ShieldBounds {
  readonly clock: Clock;
  readonly onOver: (outcome: ShieldOutcome, promptTokens: number, ms: number) => void;
  /** A client left past its tenant's bound: its request is aborted where it is. */
  readonly onRefused: () => void;
}

export interface Shielded {
  /** Once, whatever comes first; the shield aborts nothing by itself here. */
  over(outcome: 'first_token' | 'ended'): void;
}

interface Entry {
  readonly account: TenantAccount;
  /** What the request runs on. */
  readonly holder: object;
  readonly promptTokens: number;
  readonly sinceMs: number;
  readonly abort: () => void;
  readonly timer: Timer;
}

/**
 * Requests whose clients left before the first token. An abort inside the transfer from prefill to decode is where engines go
 * wrong, so such a request goes on to its first token and is aborted then, through the protocol. It keeps its permit and its pages, which count as its tenant's until
 * then: a tenant that leaves has no more at work than one that stays.
 */
export class Shield {
  readonly #options: ShieldOptions;
  readonly #requestsMax: number;
  readonly #tokensMax: number;
  readonly #msMax: number;
  readonly #open = new Set<Entry>();
  #isClosed = false;

  constructor(options: ShieldOptions) {
    this.#options = options;
    this.#requestsMax = options.requestsMax ?? SHIELDED_MAX;
    this.#tokensMax = options.tokensMax ?? SHIELDED_TOKENS_MAX;
    this.#msMax = options.msMax ?? SHIELDED_MS_MAX;
  }

  /** Requests that go on without a client. */
  get open(): number {
    return this.#open.size;
  }

  /** Null: past the tenant's bound. `abort` is called when the time is over, or at `cutAll` of its `holder`, the engine. */
  enter(account: TenantAccount, promptTokens: number, holder: object, abort: () => void): Shielded | null {
    const own = [...this.#open].filter((entry) => entry.account === account);
    const tokens = own.reduce((sum, entry) => sum + entry.promptTokens, promptTokens);
    if (this.#isClosed || own.length >= this.#requestsMax || tokens > this.#tokensMax) {
      this.#options.onRefused();
      return null;
    }
    const { clock } = this.#options;
    const timer = clock.after(this.#msMax, () => this.#cut(entry, 'timed_out'));
    const entry: Entry = { account, promptTokens, holder, sinceMs: clock.nowMs(), abort, timer };
    this.#open.add(entry);
    return { over: (outcome) => this.#over(entry, outcome) };
  }

  /** Aborts all of them, and takes no more. */
  close(): void {
    this.#isClosed = true;
    this.cutAll();
  }

  /** Aborts all of them, or those of one holder. */
  cutAll(holder: object | null = null): void {
    for (const entry of this.#open) {
      if (holder === null || entry.holder === holder) this.#cut(entry, 'cut_off');
    }
  }

  #cut(entry: Entry, outcome: ShieldOutcome): void {
    this.#over(entry, outcome);
    entry.abort();
  }

  #over(entry: Entry, outcome: ShieldOutcome): void {
    if (!this.#open.delete(entry)) return;
    entry.timer.cancel();
    const ms = this.#options.clock.nowMs() - entry.sinceMs;
    assert(ms >= 0, 'a shield ends after it began');
    this.#options.onOver(outcome, entry.promptTokens, ms);
  }
}
