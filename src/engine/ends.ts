/** How a request ends without an answer: what the client is told, and what the operators are. */
import type { ErrorCode } from '../base/errors.js';
import { type AdmissionLimits, effectiveLimit } from '../handoff/admission.js';
import { Result, resultName } from '../handoff/messages.js';
import type { EngineEnd } from '../handoff/engine-port.js';

export function failure(code: ErrorCode, message: string, detail: string): EngineEnd {
  return {
    outcome: 'failed',
    finishReason: null,
    promptTokens: 0,
    prefillTokens: 0,
    completionTokens: 0,
    cachedTokens: 0,
    error: { code, message, detail },
    guard: null,
    handle: '',
  };
}

export function unavailable(): EngineEnd {
  return failure('engine_unavailable', 'The engine is gone. Send the request again later.', 'no node is left');
}

/** What the client is told; the operators get the detail. */
export function failureOf(result: number, lengthWords: string, detail: string): EngineEnd {
  const words = detail === '' ? resultName(result) : detail;
  switch (result) {
    case Result.refused:
      return { ...failure('context_length_exceeded', lengthWords, words), outcome: 'refused' };
    case Result.aborted:
      return { ...failure('client_closed_request', 'The request was aborted.', words), outcome: 'aborted' };
    case Result.noCapacity:
      return failure('no_capacity', 'The engine is full. Try again later.', words);
    case Result.badLease:
      return {
        ...failure('verification_failed', 'This request names pages that are not its own.', words),
        outcome: 'refused',
      };
    case Result.badCount:
    case Result.badTag:
    case Result.badChecksum:
    case Result.badUsage:
      return failure(
        'verification_failed',
        'The answer could not be verified and was withheld. Send the request again.',
        words,
      );
    default:
      return failure('engine_failed', 'The engine could not finish this request. Send it again.', words);
  }
}

export function lengthWords(tokens: number, limits: AdmissionLimits): string {
  const limit = effectiveLimit(limits);
  if (limit === null) return `Expected a limit that is known, got none; the prompt has ${tokens} tokens.`;
  return `Expected a prompt of at most ${limit.tokens} tokens (set by the ${limit.limitedBy}), got ${tokens} tokens.`;
}
