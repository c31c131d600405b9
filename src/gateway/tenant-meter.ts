import { CodedError } from '../base/errors.js';
import type { TenantAccount } from './account.js';
import type { TenantLimits } from './tenant-limits.js';

const MINUTE_MS = 60_000;

/** So much a minute, evenly: what is left over is kept for a minute at the most. Over its end it owes, and waits until it does not. */
class Allowance {
  #left: number | null = null;
  #atMs = 0;

  /** What is left of `perMinute`; below zero: owed. */
  left(perMinute: number, nowMs: number): number {
    const gained = ((nowMs - this.#atMs) * perMinute) / MINUTE_MS;
    this.#left = Math.min(perMinute, this.#left === null ? perMinute : this.#left + gained);
    this.#atMs = nowMs;
    return this.#left;
  }

  /** Call `left` first. Less than nothing: it is given back. */
  take(amount: number): void {
    if (this.#left !== null) this.#left -= amount;
  }
}

/** What one tenant has used of its limits. Its own use alone decides what it is told, and when to come again. */
export class TenantMeter {
  readonly #limits: () => TenantLimits;
  readonly #nowMs: () => number;
  readonly #requests = new Allowance();
  readonly #tokens = new Allowance();

  constructor(limits: () => TenantLimits, nowMs: () => number) {
    this.#limits = limits;
    this.#nowMs = nowMs;
  }

  /** A request has come. Null: it may go on. */
  arrive(): CodedError | null {
    const { requestsPerMinute: most } = this.#limits();
    if (most === undefined) return null;
    const left = this.#requests.left(most, this.#nowMs());
    if (left < 1) return tooMany(`${most} requests a minute`, ((1 - left) * MINUTE_MS) / most);
    this.#requests.take(1);
    return null;
  }

  /** A request of so many tokens, output included, would wait or be sent. Null: it may, and its tokens count from now on. */
  admit({ running, waiting, ...tokens }: TenantAccount, wanted: number): CodedError | null {
    const { requestsInFlight, tokensInFlight, tokensPerMinute } = this.#limits();
    if (requestsInFlight !== undefined && running + waiting >= requestsInFlight) {
      return tooMany(`${requestsInFlight} open requests of yours`, 0);
    }
    if (tokensInFlight !== undefined) {
      if (wanted > tokensInFlight) return neverFits(tokensInFlight, wanted);
      const open = tokens.leasedTokens + tokens.drainingTokens + tokens.waitingTokens;
      if (open + wanted > tokensInFlight) return tooMany(`${tokensInFlight} tokens of yours in flight`, 0);
    }
    if (tokensPerMinute !== undefined) {
      const left = this.#tokens.left(tokensPerMinute, this.#nowMs());
      // A request may be larger than what is left: the rest is owed, so that large ones are served too.
      if (left <= 0) return tooMany(`${tokensPerMinute} tokens a minute`, ((1 - left) * MINUTE_MS) / tokensPerMinute);
      this.#tokens.take(wanted);
    }
    return null;
  }

  /** Of what `admit` counted, so many tokens were not used. */
  giveBack(tokens: number): void {
    this.#tokens.take(-tokens);
  }
}

function tooMany(words: string, waitMs: number): CodedError {
  return new CodedError('rate_limit_exceeded', `Expected at most ${words}; send the request again later.`, {
    retryAfterS: Math.max(1, Math.ceil(waitMs / 1000)),
  });
}

function neverFits(most: number, wanted: number): CodedError {
  return new CodedError(
    'context_length_exceeded',
    `Expected prompt and output of at most ${most} tokens together (your limit of tokens in flight), got ${wanted} tokens.`,
    { param: 'max_tokens' },
  );
}
