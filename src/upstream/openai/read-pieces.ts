/** The parts of an answer that few requests ask for: tool calls, and the probabilities of tokens in the forms of both routes. */
import type { AnswerPiece, TokenLogprob } from '../upstream.js';
import { isObject, type Json } from './json.js';

/** Calls of one answer, and the characters of a call's id or name. Engines' own ids have some 30. */
export const TOOL_CALLS_MAX = 128;
const CALL_NAME_CHARACTERS_MAX = 256;
/** Likeliest tokens at one place; OpenAI's limit. */
export const TOP_LOGPROBS_MAX = 20;

type ToolCallPiece = Extract<AnswerPiece, { kind: 'tool-call' }>;

/** Null: what stands there is none. In a whole answer calls have no index but their place. */
export function readToolCalls(value: unknown): readonly ToolCallPiece[] | null {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > TOOL_CALLS_MAX) return null;
  const calls: ToolCallPiece[] = [];
  for (let i = 0; i < value.length; i++) {
    const call = readToolCall(value[i], i);
    if (call === null) return null;
    calls.push(call);
  }
  return calls;
}

function readToolCall(value: unknown, place: number): ToolCallPiece | null {
  if (!isObject(value)) return null;
  const { index = place, id, type, function: named } = value;
  if (typeof index !== 'number' || !Number.isInteger(index) || index < 0 || index >= TOOL_CALLS_MAX) return null;
  if (type !== undefined && type !== null && type !== '' && type !== 'function') return null;
  if (named !== undefined && named !== null && !isObject(named)) return null;
  const args = named?.arguments ?? '';
  const callId = nameOr(id);
  const name = nameOr(named?.name);
  if (typeof args !== 'string' || callId === undefined || name === undefined) return null;
  return { kind: 'tool-call', index, id: callId, name, arguments: args };
}

/** Null: not said. Undefined: no name. */
function nameOr(value: unknown): string | null | undefined {
  if (value === undefined || value === null || value === '') return null;
  return typeof value === 'string' && value.length <= CALL_NAME_CHARACTERS_MAX ? value : undefined;
}

/**
 * Null: what stands there is none. A token's bytes are not read: they follow from the token, and where they would not, they could hold
 * anything.
 */
export function readLogprobs(value: unknown): readonly TokenLogprob[] | null {
  if (value === undefined || value === null) return [];
  if (!isObject(value)) return null;
  if (Array.isArray(value.content)) return readAll(value.content, readChatLogprob);
  if (Array.isArray(value.tokens)) return readColumns(value.tokens, value);
  return value.content === undefined || value.content === null ? [] : null;
}

function readAll<T>(values: readonly unknown[], read: (value: unknown, at: number) => T | null): readonly T[] | null {
  const out: T[] = [];
  for (let i = 0; i < values.length; i++) {
    const each = read(values[i], i);
    if (each === null) return null;
    out.push(each);
  }
  return out;
}

function readChatLogprob(value: unknown): TokenLogprob | null {
  const chosen = readToken(value);
  if (chosen === null) return null;
  const listed = (value as Json).top_logprobs ?? [];
  if (!Array.isArray(listed) || listed.length > TOP_LOGPROBS_MAX) return null;
  const top = readAll(listed, readToken);
  return top === null ? null : { ...chosen, top };
}

function readToken(value: unknown): { token: string; logprob: number } | null {
  if (!isObject(value) || typeof value.token !== 'string') return null;
  const logprob = logprobOf(value.logprob);
  return logprob === null ? null : { token: value.token, logprob };
}

/** OpenAI's older route has a column for each field; the likeliest are an object by token. */
function readColumns(tokens: readonly unknown[], { token_logprobs: logprobs, top_logprobs: tops }: Json) {
  if (!Array.isArray(logprobs) || logprobs.length !== tokens.length) return null;
  const hasTops = Array.isArray(tops);
  if (hasTops && tops.length !== tokens.length) return null;
  return readAll(tokens, (token, at): TokenLogprob | null => {
    const logprob = logprobOf(logprobs[at]);
    const top = hasTops ? readTopObject(tops[at]) : [];
    return typeof token !== 'string' || logprob === null || top === null ? null : { token, logprob, top };
  });
}

function readTopObject(value: unknown): TokenLogprob['top'] | null {
  if (value === undefined || value === null) return [];
  if (!isObject(value)) return null;
  const names = Object.keys(value);
  // Some engines add the chosen token to as many as were asked for.
  if (names.length > TOP_LOGPROBS_MAX + 1) return null;
  return readAll(names, (name) => {
    const logprob = logprobOf(value[name as string]);
    return logprob === null ? null : { token: name as string, logprob };
  });
}

/** What no float can hold comes as null or as a number below all others. */
function logprobOf(value: unknown): number | null {
  if (value === null) return LOGPROB_LEAST;
  return typeof value === 'number' && value <= LOGPROB_SLACK ? Math.max(value, LOGPROB_LEAST) : null;
}

/** OpenAI's own word for a token that is as good as impossible. */
const LOGPROB_LEAST = -9999;
/** Engines' sums are not exact: a certain token may come out a little above 0. */
const LOGPROB_SLACK = 0.01;
