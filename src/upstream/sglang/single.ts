import { CodedError } from '../../base/errors.js';
import type { Clock } from '../../base/clock.js';
import { FIRST_BYTE_MS_MAX, IDLE_MS_MAX } from '../openai/adapter.js';
import { answerBytesMax, wantedOf } from '../openai/request.js';
import { type ErrorReader, OpenAiRun } from '../openai/run.js';
import type { EngineCallOptions } from '../engine-call.js';
import type { NoticeSink } from '../notice.js';
import { selfTestOf } from '../self-test.js';
import type {
  Capacity,
  Prompt,
  PromptCount,
  Upstream,
  UpstreamDescription,
  UpstreamEnd,
  UpstreamFeature,
  UpstreamHealth,
  UpstreamRequest,
  UpstreamRun,
  UpstreamSink,
} from '../upstream.js';
import { isTransportFault, sglangError } from './errors.js';
import type { SglangNode } from './node.js';
import { requestBody, requestHeaders, ROUTES } from './request.js';
import { promptMax } from './state.js';

/** What a request through SGLang's OpenAI routes may ask for. */
export const SGLANG_FEATURES: ReadonlySet<UpstreamFeature> = new Set<UpstreamFeature>([
  'sampling',
  'tools',
  'response-format',
  'logprobs',
  'reasoning',
]);

/** Requests at once where the node does not say its own bound. */
export const RUNNING_MAX = 256;
/** Where no page size is known, nothing is admitted either. */
const PAGE_TOKENS = 1;

export interface SglangOptions {
  /** Model by which tenants ask; must be the node's. @default what the node says at the start */
  readonly model?: string;
  /** Requests at once; the node's own bound holds too. @default RUNNING_MAX */
  readonly runningMax?: number;
  readonly clock: Clock;
  /** A prompt's tokens, template included, as the engine counts. */
  readonly count: (prompt: Prompt) => PromptCount;
  readonly onNotice: NoticeSink;
  /** @default FIRST_BYTE_MS_MAX */
  readonly firstByteMsMax?: number;
  /** @default IDLE_MS_MAX */
  readonly idleMsMax?: number;
}

/** The bounds of one call to a node. */
export function callTo(
  node: SglangNode,
  request: UpstreamRequest,
  body: string,
  options: Pick<SglangOptions, 'clock' | 'firstByteMsMax' | 'idleMsMax'>,
): EngineCallOptions {
  return {
    clock: options.clock,
    agent: node.agent,
    url: node.route(ROUTES[request.prompt.kind]),
    headers: [...node.headers, ...requestHeaders(request)],
    body,
    firstByteMsMax: options.firstByteMsMax ?? FIRST_BYTE_MS_MAX,
    idleMsMax: options.idleMsMax ?? IDLE_MS_MAX,
    bytesMax: answerBytesMax(request.maxTokens, request.streamed ?? true),
  };
}

/** The model that an upstream serves: as configured, or as its node says. Throws CodedError `usage` where neither is known. */
export function servedModel(configured: string | undefined, node: SglangNode): string {
  const model = configured ?? node.state?.model ?? null;
  if (model !== null) return model;
  throw new CodedError(
    'usage',
    `Expected ${node.name} to answer \`/server_info\` as SGLang does (${node.failure ?? 'it names no model'}); start it first, or name its model.`,
  );
}

/** One SGLang server that prefills and decodes by itself. */
export class SglangUpstream implements Upstream {
  readonly #o: SglangOptions;
  readonly #node: SglangNode;
  readonly #model: string;
  readonly #open = new Set<UpstreamRun>();

  private constructor(node: SglangNode, options: SglangOptions) {
    this.#node = node;
    this.#o = options;
    this.#model = servedModel(options.model, node);
  }

  /** Reads the node once. Throws CodedError `usage` where no model is known; takes the node, and closes it with itself. */
  static async open(node: SglangNode, options: SglangOptions): Promise<SglangUpstream> {
    await node.use().start();
    try {
      return new SglangUpstream(node, options);
    } catch (thrown) {
      node.close();
      throw thrown;
    }
  }

  describe(): UpstreamDescription {
    const runningMax = Math.min(this.#o.runningMax ?? RUNNING_MAX, this.#node.state?.runningMax ?? RUNNING_MAX);
    return { kind: 'sglang', models: [this.#model], runningMax, features: SGLANG_FEATURES, exactPieces: false };
  }

  /** The node has one pool for both halves; what it keeps back of it for itself is not offered. */
  capacity(): Capacity {
    const state = this.#serving ? this.#node.state : null;
    const pool = state === null ? null : promptMax(state);
    return {
      nodes: [this.#node.capacity()],
      context: state?.context ?? null,
      prefillPool: pool,
      decodePool: pool,
      pageTokens: state?.pageTokens ?? PAGE_TOKENS,
    };
  }

  health(): UpstreamHealth {
    const { failure, state, name } = this.#node;
    if (failure !== null) return { isUp: false, reason: 'unreachable', words: `${name}: ${failure}` };
    if (this.#serving) return { isUp: true };
    const words = state?.model === this.#model ? `its role is ${state.role}` : 'it serves another model';
    return { isUp: false, reason: 'changed', words: `${name}: ${words}` };
  }

  /** Reads its node again. */
  readNow(): Promise<void> {
    return this.#node.readNow();
  }

  count(prompt: Prompt): PromptCount {
    return this.#o.count(prompt);
  }

  start(request: UpstreamRequest, sink: UpstreamSink): UpstreamRun {
    const streamed = request.streamed ?? true;
    const call = callTo(this.#node, request, requestBody(request, this.#model, streamed, null), this.#o);
    const wanted = wantedOf(request, new Set([this.#model]), SGLANG_FEATURES);
    const watched = watchedSink(
      sink,
      (end) => {
        if (isTransportFault(end)) void this.#node.readNow();
      },
      () => this.#open.delete(run),
    );
    const run = new OpenAiRun(call, streamed, wanted, watched, meaningOf(this.#node.name, this.#o.onNotice));
    this.#open.add(run);
    return {
      nodes: [this.#node.name],
      abort: () => run.abort(),
      acknowledge: (tokens) => run.acknowledge(tokens),
    };
  }

  selfTest(signal: AbortSignal): Promise<string | null> {
    return selfTestOf(this, signal);
  }

  close(): Promise<void> {
    for (const run of this.#open) run.abort();
    this.#node.close();
    return Promise.resolve();
  }

  /** A decode or prefill node alone answers nothing of its own, and another model's answers are not what was asked for. */
  get #serving(): boolean {
    const { state } = this.#node;
    return state !== null && state.role === 'single' && state.model === this.#model;
  }
}

/** `sink`, with a look at the end and at the release before it hears of them. */
export function watchedSink(
  sink: UpstreamSink,
  onEnd: (end: UpstreamEnd) => void,
  onReleased: () => void,
): UpstreamSink {
  return {
    started: (counts) => sink.started(counts),
    text: (piece, tokens) => sink.text(piece, tokens),
    piece: (piece, tokens) => sink.piece(piece, tokens),
    end: (end) => {
      onEnd(end);
      sink.end(end);
    },
    released: () => {
      onReleased();
      sink.released();
    },
  };
}

/** Reads the errors of a node; what it says of its own pages goes to the operators. */
export function meaningOf(node: string, onNotice: NoticeSink): ErrorReader {
  return (status, error) => {
    const meaning = sglangError(status, error);
    if (meaning?.guard === 'checksum') {
      const words = 'it says that KV pages were not what was sent';
      onNotice({ kind: 'corruption-said', severity: 'critical', node, words });
    }
    return meaning;
  };
}
