/**
 * What an OpenAI-compatible engine answers, read by an allow-list: text, finish reason and usage; nothing else is looked at, so
 * nothing else can leave. An error inside a 200 is an error.
 */
import type { FinishReason, UpstreamUsage } from '../upstream.js';

/** One chunk of a stream, or a whole answer. `failure` is for operators: kinds and lengths, no word of the engine's. */
export type AnswerPart =
  | {
      readonly kind: 'part';
      readonly text: string;
      readonly finishReason: FinishReason | null;
      readonly usage: UpstreamUsage | null;
    }
  | {
      readonly kind: 'failure';
      readonly failure: string;
      /** The engine's own error, where there was one inside the answer. It holds whatever the engine put there. */
      readonly error?: unknown;
    };

type Json = Readonly<Record<string, unknown>>;

/** The data of one event of a stream. */
export function readChunk(data: string): AnswerPart {
  return readPart(data, 'delta');
}

/** The body of an answer that was asked for whole. */
export function readAnswer(body: string): AnswerPart {
  return readPart(body, 'message');
}

function readPart(json: string, holder: 'delta' | 'message'): AnswerPart {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return failure(`the answer is not JSON (${json.length} characters)`);
  }
  if (!isObject(value)) return failure('the answer is not an object');
  if (value.error !== undefined && value.error !== null)
    return { ...failure(`an error inside the answer (${errorKind(value.error)})`), error: value.error };
  const usage = value.usage === undefined || value.usage === null ? null : readUsage(value.usage);
  if (usage === 'wrong') return failure('the usage holds counts that are none');
  const choices = value.choices;
  if (!Array.isArray(choices)) return failure('the answer has no choices');
  if (choices.length === 0) return { kind: 'part', text: '', finishReason: null, usage };
  return readChoice(choices, holder, usage);
}

function readChoice(choices: readonly unknown[], holder: 'delta' | 'message', usage: UpstreamUsage | null): AnswerPart {
  const choice = choices[0];
  if (choices.length !== 1 || !isObject(choice)) return failure(`${choices.length} choices where one was asked for`);
  const text = textOf(choice, holder);
  if (text === null) return failure('the answer holds something else than text');
  const reason = choice.finish_reason ?? null;
  if (reason !== null && reason !== 'stop' && reason !== 'length') return failure(`finish reason ${word(reason)}`);
  return { kind: 'part', text, finishReason: reason, usage };
}

/** The text of a choice of either route; null where it holds a tool call, which was not asked for, or no string. */
function textOf(choice: Json, holder: 'delta' | 'message'): string | null {
  const inner = choice[holder];
  if (inner === undefined || inner === null) return stringOr(choice.text);
  if (!isObject(inner)) return null;
  if (Array.isArray(inner.tool_calls) && inner.tool_calls.length > 0) return null;
  return stringOr(inner.content);
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

/** A word of the engine's that is a mere name or number; anything else is not repeated. */
function word(value: unknown): string {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && /^[A-Za-z_]{1,40}$/.test(value) ? value : 'unknown';
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function failure(words: string): Extract<AnswerPart, { kind: 'failure' }> {
  return { kind: 'failure', failure: words };
}
