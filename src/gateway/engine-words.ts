/**
 * What of an engine's failure leaves, and to whom. The tenant gets a code of a short list, our words for it and our numbers; the
 * operators get what can be shown of the engine's own text. An engine may quote any prompt in an error, so of its text only words
 * of a fixed list are kept, and of its numbers only those that the gateway knows itself.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { CodedError, type ErrorCode } from '../base/errors.js';
import { effectiveLimit } from '../handoff/admission.js';
import type { Capacity } from '../upstream/upstream.js';
import { RETRY_AFTER_S } from './bounds.js';

/** Our own numbers of the request that failed. */
export interface OwnNumbers {
  /** Tokens of the prompt as counted here, and of output as granted. */
  readonly counted: number;
  readonly maxTokens: number;
  readonly capacity: Capacity;
}

/** The numbers that may be shown of an engine's text, since the gateway knows them itself. */
export function ownNumbers({ counted, maxTokens, capacity }: OwnNumbers): ReadonlySet<number> {
  return new Set([counted, maxTokens, capacity.context ?? 0, capacity.prefillPool ?? 0, capacity.decodePool ?? 0]);
}

const RETRY = { retryAfterS: RETRY_AFTER_S };

/** The codes that an engine may end a request with; any other one counts as `engine_failed`. */
const WORDS: Readonly<Partial<Record<ErrorCode, (own: OwnNumbers) => CodedError>>> = {
  context_length_exceeded: lengthError,
  invalid_request: () =>
    new CodedError('invalid_request', 'The engine refused the request: a field of it asks for what it does not take.'),
  no_capacity: () => new CodedError('no_capacity', 'The engine is full. Try again later.', RETRY),
  engine_unavailable: () =>
    new CodedError('engine_unavailable', 'The engine is gone. Send the request again later.', RETRY),
  shutting_down: () => new CodedError('shutting_down', 'The server is shutting down; send the request again later.'),
  verification_failed: () =>
    new CodedError('verification_failed', 'The answer could not be verified and was withheld. Send the request again.'),
};

/** The tenant's error for an engine's failure. Nothing of the engine but the code goes into it. */
export function tenantError(code: ErrorCode, own: OwnNumbers): CodedError {
  const words = Object.hasOwn(WORDS, code) ? WORDS[code] : undefined;
  return words?.(own) ?? new CodedError('engine_failed', 'The engine could not finish this request. Send it again.');
}

function lengthError({ counted, maxTokens, capacity }: OwnNumbers): CodedError {
  const limit = effectiveLimit(capacity);
  const known = limit === null ? 'a limit not known here' : `${limit.tokens} tokens, set by the ${limit.limitedBy}`;
  return new CodedError(
    'context_length_exceeded',
    `Expected a prompt that the engine takes (${known}), got ${counted} tokens with max_tokens ${maxTokens}.`,
  );
}

/** Characters of an engine's text that are looked at, and that are shown of it. */
const READ_CHARACTERS_MAX = 2_000;
const SHOWN_CHARACTERS_MAX = 200;

/** What engines say of themselves when they fail. None of these words tells anything of a prompt. */
const KNOWN_WORDS: ReadonlySet<string> = new Set(
  (
    'abort aborted accept allocate allocated allocation at attempt bad batch block blocks bootstrap broken busy bytes cache cancelled ' +
    'cannot capacity checksum chunk client closed completed completion connect connection context could count crashed cuda dead ' +
    'deadline decode device did died draining empty end ended engine error exceed exceeded exceeds exited expected expired fail failed ' +
    'failure fault fence fenced fit for found free full generate got gpu handle handshake http in input internal invalid is kv larger lease length ' +
    'less limit long longer lost max maximum memory mismatch model more most must no node not of on oom only out output overloaded page ' +
    'pages parse peer pool preempted prefill prompt queue rank read ready received refused register registration reject rejected ' +
    'request requests reset restart restarted room scheduler send sent sequence server shutdown shutting size slot socket stale start state status stopped ' +
    'tag taken than timeout timed to token tokens too total transfer unavailable unexpected unhealthy unknown verified waited was with worker write wrong'
  ).split(' '),
);

/** Of a text from an engine, its known words and the numbers of `known`, in order; `…` for what is left out, `#` for other numbers. */
export function shownWords(text: string, known: ReadonlySet<number>): string {
  const parts: string[] = [];
  for (const [part] of text.slice(0, READ_CHARACTERS_MAX).matchAll(/[\p{L}\p{N}_]+/gu)) {
    const shown = shownPart(part, known);
    if (shown !== '…' || parts.at(-1) !== '…') parts.push(shown);
  }
  return parts.join(' ').slice(0, SHOWN_CHARACTERS_MAX);
}

function shownPart(part: string, known: ReadonlySet<number>): string {
  if (/^\d+$/.test(part)) return known.has(Number(part)) ? part : '#';
  return KNOWN_WORDS.has(part.toLowerCase()) ? part.toLowerCase() : '…';
}

/** A key of this process alone: with it a fingerprint tells one text from another, and nobody can find the text by trying. */
const FINGERPRINT_KEY = randomBytes(32);
const FINGERPRINT_DIGITS = 12;

export function fingerprint(text: string): string {
  return createHmac('sha256', FINGERPRINT_KEY).update(text).digest('hex').slice(0, FINGERPRINT_DIGITS);
}
