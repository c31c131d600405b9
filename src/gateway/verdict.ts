/** What the numbers of an answer say about it. An engine's numbers are looked at before anything is believed of them. */
import type { AnswerPiece, FinishReason, PromptCounts, TokenLogprob, UpstreamUsage } from '../upstream/upstream.js';
import { TOOL_CALLS_MAX } from './bounds.js';
import type { Interval } from './tally.js';

/**
 * `drift`: other counts than ours; it concerns this request only. The others are grounds for suspicion against the engine:
 * `short`, it counted fewer than half of the prompt; `roles`, prefill and decode disagree; `empty`, a finished answer of no token;
 * `nonsense`, what came is no number, or no reason to finish, or no text.
 */
export type Verdict = 'agrees' | 'drift' | Suspicion;
export type Suspicion = 'short' | 'roles' | 'empty' | 'nonsense';

export function isSuspicion(verdict: Verdict): verdict is Suspicion {
  return verdict !== 'agrees' && verdict !== 'drift';
}

/** No prompt or answer is longer, and no 63-bit room is shorter. */
const COUNT_MAX = 2 ** 31 - 1;

/** Whether it is a number of tokens: whole, from zero up, and not absurd. Engines' values may be anything. */
export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= COUNT_MAX;
}

const FINISH_REASONS: ReadonlySet<unknown> = new Set<FinishReason>(['stop', 'length', 'tool_calls', 'content_filter']);

/** A count without doubt. */
export function exactly(tokens: number): Interval {
  return { least: tokens, most: tokens };
}

/**
 * `counted`: tokens of the prompt as counted here; as long as it is an interval, every count inside of it agrees. Where decode has
 * not said its count yet, prefill's is judged alone.
 */
export function judgeCounts(counted: Interval, counts: PromptCounts): Verdict {
  const { prefillTokens } = counts;
  const promptTokens = counts.promptTokens ?? prefillTokens;
  if (!isCount(promptTokens) || (prefillTokens !== null && !isCount(prefillTokens))) return 'nonsense';
  if (prefillTokens !== null && prefillTokens !== promptTokens) return 'roles';
  if (promptTokens * 2 < counted.least) return 'short';
  return counted.least <= promptTokens && promptTokens <= counted.most ? 'agrees' : 'drift';
}

/** A finished answer. `maxTokens` were granted. */
export function judgeFinish(counted: Interval, maxTokens: number, usage: UpstreamUsage, reason: FinishReason): Verdict {
  const { completionTokens } = usage;
  const verdict = judgeCounts(counted, usage);
  if (verdict !== 'agrees') return verdict;
  if (!FINISH_REASONS.has(reason) || !isCount(completionTokens) || completionTokens > maxTokens) return 'nonsense';
  return completionTokens < 1 ? 'empty' : 'agrees';
}

/** A finish reason as it may leave. */
export function sensibleReason(reason: unknown): FinishReason {
  return FINISH_REASONS.has(reason) ? (reason as FinishReason) : 'stop';
}

/** Cached tokens as they may leave: a part of the prompt, or not said. */
export function sensibleCached(cachedTokens: unknown, counted: number): number | null {
  return isCount(cachedTokens) && cachedTokens <= counted ? cachedTokens : null;
}

/** Whether a piece is what it says. Engines' values may be anything. */
export function isPiece(piece: AnswerPiece): boolean {
  switch (piece.kind) {
    case 'text':
      return typeof piece.text === 'string' && piece.logprobs.every(isLogprob);
    case 'reasoning':
    case 'refusal':
      return typeof piece.text === 'string';
    case 'tool-call':
      return (
        isCount(piece.index) &&
        piece.index < TOOL_CALLS_MAX &&
        [piece.id ?? '', piece.name ?? '', piece.arguments].every(isString)
      );
    default:
      return false;
  }
}

function isLogprob({ token, logprob, top }: TokenLogprob): boolean {
  return (
    isString(token) &&
    isFiniteNumber(logprob) &&
    top.every((each) => isString(each.token) && isFiniteNumber(each.logprob))
  );
}

function isString(value: unknown): boolean {
  return typeof value === 'string';
}

function isFiniteNumber(value: unknown): boolean {
  return Number.isFinite(value);
}
