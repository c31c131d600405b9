/** One request in the engine and the legs that it answers: one as a single node, two as a pair. */
import type { EngineCounts, EngineEnd, EnginePort, EngineRun, EngineSink } from '../../handoff/engine-port.js';
import type { Clock } from '../../base/clock.js';
import { engineFailure, type Failure, failureOfEnd } from './failure.js';
import type { Leg } from './leg.js';
import type { EngineCounters } from './counters.js';

/** An engine alone knows no tenants: every request has the same owner in the ledgers. */
const OWNER = 1;

const OTHER_LEG_GONE: Failure = engineFailure(
  500,
  'The client of the other leg of this request left, so it was aborted.',
);

export interface SessionOptions {
  readonly engine: EnginePort;
  readonly clock: Clock;
  readonly counters: EngineCounters;
  /** Null for a single node. */
  readonly prefill: Leg | null;
  /** The leg that answers with the text. */
  readonly output: Leg;
  /** The engine holds nothing of the request any more. */
  readonly onReleased?: () => void;
}

export class Session implements EngineSink {
  readonly #o: SessionOptions;
  #run: EngineRun | null = null;
  #counts: EngineCounts = { promptTokens: 0, prefillTokens: 0 };
  #hasToken = false;

  constructor(options: SessionOptions) {
    this.#o = options;
  }

  /** Hands the request to the engine. Its end may come before this returns: admission refuses at once. */
  open(): void {
    const { prefill, output, engine } = this.#o;
    const { call } = output;
    output.onTaken = (tokens) => this.#run?.acknowledge(tokens);
    output.onGone = () => this.#gone(prefill);
    if (prefill !== null) prefill.onGone = () => this.#gone(output);
    this.#run = engine.submit(
      {
        tenant: OWNER,
        salt: call.salt,
        prompt: call.prompt,
        maxTokens: call.maxTokens,
        temperature: call.temperature,
        seed: call.seed,
        room: call.room,
        handle: null,
        ignoreEos: call.ignoreEos,
      },
      this,
    );
  }

  started(counts?: EngineCounts): void {
    const tokens = this.#o.output.call.prompt.length;
    this.#counts = counts ?? { promptTokens: tokens, prefillTokens: tokens };
    this.#o.counters.promptTokens += this.#counts.promptTokens;
    this.#o.output.started(this.#counts.promptTokens, this.#counts.cachedTokens ?? 0);
    this.#o.prefill?.started(this.#counts.prefillTokens, this.#counts.cachedTokens ?? 0);
  }

  token(id: number): void {
    this.#o.counters.token(this.#o.clock.nowMs());
    if (!this.#hasToken) {
      this.#hasToken = true;
      // Prefill's answer is the token that it computed.
      if (this.#o.prefill?.token(id) === false) this.#o.prefill.endPrefill();
    }
    if (!this.#o.output.token(id)) return;
    // A stop text was met: the answer is complete, and the engine need not go on.
    this.#o.counters.finished++;
    this.#run?.abort();
  }

  end(end: EngineEnd): void {
    const { prefill, output, counters } = this.#o;
    if (end.outcome === 'finished') {
      if (!output.isSettled) counters.finished++;
      prefill?.endPrefill();
      return output.end(end.finishReason ?? 'length');
    }
    if (!output.isSettled) counters.aborted++;
    const failure = failureOfEnd(end);
    prefill?.fail(failure);
    output.fail(failure);
  }

  released(): void {
    this.#o.onReleased?.();
  }

  #gone(other: Leg | null): void {
    this.#o.counters.aborted++;
    // Before the abort, whose own words would say less.
    other?.fail(OTHER_LEG_GONE);
    this.#run?.abort();
  }
}
