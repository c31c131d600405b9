/** SGLang nodes that say of themselves what a test writes, and answer their legs as a test plays them. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type FakeNode, fakeNode, type SglangShape, sglangAnswers } from './fake-node.js';

/** One leg as it came; `body` as written, since rooms do not fit a number. */
export interface FakeLeg {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly response: ServerResponse;
  /** Whether the caller closed it before its answer was complete. */
  isGone(): boolean;
}

export type FakeRole = 'prefill' | 'decode' | 'single';

export class FakeSglang {
  readonly legs: FakeLeg[] = [];
  /** What `/server_info` says from now on; a text is said as it is. */
  info: Record<string, unknown> | string;
  /** Answers each leg; by default as the role does when all is well. */
  play: ((leg: FakeLeg) => void) | null = null;
  /** `/server_info` gets no answer. */
  isSilent = false;
  readonly #role: FakeRole;
  #node: FakeNode | null = null;

  constructor(role: FakeRole, shape: Partial<SglangShape> = {}) {
    this.#role = role;
    const mode = role === 'single' ? 'null' : role;
    const flags = {
      kv_cache_dtype: 'auto',
      page_size: 1,
      startup_time: 1.5,
      disaggregation_bootstrap_port: 18998,
      ...shape.flags,
    };
    const said = sglangAnswers({ role: mode, version: '0.5.18', context: 8192, pool: 8192, ...shape, flags });
    this.info = JSON.parse(said['/server_info']!.body!) as Record<string, unknown>;
  }

  get url(): string {
    return this.#node!.url;
  }

  get asked(): FakeNode['asked'] {
    return this.#node!.asked;
  }

  async listen(more: Parameters<typeof fakeNode>[0] = {}): Promise<this> {
    const leg = (request: IncomingMessage, response: ServerResponse): void => this.#leg(request, response);
    this.#node = await fakeNode({
      '/server_info': (_, response) => {
        if (this.isSilent) return;
        response.end(typeof this.info === 'string' ? this.info : JSON.stringify(this.info));
      },
      '/v1/completions': leg,
      '/v1/chat/completions': leg,
      ...more,
    });
    return this;
  }

  /** Says another pool everywhere; `undefined` leaves a field out of the JSON. */
  setPool(pool: unknown, acceptLimit: unknown = typeof pool === 'number' ? pool - 6 : pool): void {
    const info = this.info as { internal_states: { memory_usage: object }[] } & Record<string, unknown>;
    const memory = { ...info.internal_states[0]!.memory_usage, token_capacity: pool };
    this.info = {
      ...info,
      max_total_num_tokens: pool,
      max_req_input_len: acceptLimit,
      internal_states: [{ ...info.internal_states[0], memory_usage: memory }],
    };
  }

  set(fields: Record<string, unknown>): void {
    this.info = { ...(this.info as Record<string, unknown>), ...fields };
  }

  close(): Promise<void> {
    return this.#node!.close();
  }

  #leg(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = [];
    let gone = false;
    response.on('close', () => (gone = !response.writableFinished));
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8');
      const body = JSON.parse(text) as Record<string, unknown>;
      const leg = { path: request.url ?? '', headers: request.headers, text, body, response, isGone: () => gone };
      this.legs.push(leg);
      if (this.play !== null) this.play(leg);
      else answerWell(leg, this.#role);
    });
  }
}

/** Words of the prompt count as its tokens. */
export function wordCount(body: Readonly<Record<string, unknown>>): number {
  return String(body.prompt).split(' ').length;
}

export interface Said {
  readonly promptTokens?: number;
  readonly completionTokens?: number;
  readonly finishReason?: unknown;
}

/** A whole answer of `/v1/completions`. */
export function wholeAnswer(leg: FakeLeg, said: Said = {}): string {
  const { promptTokens = wordCount(leg.body), completionTokens = 1, finishReason = 'length' } = said;
  return JSON.stringify({
    id: leg.body.rid,
    object: 'text_completion',
    created: 1,
    model: leg.body.model,
    choices: [{ index: 0, text: 'x', logprobs: null, finish_reason: finishReason, matched_stop: null }],
    usage: { prompt_tokens: promptTokens, total_tokens: promptTokens + 1, completion_tokens: completionTokens },
  });
}

export function answerJson(leg: FakeLeg, body: string, status = 200): void {
  leg.response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  leg.response.end(body);
}

/** One chunk of a stream; `usage` of null as where the server says it at the end. */
export function chunkOf(leg: FakeLeg, text: string, tokens: number, finish: string | null, withUsage = true): string {
  const usage = withUsage ? { prompt_tokens: wordCount(leg.body), completion_tokens: tokens } : null;
  const choices = [{ index: 0, text, logprobs: null, finish_reason: finish, matched_stop: null }];
  return `data: ${JSON.stringify({ object: 'text_completion', model: leg.body.model, choices, usage })}\n\n`;
}

export function beginStream(leg: FakeLeg): void {
  leg.response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
  leg.response.flushHeaders();
}

/** The usage at the end, and the end. */
export function endStream(leg: FakeLeg, tokens: number): void {
  const usage = { prompt_tokens: wordCount(leg.body), completion_tokens: tokens };
  leg.response.end(`data: ${JSON.stringify({ model: leg.body.model, choices: [], usage })}\n\ndata: [DONE]\n\n`);
}

/** As a node of the role answers when all is well; decode and single nodes say one word. */
export function answerWell(leg: FakeLeg, role: FakeRole, withUsage = true): void {
  if (role === 'prefill' || leg.body.stream !== true) return answerJson(leg, wholeAnswer(leg));
  beginStream(leg);
  leg.response.write(chunkOf(leg, 'x', 1, null, withUsage));
  leg.response.write(chunkOf(leg, '', 1, 'length', withUsage));
  endStream(leg, 1);
}
