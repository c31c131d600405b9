/**
 * One HTTP request to the engine and its answer: tokens become text, stop texts cut it, and a reader that is behind is not
 * written to. Exactly one terminal result leaves, or the client is gone.
 */
import type { ServerResponse } from 'node:http';
import { assert } from '../../base/assert.js';
import type { Clock, Timer } from '../../base/clock.js';
import { TOKEN_EOS, TokenDecoder } from '../../tokenizer/bytes.js';
import { SSE_DONE, StopMatcher } from '../../wire/index.js';
import { STALL_MS_MAX } from './bounds.js';
import type { EngineCall } from './call.js';
import { type Failure, failureHeaders } from './failure.js';
import type { Answering } from './answering.js';
import {
  type AnswerState,
  closingFrames,
  failureFrames,
  failureJson,
  type Finish,
  openingFrames,
  textFrames,
  wholeJson,
} from './shapes.js';

export type LegRole = 'single' | 'prefill' | 'decode';

export interface LegOptions {
  readonly call: EngineCall;
  readonly role: LegRole;
  readonly answering: Answering;
  readonly clock: Clock;
  /** @default STALL_MS_MAX */
  readonly stallMsMax?: number;
}

export class Leg {
  readonly call: EngineCall;
  readonly role: LegRole;
  /** Set by whoever holds something for this request. */
  onGone: (() => void) | null = null;
  /** Tokens that the reader has taken, in all. */
  onTaken: ((tokens: number) => void) | null = null;
  readonly #o: LegOptions;
  readonly #response: ServerResponse;
  readonly #arrivedMs: number;
  readonly #createdS: number;
  readonly #decoder = new TokenDecoder();
  readonly #stops: StopMatcher;
  readonly #ids: number[] = [];
  #promptTokens = 0;
  #cachedTokens = 0;
  #text = '';
  /** Characters of `#text` that have been written. */
  #written = 0;
  #isScheduled = false;
  #stall: Timer | null = null;
  #isSettled = false;

  constructor(options: LegOptions) {
    this.#o = options;
    this.call = options.call;
    this.role = options.role;
    this.#response = options.answering.response;
    this.#arrivedMs = options.answering.arrivedMs;
    this.#createdS = Math.floor(options.clock.wallMs() / 1000);
    this.#stops = new StopMatcher(options.call.stops);
    options.answering.onGone = () => this.#gone();
    options.answering.onInterrupt = (failure) => this.fail(failure);
    this.#response.on('drain', () => this.#drained());
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** The role's own count of the prompt, and how much of it lay in pages that were kept. */
  started(promptTokens: number, cachedTokens: number): void {
    this.#promptTokens = promptTokens;
    this.#cachedTokens = cachedTokens;
  }

  /** True: the answer is complete with this token, since a stop text was met. */
  token(id: number): boolean {
    if (this.#isSettled) return false;
    this.#ids.push(id);
    this.#text += this.#stops.push(this.#decoder.push(id));
    if (this.#stops.hit) {
      this.#finish({ type: 'stop', matched: this.#stops.met ?? '' });
      return true;
    }
    if (this.call.stream) this.#schedule();
    else this.onTaken?.(this.#ids.length);
    return false;
  }

  /** The engine's own end of the answer. */
  end(reason: 'stop' | 'length'): void {
    if (this.#isSettled) return;
    const rest = this.#stops.push(this.#decoder.end());
    if (this.#stops.hit) return this.#finish({ type: 'stop', matched: this.#stops.met ?? '' });
    this.#text += rest + this.#stops.flush();
    this.#finish(
      reason === 'stop' ? { type: 'stop', matched: TOKEN_EOS } : { type: 'length', length: this.#ids.length },
    );
  }

  /** Prefill's whole answer: the one token that it computed, which SGLang calls an end at length 0. */
  endPrefill(): void {
    if (this.#isSettled) return;
    this.#text += this.#decoder.end() + this.#stops.flush();
    this.#finish({ type: 'length', length: 0 });
  }

  fail(failure: Failure): void {
    if (this.#isSettled) return;
    this.#settle();
    const { answering } = this.#o;
    if (this.#response.headersSent) return answering.endStream(failureFrames(this.#state(), failure) + SSE_DONE);
    const isFramed = this.call.stream && (failure.at === 'engine' || this.call.route === 'generate');
    if (!isFramed)
      return answering.answer(failure.status, failureJson(this.call.route, failure), failureHeaders(failure));
    answering.beginStream();
    answering.endStream(failureFrames(this.#state(), failure) + SSE_DONE);
  }

  #finish(finish: Finish): void {
    this.#settle();
    const { answering } = this.#o;
    if (!this.call.stream) return answering.answer(200, wholeJson(this.#state(), finish));
    const opening = this.#open();
    answering.endStream(opening + closingFrames(this.#state(), this.#text.slice(this.#written), finish) + SSE_DONE);
    this.#boundStall();
  }

  #settle(): void {
    assert(!this.#isSettled, 'a request is answered once');
    this.#isSettled = true;
    this.#stall?.cancel();
    this.#stall = null;
  }

  #gone(): void {
    if (this.#isSettled) return;
    this.#settle();
    this.onGone?.();
  }

  /** Tokens that come in one turn of the loop leave in one frame. */
  #schedule(): void {
    if (this.#isScheduled || this.#stall !== null) return;
    this.#isScheduled = true;
    this.#o.clock.soon(() => {
      this.#isScheduled = false;
      if (!this.#isSettled && this.#stall === null) this.#write();
    });
  }

  #write(): void {
    if (this.#text.length === this.#written) return this.onTaken?.(this.#ids.length);
    const frames = this.#open() + textFrames(this.#state(), this.#text.slice(this.#written));
    this.#written = this.#text.length;
    if (this.#response.write(frames)) this.onTaken?.(this.#ids.length);
    // Nothing more is written or acknowledged until the reader has taken this: the engine then stops a bounded number of tokens ahead.
    else this.#boundStall();
  }

  #open(): string {
    if (this.#response.headersSent) return '';
    this.#o.answering.beginStream();
    return openingFrames(this.#state());
  }

  #boundStall(): void {
    if (!this.#response.writableNeedDrain || this.#stall !== null) return;
    this.#stall = this.#o.clock.after(this.#o.stallMsMax ?? STALL_MS_MAX, () => this.#response.destroy());
    this.#response.once('close', () => this.#stall?.cancel());
  }

  #drained(): void {
    if (this.#stall === null) return;
    this.#stall.cancel();
    this.#stall = null;
    if (this.#isSettled) return;
    this.onTaken?.(this.#ids.length);
    this.#schedule();
  }

  #state(): AnswerState {
    const { clock } = this.#o;
    return {
      call: this.call,
      createdS: this.#createdS,
      latencyS: (clock.nowMs() - this.#arrivedMs) / 1000,
      nowS: clock.wallMs() / 1000,
      promptTokens: this.#promptTokens,
      cachedTokens: this.#cachedTokens,
      text: this.#text,
      ids: this.#ids,
    };
  }
}
