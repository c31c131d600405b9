/**
 * The shapes of SGLang's answers, written as strings: same fields, our own words where a text is free. What the engine does not
 * have (reasoning, retractions) is said as SGLang says "none of it".
 */
import { errorFrame } from '../../wire/index.js';
import type { CallRoute, EngineCall } from './call.js';
import { errorType, type Failure, frameType } from './failure.js';

/** How an answer ended. `matched`: the stop text, or the id of the token, that ended it. */
export type Finish =
  | { readonly type: 'length'; readonly length: number }
  | { readonly type: 'stop'; readonly matched: string | number };

export interface AnswerState {
  readonly call: EngineCall;
  readonly createdS: number;
  /** Seconds since the request came, and seconds since 1970 now; both for `meta_info`. */
  readonly latencyS: number;
  readonly nowS: number;
  readonly promptTokens: number;
  /** Of them, in pages that an earlier prompt left. */
  readonly cachedTokens: number;
  /** Everything so far: `/generate` repeats it in every frame. */
  readonly text: string;
  readonly ids: readonly number[];
}

const WEIGHT_VERSION = 'default';

export function generateJson(state: AnswerState, finish: Finish | null): string {
  return JSON.stringify({ text: state.text, output_ids: state.ids, meta_info: metaInfo(state, finish) });
}

function metaInfo(state: AnswerState, finish: unknown): Record<string, unknown> {
  const ended = finish === null ? {} : { e2e_latency: state.latencyS, response_sent_to_client_ts: state.nowS };
  return {
    id: state.call.id,
    finish_reason: finish,
    prompt_tokens: state.promptTokens,
    weight_version: WEIGHT_VERSION,
    num_retractions: 0,
    reasoning_tokens: 0,
    completion_tokens: state.ids.length,
    cached_tokens: state.cachedTokens,
    cached_tokens_details: state.cachedTokens > 0 ? { device: state.cachedTokens, host: 0 } : null,
    dp_rank: null,
    ...ended,
  };
}

function usage(state: AnswerState): Record<string, unknown> {
  return {
    prompt_tokens: state.promptTokens,
    total_tokens: state.promptTokens + state.ids.length,
    completion_tokens: state.ids.length,
    prompt_tokens_details: null,
    reasoning_tokens: 0,
  };
}

function head(state: AnswerState, chatObject: string): Record<string, unknown> {
  const { call, createdS } = state;
  const object = call.route === 'chat' ? chatObject : 'text_completion';
  return { id: call.id, object, created: createdS, model: call.model };
}

function ending(finish: Finish | null): Record<string, unknown> {
  return {
    logprobs: null,
    finish_reason: finish?.type ?? null,
    matched_stop: finish?.type === 'stop' ? finish.matched : null,
  };
}

/** A whole answer. */
export function wholeJson(state: AnswerState, finish: Finish): string {
  if (state.call.route === 'generate') return generateJson(state, finish);
  const content =
    state.call.route === 'chat'
      ? { message: { role: 'assistant', content: state.text, reasoning_content: null, tool_calls: null } }
      : { text: state.text };
  return JSON.stringify({
    ...head(state, 'chat.completion'),
    choices: [{ index: 0, ...content, ...ending(finish) }],
    usage: usage(state),
    metadata: { weight_version: WEIGHT_VERSION },
  });
}

const frame = (value: unknown): string => errorFrame(JSON.stringify(value));

function chunk(state: AnswerState, content: Record<string, unknown>, finish: Finish | null): string {
  const choices = [{ index: 0, ...content, ...ending(finish) }];
  const { route, usageInChunks } = state.call;
  const said = usageInChunks ? { usage: usage(state) } : route === 'chat' ? {} : { usage: null };
  return frame({ ...head(state, 'chat.completion.chunk'), choices, ...said });
}

/** What comes before the first text of a stream. */
export function openingFrames(state: AnswerState): string {
  if (state.call.route !== 'chat') return '';
  return chunk(state, { delta: { reasoning_content: null, role: 'assistant', content: '' } }, null);
}

/** `delta` is the new text; `/generate` gives all of it again. */
export function textFrames(state: AnswerState, delta: string): string {
  if (state.call.route === 'generate') return errorFrame(generateJson(state, null));
  return chunk(
    state,
    state.call.route === 'chat' ? { delta: { reasoning_content: null, content: delta } } : { text: delta },
    null,
  );
}

/** The last text, the reason, the usage where it was asked for. `[DONE]` follows. */
export function closingFrames(state: AnswerState, delta: string, finish: Finish): string {
  if (state.call.route === 'generate') return errorFrame(generateJson(state, finish));
  const isChat = state.call.route === 'chat';
  const last = isChat
    ? (delta === '' ? '' : textFrames(state, delta)) + chunk(state, { delta: { reasoning_content: null } }, finish)
    : chunk(state, { text: delta }, finish);
  if (!state.call.includeUsage) return last;
  return last + frame({ ...head(state, 'chat.completion.chunk'), choices: [], usage: usage(state) });
}

/** The body of a status that is no 2xx. */
export function failureJson(route: CallRoute | null, failure: Failure): string {
  const { status, message } = failure;
  if (route === 'generate') return JSON.stringify({ error: { message } });
  return JSON.stringify({ object: 'error', message, type: errorType(status), param: null, code: status });
}

/** A failure within a stream, whose status is 200. `[DONE]` follows. */
export function failureFrames(state: AnswerState, failure: Failure): string {
  const { at, status, message } = failure;
  if (state.call.route !== 'generate') {
    return frame({ error: { object: 'error', message, type: frameType(status), param: null, code: status } });
  }
  if (at === 'door') return doorFrame(failure);
  const reason = { type: 'abort', message, status_code: status, err_type: abortType(status) };
  return frame({ text: state.text, output_ids: state.ids, meta_info: metaInfo(state, reason) });
}

/** `/generate` says in a frame of a 200 what the door refused. */
export function doorFrame(failure: Failure): string {
  const { status, message } = failure;
  const type = status < 500 ? 'invalid_request_error' : 'internal_error';
  return frame({ error: { message, type, code: status, retryable: status >= 500 } });
}

function abortType(status: number): string {
  if (status < 500) return 'BadRequestError';
  return status === 503 ? 'ServiceUnavailableError' : 'InternalServerError';
}
