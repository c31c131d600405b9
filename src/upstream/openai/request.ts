import type { UpstreamFeature, UpstreamRequest } from '../upstream.js';
import type { Wanted } from './read.js';

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
