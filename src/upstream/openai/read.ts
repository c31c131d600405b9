/**
 * What an OpenAI-compatible engine answers, read by an allow-list: text, reasoning, refusal, tool calls, probabilities, finish reason,
 * usage; nothing else is looked at, so nothing else can leave. An error inside a 200 is an error.
 */
import type { AnswerPiece, FinishReason, UpstreamUsage } from '../upstream.js';
import { isObject, type Json, word } from './json.js';
import { readLogprobs, readToolCalls } from './read-pieces.js';

/** What the request asked for, and so what its answer may hold. Probabilities and reasoning that nobody asked for are left out. */
export interface Wanted {
  /** Names that the answer may give as its model, where it gives one; null: any. */
  readonly models: ReadonlySet<unknown> | null;
  readonly tools: boolean;
  readonly logprobs: boolean;
  readonly reasoning: boolean;
}

/** One chunk of a stream, or a whole answer. `failure` is for operators: kinds and lengths, no word of the engine's. */
export type AnswerPart =
  | {
      readonly kind: 'part';
      /** All of it, where it is plain text: `pieces` are empty then. */
      readonly text: string;
      /** In the order in which they are to be read. Text among them may have no probabilities. */
      readonly pieces: readonly AnswerPiece[];
      readonly finishReason: FinishReason | null;
      readonly usage: UpstreamUsage | null;
    }
  | {
      readonly kind: 'failure';
      readonly failure: string;
      /** The engine's own error, where there was one inside the answer. It holds whatever the engine put there. */
      readonly error?: unknown;
    };

const PLAIN: Wanted = { models: null, tools: false, logprobs: false, reasoning: false };
const NONE: readonly AnswerPiece[] = [];

/** The data of one event of a stream. */
export function readChunk(data: string, wanted: Wanted = PLAIN): AnswerPart {
  return readPart(data, 'delta', wanted);
}

/** The body of an answer that was asked for whole. */
export function readAnswer(body: string, wanted: Wanted = PLAIN): AnswerPart {
  return readPart(body, 'message', wanted);
}

function readPart(json: string, holder: 'delta' | 'message', wanted: Wanted): AnswerPart {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return failure(`the answer is not JSON (${json.length} characters)`);
  }
  if (!isObject(value)) return failure('the answer is not an object');
  if (value.error !== undefined && value.error !== null)
    return { ...failure(`an error inside the answer (${errorKind(value.error)})`), error: value.error };
  const { model } = value;
  if (wanted.models !== null && typeof model === 'string' && !wanted.models.has(model))
    return failure('the answer names another model than the one that was asked');
  const usage = value.usage === undefined || value.usage === null ? null : readUsage(value.usage);
  if (usage === 'wrong') return failure('the usage holds counts that are none');
  const choices = value.choices;
  if (!Array.isArray(choices)) return failure('the answer has no choices');
  if (choices.length === 0) return { kind: 'part', text: '', pieces: NONE, finishReason: null, usage };
  return readChoice(choices, holder, usage, wanted);
}

function readChoice(
  choices: readonly unknown[],
  holder: 'delta' | 'message',
  usage: UpstreamUsage | null,
  wanted: Wanted,
): AnswerPart {
  const choice = choices[0];
  if (choices.length !== 1 || !isObject(choice)) return failure(`${choices.length} choices where one was asked for`);
  if (choice.index !== undefined && choice.index !== 0) return failure('a choice that was not asked for');
  const reason = readReason(choice.finish_reason, wanted);
  if (reason === 'wrong') return failure(`finish reason ${word(choice.finish_reason)}`);
  const inner = choice[holder] ?? null;
  if (inner !== null && !isObject(inner)) return failure(`the ${holder} is no object`);
  const text = stringOr(inner === null ? choice.text : inner.content);
  if (text === null) return failure('the answer holds something else than text');
  const pieces = readPieces(choice, inner, text, wanted);
  if (typeof pieces === 'string') return failure(pieces);
  return { kind: 'part', text: pieces.length === 0 ? text : '', pieces, finishReason: reason, usage };
}

function readReason(reason: unknown, wanted: Wanted): FinishReason | null | 'wrong' {
  if (reason === undefined || reason === null) return null;
  if (reason === 'stop' || reason === 'length' || reason === 'content_filter') return reason;
  return reason === 'tool_calls' && wanted.tools ? reason : 'wrong';
}

/** All of a choice in order; empty where it is plain text or nothing. Words where it can't be read. */
function readPieces(choice: Json, inner: Json | null, text: string, wanted: Wanted): readonly AnswerPiece[] | string {
  const logprobs = wanted.logprobs ? readLogprobs(choice.logprobs) : [];
  if (logprobs === null) return 'the probabilities are none';
  const reasoning = wanted.reasoning && inner !== null ? stringOr(inner.reasoning_content ?? inner.reasoning) : '';
  const refusal = inner === null ? '' : stringOr(inner.refusal);
  if (reasoning === null || refusal === null) return 'the answer holds something else than text';
  const calls = inner === null ? [] : readToolCalls(inner.tool_calls);
  if (calls === null) return 'a tool call is none';
  if (calls.length > 0 && !wanted.tools) return 'a tool call that was not asked for';
  if (reasoning === '' && refusal === '' && calls.length === 0 && logprobs.length === 0) return NONE;
  const pieces: AnswerPiece[] = [];
  if (reasoning !== '') pieces.push({ kind: 'reasoning', text: reasoning });
  if (text !== '' || logprobs.length > 0) pieces.push({ kind: 'text', text, logprobs });
  if (refusal !== '') pieces.push({ kind: 'refusal', text: refusal });
  pieces.push(...calls);
  return pieces;
}

function stringOr(value: unknown): string | null {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : null;
}

function readUsage(value: unknown): UpstreamUsage | 'wrong' {
  if (!isObject(value)) return 'wrong';
  const { prompt_tokens: promptTokens, completion_tokens: completionTokens, prompt_tokens_details: details } = value;
  if (!isCount(promptTokens) || !isCount(completionTokens)) return 'wrong';
  const cached = isObject(details) ? details.cached_tokens : undefined;
  return { promptTokens, completionTokens, prefillTokens: null, cachedTokens: isCount(cached) ? cached : null };
}

/** What kind of error an engine's error object is, for operators. */
export function errorKind(error: unknown): string {
  if (!isObject(error)) return `${typeof error}`;
  const length = typeof error.message === 'string' ? error.message.length : 0;
  return `type ${word(error.type)}, code ${word(error.code)}, message of ${length} characters`;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function failure(words: string): Extract<AnswerPart, { kind: 'failure' }> {
  return { kind: 'failure', failure: words };
}
