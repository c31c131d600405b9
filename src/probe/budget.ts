import { CodedError } from '../base/errors.js';

/** What a run may spend. */
export interface BudgetLimits {
  /** Requests, and tokens of prompts and asked answers. */
  readonly requests: number;
  readonly tokens: number;
  /** Requests open at once. */
  readonly together: number;
  /** Milliseconds. */
  readonly durationMs: number;
}

/** Nothing more may be sent: the budget is spent, the time is over, or the operator said stop. */
export class BudgetSpent extends Error {
  override readonly name = 'BudgetSpent';
}

/** Counts what is spent, and stops what would go beyond. */
export class Budget {
  readonly limits: BudgetLimits;
  readonly #endMs: number;
  readonly #nowMs: () => number;
  #requests = 0;
  #tokens = 0;
  #open = 0;
  #stopped: string | null = null;
  readonly #waiting: (() => void)[] = [];

  constructor(limits: BudgetLimits, nowMs: () => number) {
    for (const [name, value] of Object.entries(limits)) {
      if (!(value > 0)) throw new CodedError('usage', `Expected the limit of ${name} to be above zero, got ${value}.`);
    }
    this.limits = limits;
    this.#nowMs = nowMs;
    this.#endMs = nowMs() + limits.durationMs;
  }

  get spent(): { readonly requests: number; readonly tokens: number } {
    return { requests: this.#requests, tokens: this.#tokens };
  }

  get stopped(): string | null {
    return this.#stopped;
  }

  /** Milliseconds that are left. */
  get leftMs(): number {
    return Math.max(0, this.#endMs - this.#nowMs());
  }

  /** Nothing more is sent after this. */
  stop(why: string): void {
    this.#stopped ??= why;
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Waits for a free place and takes it, with one request and `tokens`. Throws BudgetSpent. */
  async take(tokens: number): Promise<void> {
    for (;;) {
      this.#check(tokens);
      if (this.#open < this.limits.together) break;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    this.#open++;
    this.#requests++;
    this.#tokens += tokens;
  }

  giveBack(): void {
    this.#open--;
    this.#waiting.shift()?.();
  }

  #check(tokens: number): void {
    if (this.#stopped === null && this.#requests >= this.limits.requests)
      this.stop(`${this.limits.requests} requests are spent`);
    if (this.#stopped === null && this.#tokens + tokens > this.limits.tokens)
      this.stop(`${this.limits.tokens} tokens are spent`);
    if (this.#stopped === null && this.leftMs === 0) this.stop(`${this.limits.durationMs} ms are over`);
    if (this.#stopped !== null) throw new BudgetSpent(this.#stopped);
  }
}
