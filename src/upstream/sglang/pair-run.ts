import type { EngineCallOptions } from '../engine-call.js';
import type { Wanted } from '../openai/read.js';
import { type ErrorReader, OpenAiRun } from '../openai/run.js';
import type { UpstreamEnd, UpstreamRun, UpstreamSink, UpstreamUsage } from '../upstream.js';
import { isTransportFault } from './errors.js';
import { type PrefillAnswer, PrefillCall } from './prefill-call.js';

export interface PairLegs {
  readonly prefill: EngineCallOptions;
  readonly decode: EngineCallOptions;
  /** The names of both. */
  readonly nodes: readonly string[];
  /** How decode answers. Prefill always answers whole. */
  readonly streamed: boolean;
  readonly wanted: Wanted;
  readonly errors: ErrorReader;
  /** The prefill leg is closed. */
  readonly onPrefillOver: () => void;
  /** A connection failed, so that the node is to be looked at. */
  readonly onFault: (leg: 'prefill' | 'decode') => void;
}

/**
 * One request on a prefill and a decode node. Nothing of decode's passes before prefill's own answer is there and says its count;
 * the first leg that fails decides, and the other is cancelled at once.
 */
export class PairRun implements UpstreamRun {
  readonly nodes: readonly string[];
  readonly #legs: PairLegs;
  readonly #sink: UpstreamSink;
  readonly #prefill: PrefillCall;
  readonly #decode: OpenAiRun;
  /** What decode said before prefill did; null: prefill has answered well. Bounded by how far decode runs ahead of its reader. */
  #held: (() => void)[] | null = [];
  #prefillTokens: number | null = null;
  #hasStarted = false;
  #ended = false;
  /** Aborted while prefill may still send pages: the legs stay open until that is over. */
  #isSettling = false;
  #legsOpen = 2;

  constructor(legs: PairLegs, sink: UpstreamSink) {
    this.nodes = legs.nodes;
    this.#legs = legs;
    this.#sink = sink;
    // Prefill first: decode waits for it, and not the other way round.
    this.#prefill = new PrefillCall(
      legs.prefill,
      (answer) => this.#prefillAnswered(answer),
      () => {
        legs.onPrefillOver();
        this.#legOver();
      },
    );
    this.#decode = new OpenAiRun(legs.decode, legs.streamed, legs.wanted, this.#decodeSink(), legs.errors);
  }

  /**
   * Ends the request at once, and its legs when prefill has answered or decode has text: an engine that is told to stop before that
   * gives decode's pages to others while prefill still writes into them.
   */
  abort(): void {
    this.#isSettling ||= !this.#ended && this.#held !== null;
    this.#end({ kind: 'aborted', usage: this.#usage(this.#decode.usage) });
  }

  /** Closes both legs now, whatever is under way: the gateway itself ends. */
  cut(): void {
    this.abort();
    this.#settled();
  }

  acknowledge(tokens: number): void {
    this.#decode.acknowledge(tokens);
  }

  #decodeSink(): UpstreamSink {
    return {
      // Prefill's answer and the first text say more than the head of a stream.
      started() {},
      text: (piece, tokens) => this.#pass(() => this.#sink.text(piece, tokens)),
      piece: (piece, tokens) => this.#pass(() => this.#sink.piece(piece, tokens)),
      end: (end) => this.#decodeEnded(end),
      released: () => this.#legOver(),
    };
  }

  #prefillAnswered(answer: PrefillAnswer): void {
    if (this.#ended) return this.#settled();
    if (answer.kind === 'failed') {
      if (answer.isFault) this.#legs.onFault('prefill');
      const { code, detail, guard, isTransport } = answer;
      const message = 'The engine failed; send the request again.';
      return this.#end({ kind: 'failed', code, message, detail, guard, isTransport });
    }
    this.#prefillTokens = answer.promptTokens;
    const held = this.#held ?? [];
    this.#held = null;
    for (const each of held) this.#pass(each);
  }

  /** Now, if prefill has answered; else when it has. */
  #pass(event: () => void): void {
    if (this.#ended) return this.#settled();
    if (this.#held !== null) return void this.#held.push(event);
    if (!this.#hasStarted) this.#start();
    // Whoever hears the counts may end the request.
    if (!this.#isOver()) event();
  }

  #start(): void {
    this.#hasStarted = true;
    this.#sink.started({
      promptTokens: this.#decode.usage?.promptTokens ?? null,
      prefillTokens: this.#prefillTokens,
    });
  }

  #isOver(): boolean {
    return this.#ended;
  }

  #decodeEnded(end: UpstreamEnd): void {
    if (this.#ended) return this.#settled();
    if (isTransportFault(end)) this.#legs.onFault('decode');
    if (end.kind !== 'finished') return this.#end(end);
    this.#pass(() => this.#end({ ...end, usage: { ...end.usage, prefillTokens: this.#prefillTokens } }));
  }

  #usage(usage: UpstreamUsage | null): UpstreamUsage | null {
    return usage === null ? null : { ...usage, prefillTokens: this.#prefillTokens };
  }

  #end(end: UpstreamEnd): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#held = null;
    this.#sink.end(end);
    if (end.kind !== 'finished' && !this.#isSettling) this.#close();
  }

  /** The transfer is over, one way or the other. */
  #settled(): void {
    if (!this.#isSettling) return;
    this.#isSettling = false;
    this.#close();
  }

  /** Closing a connection is how these engines are told; what they still hold, they do not say. */
  #close(): void {
    this.#prefill.abort();
    this.#decode.abort();
  }

  #legOver(): void {
    if (--this.#legsOpen === 0) this.#sink.released();
  }
}
