/** What the HTTP side counts by itself, for `/metrics` and `/v1/loads`. */
import { THROUGHPUT_WINDOW_S } from './bounds.js';

export class EngineCounters {
  requests = 0;
  finished = 0;
  /** Refused, failed, timed out, or left by their client. */
  aborted = 0;
  promptTokens = 0;
  generatedTokens = 0;
  /** Tokens of each second of the window, and which second it was. */
  readonly #tokens = new Int32Array(THROUGHPUT_WINDOW_S);
  readonly #seconds = new Int32Array(THROUGHPUT_WINDOW_S).fill(-1);

  token(nowMs: number): void {
    this.generatedTokens++;
    const second = Math.floor(nowMs / 1000);
    const at = second % THROUGHPUT_WINDOW_S;
    if (this.#seconds[at] !== second) {
      this.#seconds[at] = second;
      this.#tokens[at] = 0;
    }
    this.#tokens[at]!++;
  }

  /** Tokens a second, over the whole seconds of the window that are past. */
  throughput(nowMs: number): number {
    const second = Math.floor(nowMs / 1000);
    let tokens = 0;
    for (let at = 0; at < THROUGHPUT_WINDOW_S; at++) {
      const age = second - this.#seconds[at]!;
      if (age >= 1 && age < THROUGHPUT_WINDOW_S) tokens += this.#tokens[at]!;
    }
    return tokens / (THROUGHPUT_WINDOW_S - 1);
  }
}
