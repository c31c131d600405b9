import { assert } from '../../base/assert.js';
import type { Clock } from '../../base/clock.js';
import type {
  Capacity,
  Prompt,
  PromptCount,
  Upstream,
  UpstreamDescription,
  UpstreamHealth,
  UpstreamEnd,
  UpstreamRequest,
  UpstreamRun,
  UpstreamSink,
  UpstreamUsage,
} from '../upstream.js';
import type {
  EngineCounts,
  EngineEnd,
  EnginePort,
  EngineRequest,
  EngineRun,
  EngineSink,
} from '../../handoff/engine-port.js';

/** As much of the byte tokenizer as the adapter needs. */
export interface TextCodec {
  /** Token ids of a text. */
  encode(text: string): Int32Array;
  /** How many ids `encode` would give. */
  countTokens(text: string): number;
  renderChat(messages: readonly { readonly role: string; readonly content: string }[]): string;
  /** One for each answer. */
  newDecoder(): TextDecoding;
}

export interface TextDecoding {
  /** The whole characters that are complete with this id; may be empty. */
  push(id: number): string;
  /** What is left at the end: the replacement character for half of one. */
  end(): string;
}

export interface EmbeddedOptions {
  readonly engine: EnginePort;
  readonly codec: TextCodec;
  readonly clock: Clock;
  /** The owner of self-tests in the page ledgers: a number that no tenant has. */
  readonly selfTestTenant: number;
}

const SELF_TEST_TEXT = 'ping';

/** The embedded engine behind the contract of all engines: text to tokens, tokens to whole characters. */
export class EmbeddedUpstream implements Upstream {
  readonly #engine: EnginePort;
  readonly #codec: TextCodec;
  readonly #clock: Clock;
  readonly #selfTestTenant: number;

  constructor(options: EmbeddedOptions) {
    assert(options.selfTestTenant >= 1, 'owners in the page ledgers are 1 and up');
    this.#engine = options.engine;
    this.#codec = options.codec;
    this.#clock = options.clock;
    this.#selfTestTenant = options.selfTestTenant;
  }

  describe(): UpstreamDescription {
    const { model, runningMax } = this.#engine.describe();
    return { kind: 'embedded', models: [model], runningMax };
  }

  capacity(): Capacity {
    const { context, prefillPool, decodePool, pageTokens } = this.#engine.describe();
    const node = (role: 'prefill' | 'decode', pool: number): Capacity['nodes'][number] => ({
      node: `embedded ${role}`,
      role,
      advertised: context,
      pool,
      acceptLimit: null,
      source: 'embedded engine',
      atMs: this.#clock.wallMs(),
    });
    return {
      nodes: [node('prefill', prefillPool), node('decode', decodePool)],
      context,
      prefillPool,
      decodePool,
      pageTokens,
    };
  }

  health(): UpstreamHealth {
    return { isUp: true };
  }

  count(prompt: Prompt): PromptCount {
    return { kind: 'exact', tokens: this.#codec.countTokens(this.#render(prompt)) };
  }

  start(request: UpstreamRequest, sink: UpstreamSink): UpstreamRun {
    const engineRequest: EngineRequest = {
      tenant: request.tenant,
      salt: request.salt,
      prompt: this.#codec.encode(this.#render(request.prompt)),
      maxTokens: request.maxTokens,
      temperature: request.temperature,
      seed: request.seed,
      room: roomOf(request.engineFields),
      handle: handleOf(request.engineFields),
    };
    return new EmbeddedRun(this.#engine, engineRequest, sink, this.#codec.newDecoder());
  }

  selfTest(signal: AbortSignal): Promise<string | null> {
    return new Promise((resolve) => {
      let run: EngineRun | null = null;
      const onAbort = (): void => {
        run?.abort();
        resolve('the engine did not answer in time');
      };
      if (signal.aborted) return onAbort();
      signal.addEventListener('abort', onAbort, { once: true });
      run = this.#engine.submit(this.#selfTestRequest(), {
        started() {},
        token: () => run?.acknowledge(1),
        end: (end) => {
          signal.removeEventListener('abort', onAbort);
          const answered = end.outcome === 'finished' && end.completionTokens === 1;
          resolve(answered ? null : `the engine ended a self-test as ${end.outcome}`);
        },
        released() {},
      });
    });
  }

  close(): Promise<void> {
    return this.#engine.close();
  }

  #selfTestRequest(): EngineRequest {
    return {
      tenant: this.#selfTestTenant,
      salt: '',
      prompt: this.#codec.encode(SELF_TEST_TEXT),
      maxTokens: 1,
      temperature: 0,
      seed: 0,
      room: null,
      handle: null,
    };
  }

  #render(prompt: Prompt): string {
    return prompt.kind === 'text' ? prompt.text : this.#codec.renderChat(prompt.messages);
  }
}

/** One request: holds tokens back until they make whole characters. */
class EmbeddedRun implements UpstreamRun, EngineSink {
  readonly #sink: UpstreamSink;
  readonly #decoder: TextDecoding;
  readonly #run: EngineRun;
  /** Tokens whose characters are not complete. */
  #heldTokens = 0;

  constructor(engine: EnginePort, request: EngineRequest, sink: UpstreamSink, decoder: TextDecoding) {
    this.#sink = sink;
    this.#decoder = decoder;
    this.#run = engine.submit(request, this);
  }

  abort(): void {
    this.#run.abort();
  }

  acknowledge(tokens: number): void {
    this.#run.acknowledge(tokens);
  }

  started(counts?: EngineCounts): void {
    this.#sink.started(counts ?? null);
  }

  token(id: number): void {
    this.#heldTokens++;
    const piece = this.#decoder.push(id);
    if (piece !== '') this.#pass(piece);
  }

  end(end: EngineEnd): void {
    if (end.outcome === 'finished') {
      const rest = this.#decoder.end();
      if (rest !== '' || this.#heldTokens > 0) this.#pass(rest);
    }
    this.#sink.end(upstreamEnd(end));
  }

  released(): void {
    this.#sink.released();
  }

  #pass(piece: string): void {
    const tokens = this.#heldTokens;
    this.#heldTokens = 0;
    this.#sink.text(piece, tokens);
  }
}

function upstreamEnd(end: EngineEnd): UpstreamEnd {
  const usage: UpstreamUsage = {
    promptTokens: end.promptTokens,
    prefillTokens: end.prefillTokens,
    completionTokens: end.completionTokens,
    cachedTokens: end.cachedTokens,
  };
  if (end.outcome === 'aborted') return { kind: 'aborted', usage };
  if (end.outcome === 'finished') {
    return {
      kind: 'finished',
      finishReason: end.finishReason ?? 'stop',
      usage,
      engineAnswer: { kv_transfer_params: { handle: end.handle } },
    };
  }
  return {
    kind: 'failed',
    code: end.error?.code ?? 'engine_failed',
    message: end.error?.message ?? 'The engine failed while it handled this request.',
    detail: end.error?.detail ?? '',
    guard: end.guard,
  };
}

type Fields = Readonly<Record<string, unknown>>;

const ROOM_MAX = 2n ** 63n - 1n;

/** `bootstrap_room`, as SGLang's routers set it: a number, or its digits where a number can't hold it. */
function roomOf(fields: Fields): bigint | null {
  const value = fields.bootstrap_room;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return BigInt(value);
  if (typeof value !== 'string' || !/^\d{1,19}$/.test(value)) return null;
  const room = BigInt(value);
  return room <= ROOM_MAX ? room : null;
}

/** `kv_transfer_params.handle` (also inside `vllm_xargs`, which vLLM merges into the same place), or `cofferdam_handle`. */
function handleOf(fields: Fields): string | null {
  for (const container of [fields, fields.vllm_xargs]) {
    const params = asFields(container)?.kv_transfer_params;
    const handle = asFields(params)?.handle;
    if (typeof handle === 'string') return handle;
  }
  return typeof fields.cofferdam_handle === 'string' ? fields.cofferdam_handle : null;
}

function asFields(value: unknown): Fields | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : null;
}
