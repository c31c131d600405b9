import { CodedError } from '../base/errors.js';
import type { PromptCount } from '../upstream/upstream.js';

/** `least <= exact <= most`; equal where the count is exact. Tokens. */
export interface Interval {
  readonly least: number;
  readonly most: number;
}

/** What is known of one prompt's tokens, as one way of counting sees it: bounds at first, and the exact number once it is there. */
export class Tally implements Interval {
  #least: number;
  #most: number;
  readonly #exact: (() => Promise<number>) | null;
  #pending: Promise<void> | null = null;

  constructor(count: PromptCount) {
    this.#least = count.kind === 'exact' ? count.tokens : count.least;
    this.#most = count.kind === 'exact' ? count.tokens : count.most;
    this.#exact = count.kind === 'exact' ? null : count.exact;
  }

  get least(): number {
    return this.#least;
  }

  get most(): number {
    return this.#most;
  }

  get isExact(): boolean {
    return this.#least === this.#most;
  }

  /** Resolves when the count is exact; counts once. Rejects with CodedError where it can't be known. */
  makeExact(): Promise<void> {
    if (this.isExact) return Promise.resolve();
    this.#pending ??= this.#count();
    return this.#pending;
  }

  async #count(): Promise<void> {
    const tokens = await this.#exact!();
    if (!Number.isSafeInteger(tokens) || tokens < this.#least || tokens > this.#most) {
      throw new CodedError('internal_error', 'The prompt was counted outside of its own bounds; send it again.');
    }
    this.#least = tokens;
    this.#most = tokens;
  }
}
