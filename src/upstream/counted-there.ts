/** Counts that only an engine can make, asked of its own endpoints. */
import { CodedError } from '../base/errors.js';
import type { Got } from './poll.js';
import type { PromptCount } from './upstream.js';

/** Asks one endpoint of the engine. */
export type AskEngine = (path: string, body: unknown) => Promise<Got>;

/** How long an engine may take over the count of one prompt. */
export const COUNT_MS_MAX = 20_000;
/** The ids of a prompt of a million tokens have some eight bytes each. */
export const COUNT_BYTES_MAX: number = 64 * 1024 * 1024;
const RETRY_AFTER_S = 1;
const HTTP_OK = 200;
const AT_FAULT: ReadonlySet<number> = new Set([400, 422]);

/** Any length is possible until the engine has counted. It is asked once, when the count is wanted. */
export function countedThere(ask: () => Promise<number>): PromptCount {
  let asked: Promise<number> | null = null;
  return {
    kind: 'bounds',
    least: 1,
    most: Number.MAX_SAFE_INTEGER,
    exact: () => (asked ??= ask()),
  };
}

/**
 * The JSON of an answer. Throws `invalid_request` where the engine says that the prompt is at fault, else `engine_unavailable`;
 * never a word of the engine's.
 */
export function answeredJson(got: Got): unknown {
  if (got.kind === 'failure' || (got.status !== HTTP_OK && !AT_FAULT.has(got.status))) throw cannotCount();
  if (got.status !== HTTP_OK) {
    throw new CodedError(
      'invalid_request',
      "Expected a prompt that the engine can count, got one that it refuses; its model's chat template may not take such messages.",
    );
  }
  try {
    return JSON.parse(got.body) as unknown;
  } catch {
    throw cannotCount();
  }
}

/** A picture or a file is no text, and how many tokens it becomes is known only when an engine has it: no number is better than a wrong one. */
export function countsTextOnly(): CodedError {
  return new CodedError(
    'invalid_request',
    'Expected a prompt of text, got parts that are none: the engine that serves this model can not count them.',
    { param: 'messages' },
  );
}

/** The engine was asked for a count and gave none. */
export function cannotCount(): CodedError {
  return new CodedError('engine_unavailable', 'The engine could not count the prompt; send the request again later.', {
    retryAfterS: RETRY_AFTER_S,
  });
}

/** A whole number of tokens from 0, as an engine says it; anything else is no count. */
export function replyCount(value: unknown): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) throw cannotCount();
  return value;
}
