/**
 * The shapes of OpenAI's API that are answered here, written as strings: a chunk is one concatenation around one
 * JSON.stringify of its text, which is what a stream of a thousand tokens can afford.
 */
import { type AnswerRest, logprobsJson, messageJson } from './openai-pieces.js';

export type Route = 'chat' | 'completions';

export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Of the prompt, tokens from the tenant's own prefix cache; null: not known, and not said. */
  readonly cachedTokens: number | null;
}

export interface AnswerHead {
  readonly route: Route;
  readonly id: string;
  /** Seconds since 1970. */
  readonly createdS: number;
  readonly model: string;
}

export interface ModelRow {
  readonly id: string;
  readonly createdS: number;
  /** The largest prompt served with at least one token of output; null: not known. */
  readonly maxModelLen: number | null;
}

const DATA = 'data: ';
const END = '\n\n';

/** Ends every stream that ended well, and no other. */
export const SSE_DONE = 'data: [DONE]\n\n';

function usageJson(usage: Usage): string {
  const total = usage.promptTokens + usage.completionTokens;
  const cached = usage.cachedTokens === null ? '' : `,"prompt_tokens_details":{"cached_tokens":${usage.cachedTokens}}`;
  return `{"prompt_tokens":${usage.promptTokens},"completion_tokens":${usage.completionTokens},"total_tokens":${total}${cached}}`;
}

function headJson(head: AnswerHead, chatObject: string): string {
  const object = head.route === 'chat' ? chatObject : 'text_completion';
  return `"id":${JSON.stringify(head.id)},"object":"${object}","created":${head.createdS},"model":${JSON.stringify(head.model)}`;
}

const NO_REST: AnswerRest = { reasoning: '', refusal: '', toolCalls: [], logprobs: null };

/** A whole answer. `extra` holds further top-level fields, already JSON and beginning with a comma, or nothing. */
export function answerJson(
  head: AnswerHead,
  text: string,
  finishReason: string,
  usage: Usage,
  extra = '',
  rest: AnswerRest = NO_REST,
): string {
  const inner = head.route === 'chat' ? `"message":${messageJson(text, rest)}` : `"text":${JSON.stringify(text)}`;
  const logprobs = logprobsJson(head.route === 'chat', rest.logprobs, 0);
  const choice = `{"index":0,${inner},"logprobs":${logprobs},"finish_reason":"${finishReason}"}`;
  return `{${headJson(head, 'chat.completion')},"choices":[${choice}],"usage":${usageJson(usage)}${extra}}`;
}

/** Writes the frames of one stream; holds the parts that repeat. */
export class ChunkWriter {
  readonly #chat: boolean;
  readonly #prefix: string;
  readonly #suffix: string;

  constructor(head: AnswerHead, includeUsage: boolean) {
    this.#chat = head.route === 'chat';
    this.#prefix = `${DATA}{${headJson(head, 'chat.completion.chunk')},"choices":[`;
    // With include_usage every chunk but the last says `usage: null`.
    this.#suffix = includeUsage ? `],"usage":null}${END}` : `]}${END}`;
  }

  /** A chat stream opens with its role; a text stream has no opening frame. */
  opening(): string {
    return this.#chat
      ? `${this.#prefix}{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}${this.#suffix}`
      : '';
  }

  text(text: string): string {
    const content = JSON.stringify(text);
    return this.#chat
      ? `${this.#prefix}{"index":0,"delta":{"content":${content}},"logprobs":null,"finish_reason":null}${this.#suffix}`
      : `${this.#prefix}{"index":0,"text":${content},"logprobs":null,"finish_reason":null}${this.#suffix}`;
  }

  /** Text with the probabilities of its tokens, already JSON. */
  textWith(text: string, logprobs: string): string {
    const content = JSON.stringify(text);
    const inner = this.#chat ? `"delta":{"content":${content}}` : `"text":${content}`;
    return `${this.#prefix}{"index":0,${inner},"logprobs":${logprobs},"finish_reason":null}${this.#suffix}`;
  }

  /** Anything else that a chat's delta may hold, already JSON. */
  delta(json: string): string {
    return `${this.#prefix}{"index":0,"delta":${json},"logprobs":null,"finish_reason":null}${this.#suffix}`;
  }

  finish(finishReason: string): string {
    return this.#chat
      ? `${this.#prefix}{"index":0,"delta":{},"logprobs":null,"finish_reason":"${finishReason}"}${this.#suffix}`
      : `${this.#prefix}{"index":0,"text":"","logprobs":null,"finish_reason":"${finishReason}"}${this.#suffix}`;
  }

  /** The last chunk of a stream that was asked to include its usage: no choices. */
  usage(usage: Usage): string {
    return `${this.#prefix}],"usage":${usageJson(usage)}}${END}`;
  }
}

/** An error inside a stream; `[DONE]` does not follow it. */
export function errorFrame(json: string): string {
  return DATA + json + END;
}

function modelJson(row: ModelRow): string {
  return `{"id":${JSON.stringify(row.id)},"object":"model","created":${row.createdS},"owned_by":"cofferdam","max_model_len":${row.maxModelLen}}`;
}

export function modelsJson(rows: readonly ModelRow[]): string {
  return `{"object":"list","data":[${rows.map(modelJson).join(',')}]}`;
}

export function oneModelJson(row: ModelRow): string {
  return modelJson(row);
}
