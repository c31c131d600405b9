/**
 * A server that answers as llama-server b11434 was seen to: slots that may share one pool, where a token too many ends every
 * request that runs; prompts that slots keep; a client's leaving, which it finds out late. One byte is one token.
 */
import type { ServerResponse } from 'node:http';
import { SystemClock } from '../../src/base/clock.js';
import { type ChatMessage, countTokens, renderChat } from '../../src/tokenizer/bytes.js';
import { CannedEngine, type CannedRequest } from './canned-engine.js';
import { json } from './vllm-double.js';

export interface LlamaDoubleOptions {
  readonly slots?: number;
  /** `--ctx-size`. */
  readonly pool?: number;
  /** Whether the slots share the pool; else each has its part. @default true */
  readonly unified?: boolean;
}

interface Slot {
  readonly id: number;
  /** What it holds: the prompt and the answer so far. */
  kept: string;
  job: Job | null;
  task: number;
}

interface Job {
  readonly request: CannedRequest;
  readonly response: ServerResponse;
  readonly prompt: string;
  readonly maxTokens: number;
  readonly cached: number;
  readonly task: number;
  sent: number;
  /** The client has gone, and the server has not found out. */
  isOrphan: boolean;
}

const clock = new SystemClock();

export class LlamaDouble {
  readonly #server: CannedEngine;
  readonly unified: boolean;
  readonly slots: Slot[];
  readonly #deferred: CannedTask[] = [];
  pool: number;
  models: string[] = ['lab'];
  build = 'b11434';
  showsSlots = true;
  isLoading = false;
  /** What `/props` says of a slot's context instead of what is so. */
  contextSaid: unknown = undefined;
  /** Requests make no further token while it is true. */
  isHeld = false;
  /** Orphans go on while it is false. */
  findsOrphans = true;
  /** Requests that were ended because the pool was full. */
  ended = 0;
  /** The most that was in the pool for running requests at once. */
  peak = 0;
  instead: ((request: CannedRequest, response: ServerResponse) => boolean) | null = null;
  #tasks = 0;
  #turning = false;

  constructor(options: LlamaDoubleOptions = {}) {
    this.pool = options.pool ?? 4096;
    this.unified = options.unified ?? true;
    this.slots = Array.from({ length: options.slots ?? 4 }, (_, id) => ({ id, kept: '', job: null, task: -1 }));
    this.#server = new CannedEngine({
      count: () => 0,
      instead: (request, response) => {
        if (this.instead?.(request, response) !== true) this.#answer(request, response);
        return true;
      },
    });
  }

  get requests(): readonly CannedRequest[] {
    return this.#server.requests;
  }

  /** Requests for answers, in order. */
  get asked(): readonly CannedRequest[] {
    return this.requests.filter(({ path }) => path.endsWith('completions'));
  }

  get context(): number {
    return this.unified ? this.pool : Math.floor(this.pool / this.slots.length);
  }

  listen(): Promise<string> {
    return this.#server.listen();
  }

  close(): Promise<void> {
    return this.#server.close();
  }

  /** What a request for an answer gets, for an `instead` that only wanted to wait or to change it. */
  begin(request: CannedRequest, response: ServerResponse): void {
    this.#complete(request, response);
  }

  /** Goes on after what held it was taken away. */
  wake(): void {
    if (this.#turning) return;
    this.#turning = true;
    clock.soon(() => {
      this.#turning = false;
      this.#turn();
    });
  }

  #answer(request: CannedRequest, response: ServerResponse): void {
    const { path, body } = request;
    if (this.isLoading)
      return json(response, 503, { error: { message: 'Loading model', type: 'unavailable_error', code: 503 } });
    if (path === '/props') return json(response, 200, this.#props());
    if (path === '/slots') {
      if (this.showsSlots)
        return json(
          response,
          200,
          this.slots.map((slot) => this.#shown(slot)),
        );
      return json(response, 501, {
        error: { code: 501, message: 'This server does not support slots endpoint.', type: 'not_supported_error' },
      });
    }
    if (path === '/v1/models')
      return json(response, 200, { object: 'list', data: this.models.map((id) => this.#card(id)) });
    if (path === '/apply-template') return json(response, 200, { prompt: renderChat(body.messages as ChatMessage[]) });
    if (path === '/tokenize') return json(response, 200, { tokens: [...Buffer.from(String(body.content))] });
    if (path === '/v1/completions' || path === '/v1/chat/completions') return this.#complete(request, response);
    json(response, 404, { error: { code: 404, message: 'File Not Found', type: 'not_found_error' } });
  }

  #props(): unknown {
    return {
      default_generation_settings: {
        params: { n_predict: -1 },
        n_ctx: this.contextSaid === undefined ? this.context : this.contextSaid,
      },
      total_slots: this.slots.length,
      model_alias: this.models[0],
      model_path: 'lab.gguf',
      endpoint_slots: this.showsSlots,
      endpoint_props: false,
      endpoint_metrics: true,
      build_info: this.build,
      is_sleeping: false,
    };
  }

  #shown({ id, job, task }: Slot): unknown {
    return {
      id,
      n_ctx: this.context,
      speculative: false,
      is_processing: job !== null,
      ...(task < 0 ? {} : { id_task: task }),
    };
  }

  #card(id: string): unknown {
    return {
      id,
      aliases: [id],
      object: 'model',
      owned_by: 'llamacpp',
      meta: { n_ctx: this.context, n_ctx_train: 8192 },
    };
  }

  #complete(request: CannedRequest, response: ServerResponse): void {
    const { body } = request;
    const prompt = body.messages === undefined ? String(body.prompt) : renderChat(body.messages as ChatMessage[]);
    const length = countTokens(prompt);
    if (length >= this.context) {
      const message = `request (${length} tokens) exceeds the available context size (${this.context} tokens), try increasing it`;
      const error = {
        code: 400,
        message,
        type: 'exceed_context_size_error',
        n_prompt_tokens: length,
        n_ctx: this.context,
      };
      return json(response, 400, { error });
    }
    this.#deferred.push({ request, response, prompt });
    this.#launch();
  }

  #launch(): void {
    for (const task of this.#deferred.slice()) {
      const slot = this.#slotFor(task);
      if (slot === null) continue;
      this.#deferred.splice(this.#deferred.indexOf(task), 1);
      this.#begin(slot, task);
    }
    this.wake();
  }

  #slotFor({ request, prompt }: CannedTask): Slot | null {
    const wanted = request.body.id_slot;
    const free = this.slots.filter(({ job }) => job === null);
    if (typeof wanted === 'number' && wanted >= 0) return free.find(({ id }) => id === wanted) ?? null;
    return (
      free.find(({ kept }) => shared(kept, prompt) > 0.1 * prompt.length) ??
      free.toSorted((a, b) => a.task - b.task)[0] ??
      null
    );
  }

  #begin(slot: Slot, { request, response, prompt }: CannedTask): void {
    const { body } = request;
    const cached = body.cache_prompt === false ? 0 : Math.min(shared(slot.kept, prompt), prompt.length - 1);
    const asked = typeof body.max_tokens === 'number' ? body.max_tokens : this.context;
    const maxTokens = Math.min(asked, this.context - countTokens(prompt));
    slot.task = this.#tasks++;
    slot.job = { request, response, prompt, maxTokens, cached, task: slot.task, sent: 0, isOrphan: false };
    slot.kept = prompt;
    const { job } = slot;
    const left = (): void => {
      if (slot.job !== job) return;
      job.isOrphan = true;
      this.wake();
    };
    response.on('close', left);
    if (response.destroyed) left();
  }

  /** One token of every request that runs, as continuous batching has it. */
  #turn(): void {
    for (const slot of this.slots) if (slot.job?.isOrphan === true && this.findsOrphans) slot.job = null;
    const running = this.slots.filter(({ job }) => job !== null);
    if (running.length > 0 && !this.isHeld) {
      const used = running.reduce((sum, { kept }) => sum + countTokens(kept), 0);
      this.peak = Math.max(this.peak, used);
      if (this.unified && used > this.pool) this.#endAll(running);
      else for (const slot of running) this.#step(slot, slot.job!);
    }
    if (this.#deferred.length > 0) this.#launch();
    else if (this.slots.some(({ job }) => job !== null) && !this.isHeld) this.wake();
  }

  /** Nothing fits any more: prompts kept for nobody's request went first, and now everything that runs. */
  #endAll(running: readonly Slot[]): void {
    for (const slot of running) {
      const { response } = slot.job!;
      const error = { code: 500, message: 'Context size has been exceeded.', type: 'server_error' };
      slot.job = null;
      slot.kept = '';
      this.ended++;
      if (response.headersSent) response.end(`data: ${JSON.stringify({ error })}\n\n`);
      else json(response, 500, { error });
    }
  }

  #step(slot: Slot, job: Job): void {
    const isChat = job.request.path.includes('chat');
    const isStreamed = job.request.body.stream === true;
    const letter = job.prompt[job.sent % job.prompt.length]!;
    if (job.sent > 0) slot.kept += job.prompt[(job.sent - 1) % job.prompt.length]!;
    job.sent++;
    if (isStreamed) {
      if (!job.response.headersSent) {
        job.response.writeHead(200, { 'content-type': 'text/event-stream', connection: 'keep-alive' });
        if (isChat) job.response.write(frame(isChat, { delta: { role: 'assistant', content: null } }, null));
      }
      job.response.write(
        frame(isChat, isChat ? { delta: { content: letter } } : { text: letter, logprobs: null }, null),
      );
    }
    if (job.sent < job.maxTokens) return;
    const usage = this.#usage(job);
    if (isStreamed) {
      job.response.write(frame(isChat, isChat ? { delta: {} } : { text: '', logprobs: null }, 'length'));
      job.response.write(`data: ${JSON.stringify({ ...head(isChat), choices: [], ...usage })}\n\n`);
      // It says that it keeps the connection, and does not.
      job.response.end('data: [DONE]\n\n', () => job.response.socket?.end());
    } else {
      const text = Array.from({ length: job.sent }, (_, i) => job.prompt[i % job.prompt.length]!).join('');
      const inner = isChat ? { message: { role: 'assistant', content: text } } : { text, logprobs: null };
      json(job.response, 200, {
        ...head(isChat),
        choices: [{ index: 0, ...inner, finish_reason: 'length' }],
        ...usage,
      });
    }
    slot.job = null;
  }

  #usage({ prompt, sent, cached }: Job): Record<string, unknown> {
    const prompted = countTokens(prompt);
    return {
      usage: {
        completion_tokens: sent,
        prompt_tokens: prompted,
        total_tokens: prompted + sent,
        prompt_tokens_details: { cached_tokens: cached },
      },
      timings: { cache_n: cached, prompt_n: prompted - cached, prompt_ms: 2.1, predicted_n: sent, predicted_ms: 6.5 },
    };
  }
}

interface CannedTask {
  readonly request: CannedRequest;
  readonly response: ServerResponse;
  readonly prompt: string;
}

function head(isChat: boolean): Record<string, unknown> {
  return {
    id: 'chatcmpl-1',
    object: isChat ? 'chat.completion' : 'text_completion',
    created: 1,
    model: 'lab',
    system_fingerprint: 'b0-unknown',
  };
}

function frame(isChat: boolean, inner: object, reason: string | null, more: object = {}): string {
  const object = isChat ? 'chat.completion.chunk' : 'text_completion';
  return `data: ${JSON.stringify({ ...head(isChat), object, choices: [{ index: 0, ...inner, finish_reason: reason }], ...more })}\n\n`;
}

/** Characters that both begin with. */
function shared(kept: string, prompt: string): number {
  let length = 0;
  while (length < kept.length && length < prompt.length && kept[length] === prompt[length]) length++;
  return length;
}
