/**
 * An engine for tests that computes something: its answer is the prompt, byte by byte, once. It keeps pages as the real one
 * does (leased from submission to end, draining to release), stops ahead of its reader, and can be held at each phase and made
 * to lie, so that what stands in front of it can be tested for every moment and for every wrong number.
 */
import { assert } from '../../src/base/assert.js';
import type { Clock } from '../../src/base/clock.js';
import { GUARDS, type GuardName } from '../../src/handoff/guards.js';
import type {
  EngineDescription,
  EngineEnd,
  EnginePort,
  EngineRequest,
  EngineRun,
  EngineSink,
  EngineStats,
} from '../../src/handoff/engine-port.js';

export const ECHO_AHEAD_TOKENS = 32;

export interface EchoOptions extends Partial<EngineDescription> {
  readonly clock: Clock;
}

export interface EchoLie {
  promptTokens?: number;
  prefillTokens?: number;
  completionTokens?: number;
  /** Whether the counts are said at `started` too. */
  early?: boolean;
}

export class EchoRun implements EngineRun {
  readonly request: EngineRequest;
  readonly sink: EngineSink;
  readonly pages: number;
  produced = 0;
  acknowledged = 0;
  aborts = 0;
  started = false;
  ended = false;
  released = false;
  readonly #engine: EchoEngine;

  constructor(engine: EchoEngine, request: EngineRequest, sink: EngineSink, pages: number) {
    this.#engine = engine;
    this.request = request;
    this.sink = sink;
    this.pages = pages;
  }

  abort(): void {
    this.aborts++;
    this.#engine.wake();
  }

  acknowledge(tokens: number): void {
    assert(tokens >= this.acknowledged && tokens <= this.produced, 'what is acknowledged was produced, and only grows');
    this.acknowledged = tokens;
    this.#engine.wake();
  }
}

export class EchoEngine implements EnginePort {
  readonly #clock: Clock;
  readonly #description: EngineDescription;
  /** Runs wait before this phase. */
  hold: 'nothing' | 'prefill' | 'decode' = 'nothing';
  /** Aborted runs do not end until it is false again. */
  holdAborted = false;
  /** Ended runs keep their pages until it is false again. */
  holdRelease = false;
  lie: EchoLie | null = null;
  /** The next run that gets to decode fails so. */
  failWith: { readonly guard: GuardName; readonly message: string } | null = null;
  readonly runs: EchoRun[] = [];
  runningPeak = 0;
  leasedPeakTokens = 0;
  closed = false;
  #awake = false;

  constructor(options: EchoOptions) {
    this.#clock = options.clock;
    this.#description = {
      model: options.model ?? 'lab',
      version: 'echo',
      context: options.context ?? 256,
      prefillPool: options.prefillPool ?? 512,
      decodePool: options.decodePool ?? 1024,
      pageTokens: options.pageTokens ?? 16,
      runningMax: options.runningMax ?? 8,
    };
  }

  describe(): EngineDescription {
    return this.#description;
  }

  submit(request: EngineRequest, sink: EngineSink): EchoRun {
    const stored = request.prompt.length + request.maxTokens - 1;
    const run = new EchoRun(this, request, sink, Math.ceil(stored / this.#description.pageTokens));
    this.runs.push(run);
    this.runningPeak = Math.max(
      this.runningPeak,
      this.#count((each) => !each.ended),
    );
    const held = this.runs.reduce((pages, each) => pages + (each.released ? 0 : each.pages), 0);
    this.leasedPeakTokens = Math.max(this.leasedPeakTokens, held * this.#description.pageTokens);
    this.wake();
    return run;
  }

  wake(): void {
    if (this.#awake) return;
    this.#awake = true;
    this.#clock.soon(() => {
      this.#awake = false;
      this.#turn();
    });
  }

  stats(): EngineStats {
    const { decodePool, prefillPool, pageTokens } = this.#description;
    const leased = this.runs.reduce((pages, each) => pages + (each.ended ? 0 : each.pages), 0);
    const draining = this.runs.reduce((pages, each) => pages + (each.ended && !each.released ? each.pages : 0), 0);
    const total = Math.floor(decodePool / pageTokens);
    const prefillTotal = Math.floor(prefillPool / pageTokens);
    return {
      prefillPages: { free: prefillTotal, leased: 0, draining: 0, sealed: 0, total: prefillTotal },
      decodePages: { free: total - leased - draining, leased, draining, sealed: 0, total },
      running: this.#count((run) => !run.ended),
      pagesVerified: this.runs.length,
      tagsChecked: 0,
      landingsRefused: 0,
      guardHits: Object.fromEntries(GUARDS.map((guard) => [guard, 0])) as Record<GuardName, number>,
      findings: [],
    };
  }

  close(): Promise<void> {
    this.closed = true;
    return Promise.resolve();
  }

  #count(test: (run: EchoRun) => boolean): number {
    return this.runs.reduce((count, run) => count + (test(run) ? 1 : 0), 0);
  }

  /** One step of every run, as continuous batching has it. */
  #turn(): void {
    let more = false;
    for (const run of this.runs) if (!run.released && this.#step(run)) more = true;
    if (more) this.wake();
  }

  /** Whether the run may go on without anybody's doing. */
  #step(run: EchoRun): boolean {
    if (run.ended) return this.#release(run);
    if (run.aborts > 0) return this.holdAborted ? false : this.#end(run, 'aborted', null);
    if (this.hold === 'prefill') return false;
    if (!run.started) {
      run.started = true;
      run.sink.started(this.lie?.early === false ? undefined : this.#counts(run));
      return true;
    }
    if (this.hold === 'decode') return false;
    if (this.failWith !== null) return this.#end(run, 'failed', null);
    const { prompt, maxTokens } = run.request;
    if (run.produced === maxTokens) return this.#end(run, 'finished', 'length');
    if (run.produced === prompt.length) return this.#end(run, 'finished', 'stop');
    if (run.produced - run.acknowledged >= ECHO_AHEAD_TOKENS) return false;
    const id = prompt[run.produced]!;
    run.produced++;
    run.sink.token(id);
    return true;
  }

  #counts(run: EchoRun): { promptTokens: number; prefillTokens: number } {
    const length = run.request.prompt.length;
    return {
      promptTokens: this.lie?.promptTokens ?? length,
      prefillTokens: this.lie?.prefillTokens ?? length,
    };
  }

  #end(run: EchoRun, outcome: EngineEnd['outcome'], finishReason: 'stop' | 'length' | null): boolean {
    run.ended = true;
    const failed = outcome === 'failed' ? this.failWith : null;
    this.failWith = null;
    run.sink.end({
      outcome,
      finishReason,
      ...this.#counts(run),
      completionTokens: this.lie?.completionTokens ?? run.produced,
      cachedTokens: 0,
      error: failed === null ? null : { code: 'engine_failed', message: failed.message, detail: 'for operators' },
      guard: failed?.guard ?? null,
      handle: `echo-${this.runs.indexOf(run)}`,
    });
    return true;
  }

  #release(run: EchoRun): boolean {
    if (this.holdRelease) return false;
    run.released = true;
    run.sink.released();
    return false;
  }
}
