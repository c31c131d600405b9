/** A canned engine that reads its prompts as the probe expects of a model: asked for a code that a prompt states, it answers with it. */
import type { ServerResponse } from 'node:http';
import { CannedEngine, type CannedRequest } from './canned-engine.js';

/** A character is a token. */
const MODEL_LEN = 2048;

export interface Recalling {
  /** Looks at each request first; true: it was answered, or never will be. */
  readonly first?: (request: CannedRequest, response: ServerResponse) => boolean;
  /** The text that is answered instead of what the prompt says; undefined: what it says. */
  readonly answers?: (request: CannedRequest) => string | undefined;
  /** Added to every answer. */
  readonly adds?: (request: CannedRequest) => Readonly<Record<string, unknown>>;
}

export function promptOf({ body }: CannedRequest): string {
  return typeof body.prompt === 'string' ? body.prompt : '';
}

export function isPrompt({ path }: CannedRequest): boolean {
  return path === '/v1/completions';
}

/** ` KVC-…`, cut to the tokens that were asked for; empty where the prompt states no such code. */
export function recalled(request: CannedRequest): string {
  const prompt = promptOf(request);
  const name = /The code of ([a-z]+):$/.exec(prompt)?.[1] ?? '';
  const code = new RegExp(`The code of ${name}:( [^\\s.]+)`).exec(prompt)?.[1] ?? ' yes';
  return code.slice(0, Number(request.body.max_tokens ?? 16));
}

export function answerJson(response: ServerResponse, status: number, value: unknown): true {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
  return true;
}

export function refuse(response: ServerResponse, status: number, message: string): true {
  return answerJson(response, status, { error: { type: 'invalid_request_error', code: 'refused', message } });
}

/** Refuses what is longer than it says; any path but its own is 404. Close it. */
export function recallingEngine({ first, answers, adds }: Recalling = {}): CannedEngine {
  return new CannedEngine({
    count: ({ prompt }) => String(prompt).length,
    instead: (request, response) => {
      if (first?.(request, response) === true) return true;
      if (request.path === '/v1/models') {
        return answerJson(response, 200, { object: 'list', data: [{ id: 'lab', max_model_len: MODEL_LEN }] });
      }
      if (!isPrompt(request)) return refuse(response, 404, 'no such path');
      const { length } = promptOf(request);
      if (length >= MODEL_LEN) return refuse(response, 400, `Expected at most ${MODEL_LEN} tokens, got ${length}.`);
      return answerText(response, request, answers?.(request) ?? recalled(request), length, adds?.(request));
    },
  });
}

/** A whole answer, or the same as a stream of two events. */
export function answerText(
  response: ServerResponse,
  { body }: CannedRequest,
  text: string,
  promptTokens: number,
  more: Readonly<Record<string, unknown>> = {},
): true {
  const usage = { prompt_tokens: promptTokens, completion_tokens: text.length };
  const whole = { id: 'canned', choices: [{ index: 0, text, finish_reason: 'length' }], usage, ...more };
  if (body.stream !== true) return answerJson(response, 200, whole);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.end(`data: ${JSON.stringify(whole)}\n\ndata: [DONE]\n\n`);
  return true;
}
