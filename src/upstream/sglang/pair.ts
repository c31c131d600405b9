import { assert } from '../../base/assert.js';
import { wantedOf } from '../openai/request.js';
import { selfTestOf } from '../self-test.js';
import type {
  Capacity,
  Prompt,
  PromptCount,
  Upstream,
  UpstreamDescription,
  UpstreamHealth,
  UpstreamRequest,
  UpstreamRun,
  UpstreamSink,
} from '../upstream.js';
import type { SglangNode } from './node.js';
import { PairRun } from './pair-run.js';
import { freshRoom, requestBody } from './request.js';
import {
  callTo,
  meaningOf,
  RUNNING_MAX,
  SGLANG_FEATURES,
  servedModel,
  type SglangOptions,
  watchedSink,
} from './single.js';
import { pairMismatch, promptMax } from './state.js';

/** Where no page size is known, nothing is admitted either. */
const PAGE_TOKENS = 1;

/**
 * One decode node and the prefill nodes that may work for it. The gateway is their router: it pairs, sends both legs, and reads
 * both answers.
 */
export class SglangPairUpstream implements Upstream {
  readonly #o: SglangOptions;
  readonly #decode: SglangNode;
  readonly #prefills: readonly SglangNode[];
  readonly #model: string;
  readonly #open = new Set<PairRun>();
  /** By prefill node, why it is not used, as last told to the operators. */
  readonly #told = new Map<SglangNode, string | null>();

  private constructor(decode: SglangNode, prefills: readonly SglangNode[], options: SglangOptions) {
    assert(prefills.length > 0, 'a pair has a prefill node');
    this.#decode = decode;
    this.#prefills = prefills;
    this.#o = options;
    this.#model = servedModel(options.model, decode);
    for (const node of [decode, ...prefills]) node.onChange(() => this.#tellMismatches());
    this.#tellMismatches();
  }

  /**
   * Reads all nodes once; prefill nodes may be shared between upstreams, so that each knows all that it has to do. Throws CodedError
   * `usage` where no model is known. Closes its nodes with itself, shared ones with the last that uses them.
   */
  static async open(
    decode: SglangNode,
    prefills: readonly SglangNode[],
    options: SglangOptions,
  ): Promise<SglangPairUpstream> {
    const nodes = [decode, ...prefills];
    await Promise.all(nodes.map((node) => node.use().start()));
    try {
      return new SglangPairUpstream(decode, prefills, options);
    } catch (thrown) {
      for (const node of nodes) node.close();
      throw thrown;
    }
  }

  describe(): UpstreamDescription {
    const runningMax = Math.min(this.#o.runningMax ?? RUNNING_MAX, this.#decode.state?.runningMax ?? RUNNING_MAX);
    return { kind: 'sglang-pd', models: [this.#model], runningMax, features: SGLANG_FEATURES, exactPieces: false };
  }

  /** The least of all prefill nodes that are used: a prompt that is admitted fits whichever it goes to. */
  capacity(): Capacity {
    const { state } = this.#decode;
    const pools = this.#usable().map((node) => promptMax(node.state!)!);
    const decodePool = this.#decodeServes && state !== null ? promptMax(state) : null;
    return {
      nodes: [...this.#prefills, this.#decode].map((node) => node.capacity()),
      context: this.#decodeServes ? (state?.context ?? null) : null,
      prefillPool: pools.length === 0 ? null : Math.min(...pools),
      decodePool,
      pageTokens: state?.pageTokens ?? PAGE_TOKENS,
    };
  }

  health(): UpstreamHealth {
    const { failure, name, state } = this.#decode;
    if (failure !== null) return { isUp: false, reason: 'unreachable', words: `${name}: ${failure}` };
    if (!this.#decodeServes) {
      const words = state?.model === this.#model ? `its role is ${state.role}` : 'it serves another model';
      return { isUp: false, reason: 'changed', words: `${name}: ${words}` };
    }
    if (this.#usable().length > 0) return { isUp: true };
    const gone = this.#prefills.find((node) => node.failure !== null);
    const first = gone ?? this.#prefills[0]!;
    const why = gone === undefined ? 'changed' : 'unreachable';
    return { isUp: false, reason: why, words: `${first.name}: ${this.#unusable(first) ?? 'no prefill node'}` };
  }

  /** Reads all of its nodes again. */
  async readNow(): Promise<void> {
    await Promise.all([this.#decode, ...this.#prefills].map((node) => node.readNow()));
  }

  count(prompt: Prompt): PromptCount {
    return this.#o.count(prompt);
  }

  start(request: UpstreamRequest, sink: UpstreamSink): UpstreamRun {
    const prefill = this.#leastBusy();
    if (prefill === null) return refusedRun(sink);
    const tokens = weightOf(request);
    const streamed = request.streamed ?? true;
    const bootstrap = { host: prefill.bootstrapHost, port: prefill.bootstrapPort, room: freshRoom() };
    const call = (node: SglangNode, isStreamed: boolean) =>
      callTo(node, request, requestBody(request, this.#model, isStreamed, bootstrap), this.#o);
    prefill.tokensInFlight += tokens;
    const run = new PairRun(
      {
        prefill: call(prefill, false),
        decode: call(this.#decode, streamed),
        nodes: [prefill.name, this.#decode.name],
        streamed,
        wanted: wantedOf(request, new Set([this.#model]), SGLANG_FEATURES),
        errors: meaningOf(this.#decode.name, this.#o.onNotice),
        onPrefillOver: () => {
          prefill.tokensInFlight -= tokens;
          assert(prefill.tokensInFlight >= 0, 'a prefill node has no fewer tokens in flight than none');
        },
        onFault: (leg) => void (leg === 'prefill' ? prefill : this.#decode).readNow(),
      },
      watchedSink(
        sink,
        () => {},
        () => this.#open.delete(run),
      ),
    );
    this.#open.add(run);
    return run;
  }

  selfTest(signal: AbortSignal): Promise<string | null> {
    return selfTestOf(this, signal);
  }

  close(): Promise<void> {
    for (const run of this.#open) run.cut();
    for (const node of [this.#decode, ...this.#prefills]) node.close();
    return Promise.resolve();
  }

  get #decodeServes(): boolean {
    const { state } = this.#decode;
    return state !== null && state.role === 'decode' && state.model === this.#model;
  }

  #usable(): SglangNode[] {
    return this.#prefills.filter((node) => this.#unusable(node) === null);
  }

  /** Why a prefill node is not used; null: it is. */
  #unusable(node: SglangNode): string | null {
    const decode = this.#decode.state;
    if (node.failure !== null) return node.failure;
    if (node.state === null || decode === null) return 'it was not read yet';
    if (promptMax(node.state) === null) return 'it does not say what it holds';
    return pairMismatch(node.state, decode);
  }

  #leastBusy(): SglangNode | null {
    let best: SglangNode | null = null;
    for (const node of this.#usable()) if (best === null || node.tokensInFlight < best.tokensInFlight) best = node;
    return best;
  }

  /** Nodes that must not be paired are named once, and again when the reason is another. */
  #tellMismatches(): void {
    const decode = this.#decode.state;
    for (const node of this.#prefills) {
      const why = node.state === null || decode === null ? null : pairMismatch(node.state, decode);
      if (why === (this.#told.get(node) ?? null)) continue;
      this.#told.set(node, why);
      if (why === null) continue;
      const words = `it is not paired with ${this.#decode.name}: ${why}`;
      this.#o.onNotice({ kind: 'pair-mismatch', severity: 'high', node: node.name, words });
    }
  }
}

/** More than any prompt has: a bound that high says nothing. */
const PROMPT_TOKENS_MAX = 2 ** 31;

/** What a prompt weighs on its prefill node: its tokens, or its characters where nothing certain is known of them. */
function weightOf({ prompt, promptTokens }: UpstreamRequest): number {
  if (promptTokens !== undefined && promptTokens < PROMPT_TOKENS_MAX) return Math.max(1, promptTokens);
  if (prompt.kind === 'text') return prompt.text.length;
  return prompt.messages.reduce((sum, { content }) => sum + content.length, 1);
}

/** No node can take it: that is its end. */
function refusedRun(sink: UpstreamSink): UpstreamRun {
  sink.end({
    kind: 'failed',
    code: 'engine_unavailable',
    message: 'The engine can not be reached; send the request again later.',
    detail: 'no prefill node can be used',
    guard: null,
  });
  sink.released();
  return { abort() {}, acknowledge() {} };
}
