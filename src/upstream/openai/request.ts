import type { UpstreamFeature, UpstreamRequest } from '../upstream.js';
import type { Wanted } from './read.js';

/** Bytes of an answer for each of its tokens, probabilities of 20 others included, and for the rest of it. */
const TOKEN_BYTES_MAX = 8 * 1024;
const ANSWER_BYTES_LEAST = 1024 * 1024;
/** An answer that is held whole; a stream is not held. */
const WHOLE_BYTES_MAX = 64 * 1024 * 1024;

/** The body of a request in OpenAI's words; usage is always asked for. What the tenant asked for never displaces what is set here. */
export function openAiBody(request: UpstreamRequest, model: string, streamed: boolean): Record<string, unknown> {
  const { prompt } = request;
  return {
    ...request.params,
    model,
    ...(prompt.kind === 'chat' ? { messages: prompt.rich?.messages ?? prompt.messages } : { prompt: prompt.text }),
    max_tokens: request.maxTokens,
    temperature: request.temperature,
    seed: request.seed,
    n: 1,
    ...(streamed ? { stream: true, stream_options: { include_usage: true } } : {}),
  };
}

/** What the answer to a request may hold. `models`: names that it may give as its model; null: any. */
export function wantedOf(
  { params = {} }: UpstreamRequest,
  models: ReadonlySet<string> | null,
  features: ReadonlySet<UpstreamFeature>,
): Wanted {
  const { tools, logprobs } = params;
  return {
    models,
    tools: Array.isArray(tools) && tools.length > 0,
    logprobs: logprobs === true || typeof logprobs === 'number',
    reasoning: features.has('reasoning'),
  };
}

/** Bytes that an answer of so many tokens may have. */
export function answerBytesMax(maxTokens: number, streamed: boolean): number {
  const bytes = ANSWER_BYTES_LEAST + maxTokens * TOKEN_BYTES_MAX;
  return streamed ? bytes : Math.min(bytes, WHOLE_BYTES_MAX);
}
