/**
 * A server that answers as vLLM 0.32.0 on a CPU was seen to: its model card, its metrics, its texts for what is too long, and its
 * silence for what fits the context and not the pool. One byte is one token. One engine after another may be put behind it.
 */
import type { ServerResponse } from 'node:http';
import { type ChatMessage, countTokens, renderChat } from '../../src/tokenizer/bytes.js';
import { CannedEngine, type CannedRequest } from './canned-engine.js';

export interface VllmDoubleOptions {
  readonly context?: number;
  readonly blocks?: number;
  readonly block?: number;
  readonly version?: string;
  readonly key?: string;
}

interface Job {
  readonly request: CannedRequest;
  readonly response: ServerResponse;
  readonly prompt: string;
  readonly maxTokens: number;
}

/** What stands in the labels of `vllm:cache_config_info`, as text; a null leaves the label out. */
export type InfoLabels = Record<string, string | null>;

export class VllmDouble {
  readonly #server: CannedEngine;
  readonly #key: string | null;
  context: number;
  blocks: number;
  block: number;
  version: string;
  models: string[] = ['tiny'];
  /** Changes to the labels of each engine; one entry for each engine. */
  ranks: InfoLabels[] = [{}];
  startedS = 1_796_067_937;
  isAwake = true;
  /** Answers instead of everything else, where it returns true. */
  instead: ((request: CannedRequest, response: ServerResponse) => boolean) | null = null;
  /** The head that fits no pool, and what waits behind it. */
  readonly stuck: Job[] = [];
  running = 0;
  promptTokens = 0;
  generatedTokens = 0;
  finished = 0;
  readonly #salts = new Map<string, Set<string>>();

  constructor(options: VllmDoubleOptions = {}) {
    this.context = options.context ?? 4096;
    this.blocks = options.blocks ?? 16;
    this.block = options.block ?? 128;
    this.version = options.version ?? '0.32.0';
    this.#key = options.key ?? null;
    this.#server = new CannedEngine({
      count: () => 0,
      instead: (request, response) => {
        if (this.instead?.(request, response) !== true) this.#answer(request, response);
        return true;
      },
    });
  }

  /** Requests for answers, in order. */
  get asked(): readonly CannedRequest[] {
    return this.#server.requests.filter(({ path }) => path.startsWith('/v1/') && path.endsWith('completions'));
  }

  get requests(): readonly CannedRequest[] {
    return this.#server.requests;
  }

  get usable(): number {
    return (this.blocks - 1) * this.block;
  }

  listen(): Promise<string> {
    return this.#server.listen();
  }

  close(): Promise<void> {
    return this.#server.close();
  }

  #answer(request: CannedRequest, response: ServerResponse): void {
    const { path } = request;
    if (path.startsWith('/v1/') && this.#key !== null && request.headers.authorization !== `Bearer ${this.#key}`) {
      return json(response, 401, { error: 'Unauthorized' });
    }
    if (path === '/version') return json(response, 200, { version: this.version });
    if (path === '/v1/models')
      return json(response, 200, { object: 'list', data: this.models.map((id) => this.#card(id)) });
    if (path === '/metrics') return void response.writeHead(200, { 'content-type': 'text/plain' }).end(this.#metrics());
    if (path === '/tokenize') return this.#tokenize(request, response);
    if (path === '/v1/completions' || path === '/v1/chat/completions') return this.#complete(request, response);
    json(response, 404, { detail: 'Not Found' });
  }

  #card(id: string): Record<string, unknown> {
    return {
      id,
      object: 'model',
      created: 1,
      owned_by: 'vllm',
      root: 'MODEL',
      parent: null,
      max_model_len: this.context,
      permission: [],
    };
  }

  #metrics(): string {
    const lines = [`process_start_time_seconds ${this.startedS}`];
    this.ranks.forEach((changes, rank) => {
      const labels = this.#info(rank, changes);
      const own = `engine="${rank}",model_name="${this.models[0]}"`;
      const here = rank === 0;
      lines.push(
        `vllm:num_requests_running{${own}} ${here ? this.running : 0}`,
        `vllm:num_requests_waiting{${own}} ${here ? this.stuck.length : 0}`,
        `vllm:num_requests_waiting_by_reason{${own},reason="capacity"} ${here ? this.stuck.length : 0}`,
        `vllm:num_requests_waiting_by_reason{${own},reason="deferred"} 0.0`,
        `vllm:engine_sleep_state{${own},sleep_state="awake"} ${this.isAwake ? 1 : 0}.0`,
        `vllm:kv_cache_usage_perc{${own}} 0.0`,
        `vllm:num_preemptions_total{${own}} 0.0`,
        `vllm:prompt_tokens_total{${own}} ${here ? this.promptTokens : 0}`,
        `vllm:generation_tokens_total{${own}} ${here ? this.generatedTokens : 0}`,
        `vllm:request_success_total{${own},finished_reason="length"} ${here ? this.finished : 0}`,
        `vllm:cache_config_info{${labels}} 1.0`,
      );
    });
    return `${lines.join('\n')}\n`;
  }

  #info(rank: number, changes: InfoLabels): string {
    const tokens = this.blocks * this.block;
    const labels: InfoLabels = {
      block_size: String(this.block),
      enable_prefix_caching: 'True',
      engine: String(rank),
      kv_cache_max_concurrency: String(tokens / this.context),
      kv_cache_size_tokens: String(tokens),
      mamba_block_size: 'None',
      num_gpu_blocks: String(this.blocks),
      sliding_window: 'None',
      ...changes,
    };
    const said = Object.entries(labels).filter(([, value]) => value !== null);
    return said.map(([name, value]) => `${name}="${value}"`).join(',');
  }

  #tokenize({ body }: CannedRequest, response: ServerResponse): void {
    const count = countTokens(promptOf(body));
    json(response, 200, { count, max_model_len: this.context, tokens: [], token_strs: null });
  }

  #complete(request: CannedRequest, response: ServerResponse): void {
    const { body } = request;
    const refusal = this.#refusal(body);
    if (refusal !== null) return json(response, refusal.code, { error: refusal });
    const prompt = promptOf(body);
    const left = this.context - countTokens(prompt);
    const asked = typeof body.max_tokens === 'number' ? body.max_tokens : left;
    const job = { request, response, prompt, maxTokens: Math.min(asked, left) };
    if (body.stream === true)
      response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' }).flushHeaders();
    if (this.stuck.length > 0 || countTokens(prompt) > this.usable) this.#stick(job);
    else this.#run(job);
  }

  /** At the head it waits for room that never comes; behind it everything else waits. Its client's leaving frees them. */
  #stick(job: Job): void {
    this.stuck.push(job);
    job.response.on('close', () => {
      const at = this.stuck.indexOf(job);
      if (at < 0) return;
      this.stuck.splice(at, 1);
      if (at > 0) return;
      const behind = this.stuck.splice(0);
      for (const next of behind) {
        if (this.stuck.length > 0 || countTokens(next.prompt) > this.usable) this.stuck.push(next);
        else this.#run(next);
      }
    });
  }

  #refusal(body: CannedRequest['body']): { message: string; type: string; param: string; code: number } | null {
    const bad = (message: string, param: string) => ({ message, type: 'BadRequestError', param, code: 400 });
    if (body.model !== undefined && !this.models.includes(body.model as string)) {
      return {
        ...bad(`The model \`${JSON.stringify(body.model)}\` does not exist.`, 'model'),
        type: 'NotFoundError',
        code: 404,
      };
    }
    if (body.cache_salt === '')
      return bad("Parameter 'cache_salt' must be a non-empty string if provided.", 'cache_salt');
    const count = countTokens(promptOf(body));
    if (count === this.context)
      return bad('max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)', 'max_tokens');
    if (count < this.context) return null;
    const least = this.context + 1;
    return bad(
      `This model's maximum context length is ${this.context} tokens. However, your prompt contains at least ${least} input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=${least})`,
      'input_tokens',
    );
  }

  #run({ request, response, prompt, maxTokens }: Job): void {
    const prompted = countTokens(prompt);
    const room = this.usable - prompted + 1;
    const sent = Math.min(maxTokens, room);
    const cached = this.#cachedOf(JSON.stringify(request.body.cache_salt ?? null), prompt);
    const text = Array.from({ length: sent }, (_, i) => prompt[i % prompt.length]!).join('');
    this.promptTokens += prompted;
    this.generatedTokens += sent;
    const usage = {
      prompt_tokens: prompted,
      total_tokens: prompted + sent,
      completion_tokens: sent,
      prompt_tokens_details: { cached_tokens: cached, created_cache_tokens: null, multimodal_tokens: null },
    };
    const isChat = request.path.includes('chat');
    if (request.body.stream === true) {
      for (const frame of streamed(isChat, text, sent === maxTokens, usage)) response.write(frame);
      // What outgrows the pool gives way to itself and never comes back.
      if (sent < maxTokens) return this.#stick({ request, response, prompt, maxTokens });
      this.finished++;
      return void response.end('data: [DONE]\n\n');
    }
    if (sent < maxTokens) return this.#stick({ request, response, prompt, maxTokens });
    this.finished++;
    json(response, 200, whole(isChat, text, usage));
  }

  /** Whole blocks of what was sent before under the same salt, but for the last token. */
  #cachedOf(salt: string, prompt: string): number {
    let seen = this.#salts.get(salt);
    if (seen === undefined) {
      seen = new Set();
      this.#salts.set(salt, seen);
    }
    const blocks = Math.floor((prompt.length - 1) / this.block);
    let cached = 0;
    for (let i = 1; i <= blocks; i++) {
      const prefix = prompt.slice(0, i * this.block);
      if (seen.has(prefix) && cached === (i - 1) * this.block) cached = i * this.block;
      seen.add(prefix);
    }
    return cached;
  }
}

function promptOf(body: CannedRequest['body']): string {
  return body.messages === undefined ? String(body.prompt) : renderChat(body.messages as ChatMessage[]);
}

function whole(isChat: boolean, text: string, usage: unknown): Record<string, unknown> {
  const inner = isChat
    ? {
        message: {
          role: 'assistant',
          content: text,
          refusal: null,
          annotations: null,
          audio: null,
          function_call: null,
          reasoning: null,
        },
      }
    : { text };
  return {
    id: 'cmpl-8e6f23d1d35dca10',
    object: isChat ? 'chat.completion' : 'text_completion',
    created: 1,
    model: 'tiny',
    choices: [
      {
        index: 0,
        ...inner,
        logprobs: null,
        finish_reason: 'length',
        stop_reason: null,
        token_ids: null,
        routed_experts: null,
      },
    ],
    service_tier: null,
    system_fingerprint: 'vllm-0.32.0-07b5f583',
    usage,
    kv_transfer_params: null,
    ec_transfer_params: null,
    metrics: null,
  };
}

function streamed(isChat: boolean, text: string, ends: boolean, usage: unknown): string[] {
  const frame = (choices: unknown[], more: object = {}): string =>
    `data: ${JSON.stringify({ id: 'cmpl-1', object: isChat ? 'chat.completion.chunk' : 'text_completion', created: 1, model: 'tiny', choices, ...more })}\n\n`;
  const frames = isChat
    ? [
        frame([{ index: 0, delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null }], {
          prompt_token_ids: null,
        }),
      ]
    : [];
  Array.from(text).forEach((letter, at) => {
    const inner = isChat ? { delta: { content: letter } } : { text: letter };
    const reason = ends && at === text.length - 1 ? 'length' : null;
    frames.push(
      frame([{ index: 0, ...inner, logprobs: null, finish_reason: reason, stop_reason: null, token_ids: null }]),
    );
  });
  if (ends) frames.push(frame([], { usage, system_fingerprint: 'vllm-0.32.0-07b5f583' }));
  return frames;
}

export function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
