/** Whether a prompt fits one engine, by what is known of its tokens. */
import { unreachable } from '../base/assert.js';
import { CodedError } from '../base/errors.js';
import { type AdmissionVerdict, decideAdmission } from '../handoff/admission.js';
import type { Capacity } from '../upstream/upstream.js';
import { RETRY_AFTER_S } from './bounds.js';
import type { CountTier } from './metrics.js';
import type { ParsedRequest } from './policy.js';
import type { Interval } from './tally.js';

type Refusal = Exclude<AdmissionVerdict, { kind: 'admitted' }>;

/** `undecided`: the exact count is needed first. */
export type LengthVerdict =
  | { readonly kind: 'admitted'; readonly maxTokens: number; readonly isClamped: boolean; readonly tier: CountTier }
  | { readonly kind: 'refused'; readonly why: Refusal; readonly counted: Interval; readonly tier: CountTier }
  | { readonly kind: 'undecided' };

/**
 * Bounds decide only what the exact count would decide in the same way: `least` above a limit refuses; `most` within all of them
 * admits, where as much output is granted as was asked for.
 */
export function judgeLength(counted: Interval, maxTokens: number | null, capacity: Capacity): LengthVerdict {
  const { least, most } = counted;
  const low = decideAdmission(least, maxTokens, capacity);
  const tier = least === most ? 'exact' : low.kind === 'admitted' ? 'bound_admitted' : 'bound_refused';
  if (low.kind !== 'admitted') return { kind: 'refused', why: low, counted, tier };
  if (least === most) return { kind: 'admitted', maxTokens: low.maxTokens, isClamped: low.clamped, tier };
  if (maxTokens === null || least < 1) return { kind: 'undecided' };
  const high = decideAdmission(most, maxTokens, capacity);
  if (high.kind !== 'admitted' || high.clamped) return { kind: 'undecided' };
  return { kind: 'admitted', maxTokens: high.maxTokens, isClamped: false, tier };
}

/** Of several engines' refusals, the one that leaves the most room: what a tenant would have to keep to. At least one. */
export function widestRefusal(
  refusals: readonly Extract<LengthVerdict, { kind: 'refused' }>[],
): Extract<LengthVerdict, { kind: 'refused' }> {
  return refusals.reduce((widest, each) => (roomOf(each.why) > roomOf(widest.why) ? each : widest));
}

/** No prompt has as many tokens. */
const PROMPTS_MAX = 2 ** 40;

/** A refusal for the output alone leaves room for the whole prompt; one without a number leaves none. */
function roomOf(why: Refusal): number {
  if (why.kind === 'unknown') return 0;
  return why.kind === 'prompt-too-long' ? why.limit.tokens : PROMPTS_MAX + why.context;
}

/** The refusal as the tenant reads it, with its numbers. */
export function lengthError(
  { why, counted }: Extract<LengthVerdict, { kind: 'refused' }>,
  parsed: ParsedRequest,
): CodedError {
  const tokens = counted.least === counted.most ? `${counted.least} tokens` : `at least ${counted.least} tokens`;
  const asked = parsed.maxTokens === null ? 'no max_tokens' : `max_tokens ${parsed.maxTokens}`;
  switch (why.kind) {
    case 'unknown':
      return new CodedError(
        'capacity_unknown',
        'The capacity of the engine is not known, so nothing is admitted; try again later.',
        { retryAfterS: RETRY_AFTER_S },
      );
    case 'prompt-too-long':
      return new CodedError(
        'context_length_exceeded',
        `Expected a prompt of at most ${why.limit.tokens} tokens (set by the ${why.limit.limitedBy}), ` +
          `got ${tokens} with ${asked}.`,
        { param: promptParam(parsed) },
      );
    case 'total-too-long':
      return new CodedError(
        'context_length_exceeded',
        `Expected prompt and output of at most ${why.context} tokens together (set by the advertised context), ` +
          `got a prompt of ${tokens} with ${asked}.`,
        { param: 'max_tokens' },
      );
    default:
      return unreachable(why);
  }
}

export function emptyPrompt(parsed: ParsedRequest): CodedError {
  return new CodedError('invalid_request', 'Expected a prompt of at least one token, got an empty one.', {
    param: promptParam(parsed),
  });
}

function promptParam(parsed: ParsedRequest): string {
  return parsed.route === 'chat' ? 'messages' : 'prompt';
}
