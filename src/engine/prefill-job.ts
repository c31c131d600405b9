/** A prompt that prefill has taken, with what it knows of it beside the ledger. */
import { pagesFor } from './config.js';
import type { Payload, Sampling } from './traffic.js';

export interface Job {
  readonly attempt: number;
  readonly prompt: Int32Array;
  readonly salt: string;
  readonly sampling: Sampling;
  registration: number;
  /** Tokens whose KV lies in the slot's pages. */
  computed: number;
  /** Of those, the ones that were found in sealed pages. */
  cachedTokens: number;
  firstToken: number;
  /** Low and high of each posted page: shape (places, 2). */
  readonly checksums: Uint32Array;
}

export function newJob(
  attempt: number,
  payload: Payload & { kind: 'prompt' },
  registration: number,
  pageTokens: number,
): Job {
  const { prompt, salt, sampling } = payload;
  const checksums = new Uint32Array(2 * pagesFor(prompt.length, pageTokens));
  return { attempt, prompt, salt, sampling, computed: 0, cachedTokens: 0, registration, firstToken: 0, checksums };
}
