import type { Agent } from 'node:http';
import { assert } from '../../base/assert.js';
import type { Clock } from '../../base/clock.js';
import type {
  Capacity,
  Prompt,
  PromptCount,
  Upstream,
  UpstreamDescription,
  UpstreamFeature,
  UpstreamHealth,
  UpstreamRequest,
  UpstreamRun,
  UpstreamSink,
} from '../upstream.js';
import type { EngineCallOptions } from '../engine-call.js';
import { selfTestOf } from '../self-test.js';
import { type EngineTls, engineAgent } from '../transport.js';
import { answerBytesMax, openAiBody, wantedOf } from './request.js';
import { type ErrorReader, OpenAiRun } from './run.js';

export interface OpenAiOptions {
  /** Where the engine's `/v1` lies, such as `http://127.0.0.1:8000`. */
  readonly url: URL;
  /** The engine's own key, never a tenant's; null: it knows no keys. */
  readonly key: string | null;
  /** For an address of `https:`. @default the system's authorities */
  readonly tls?: EngineTls;
  readonly models: readonly string[];
  /** Tokens of prompt and output together, as configured: such an endpoint says no such number that could be trusted. */
  readonly context: number;
  /** Tokens that the engine's KV pool holds; null: not known, which admits nothing. */
  readonly pool: number | null;
  readonly runningMax: number;
  /** What requests may ask of it. @default none */
  readonly features?: ReadonlySet<UpstreamFeature>;
  /** Names besides its own under which it may answer; null: any. An answer under another one is withheld. @default none */
  readonly answersAs?: readonly string[] | null;
  readonly clock: Clock;
  /** A prompt's tokens, template included, as the engine counts. */
  readonly count: (prompt: Prompt) => PromptCount;
  /** False: it closes a connection after an answer without saying so, and a request on it would be lost. @default true */
  readonly keepsConnections?: boolean;
  /** How this engine's errors are read. @default by status alone */
  readonly errors?: ErrorReader;
  /** @default FIRST_BYTE_MS_MAX */
  readonly firstByteMsMax?: number;
  /** @default IDLE_MS_MAX */
  readonly idleMsMax?: number;
}

/** A long prompt is prefilled before the first byte. */
export const FIRST_BYTE_MS_MAX = 300_000;
export const IDLE_MS_MAX = 60_000;
/** Where nothing is known of pages, a page is one token. */
const PAGE_TOKENS = 1;
const NO_FEATURES: ReadonlySet<UpstreamFeature> = new Set();

/** Any OpenAI-compatible endpoint, with a configured limit. One request, one call: nothing is sent twice. */
export class OpenAiUpstream implements Upstream {
  readonly #options: OpenAiOptions;
  readonly #agent: Agent;
  readonly #headers: readonly string[];
  readonly #urls: Readonly<Record<Prompt['kind'], URL>>;
  readonly #answerModels: ReadonlySet<string> | null;
  readonly #open = new Set<OpenAiRun>();

  constructor(options: OpenAiOptions) {
    assert(options.models.length > 0, 'an upstream serves at least one model');
    this.#options = options;
    this.#agent = engineAgent(options.url, options.tls, options.keepsConnections);
    const { models, answersAs = [] } = options;
    this.#answerModels = answersAs === null ? null : new Set([...models, ...answersAs]);
    const base = options.url.href.replace(/\/(v1\/?)?$/, '');
    this.#urls = { chat: new URL(`${base}/v1/chat/completions`), text: new URL(`${base}/v1/completions`) };
    this.#headers = [
      'content-type',
      'application/json',
      ...(options.key === null ? [] : ['authorization', `Bearer ${options.key}`]),
    ];
  }

  describe(): UpstreamDescription {
    const { models, runningMax, features = NO_FEATURES } = this.#options;
    return { kind: 'openai', models, runningMax, features, exactPieces: false };
  }

  capacity(): Capacity {
    const { context, pool, clock } = this.#options;
    return {
      nodes: [
        {
          node: 'openai',
          role: 'single',
          advertised: context,
          pool,
          acceptLimit: null,
          source: 'configuration',
          atMs: clock.wallMs(),
        },
      ],
      context,
      prefillPool: pool,
      decodePool: pool,
      pageTokens: PAGE_TOKENS,
    };
  }

  health(): UpstreamHealth {
    return { isUp: true };
  }

  count(prompt: Prompt): PromptCount {
    return this.#options.count(prompt);
  }

  start(request: UpstreamRequest, sink: UpstreamSink): UpstreamRun {
    const streamed = request.streamed ?? true;
    const wanted = wantedOf(request, this.#answerModels, this.#options.features ?? NO_FEATURES);
    const heard: UpstreamSink = {
      started: (counts) => sink.started(counts),
      text: (piece, tokens) => sink.text(piece, tokens),
      piece: (piece, tokens) => sink.piece(piece, tokens),
      end: (end) => sink.end(end),
      released: () => {
        this.#open.delete(run);
        sink.released();
      },
    };
    const run = new OpenAiRun(this.#call(request, streamed), streamed, wanted, heard, this.#options.errors);
    this.#open.add(run);
    return run;
  }

  selfTest(signal: AbortSignal): Promise<string | null> {
    return selfTestOf(this, signal);
  }

  close(): Promise<void> {
    for (const run of this.#open) run.abort();
    this.#agent.destroy();
    return Promise.resolve();
  }

  #call(request: UpstreamRequest, streamed: boolean): EngineCallOptions {
    const { clock, firstByteMsMax, idleMsMax, models } = this.#options;
    const { prompt } = request;
    return {
      clock,
      agent: this.#agent,
      url: this.#urls[prompt.kind],
      headers: [...this.#headers, 'x-request-id', request.id, 'traceparent', request.traceparent],
      body: JSON.stringify(Object.assign(openAiBody(request, models[0]!, streamed), request.engineFields)),
      firstByteMsMax: firstByteMsMax ?? FIRST_BYTE_MS_MAX,
      idleMsMax: idleMsMax ?? IDLE_MS_MAX,
      bytesMax: answerBytesMax(request.maxTokens, streamed),
    };
  }
}
