import type { Clock } from '../base/clock.js';
import type { CodedError, ErrorCode } from '../base/errors.js';
import { effectiveLimit } from '../handoff/admission.js';
import type { Capacity, PromptCounts, UpstreamEnd } from '../upstream/upstream.js';
import type { Route } from '../wire/index.js';
import type { Interval } from './tally.js';
import { isCount } from './verdict.js';

/** How far a request had come. `prefill`: sent to an engine, before its first text; `decode`: after it. */
export type RequestPhase = 'reading' | 'counting' | 'waiting' | 'prefill' | 'decode';

/**
 * What became of one request of a tenant, once nothing is held for it any more: what an analysis of exposure needs, and never a byte
 * of text. Tokens are null where nobody said them, and what an engine said that is no count is null too.
 */
export interface Settlement {
  /** Its id in the answer's body. */
  readonly id: string;
  /** What the engine was told to call it; null: it never left. */
  readonly engineId: string | null;
  readonly tenant: string;
  readonly route: Route;
  /** Null: it had not been read. */
  readonly model: string | null;
  /** The engine's name; null: none was chosen. */
  readonly engine: string | null;
  /** The engine's nodes that had it, where that is known. */
  readonly nodes: readonly string[];
  /** Our own count; `least` and `most` differ where the exact number was not known by the end. */
  readonly counted: Interval | null;
  /** Of output, granted. */
  readonly maxTokens: number | null;
  /** Tokens of output that came, as they were said piece by piece. */
  readonly came: number;
  /** The engine's own counts. */
  readonly said: {
    readonly decode: number | null;
    readonly prefill: number | null;
    readonly completion: number | null;
    readonly cached: number | null;
  };
  /** What was known of the engine's size when the request was admitted; null: it was not. */
  readonly limits: {
    readonly context: number | null;
    readonly prefillPool: number | null;
    readonly decodePool: number | null;
    readonly effective: number | null;
  } | null;
  /** `refused`: before it was sent; `failed`: after; `aborted`: its client left. */
  readonly outcome: 'finished' | 'refused' | 'failed' | 'aborted';
  /** Null: it finished. */
  readonly code: ErrorCode | null;
  /** Where an aborted one was; null: it was not aborted. */
  readonly abortPhase: RequestPhase | null;
  /** Milliseconds since 1970. */
  readonly arrivedAtMs: number;
  /** Milliseconds after the arrival, of a clock that never goes back; null: it did not come to that. */
  readonly dispatchedMs: number | null;
  readonly firstTextMs: number | null;
  /** The end of its answer. */
  readonly endedMs: number;
  /** The engine holds nothing of it any more. */
  readonly releasedMs: number | null;
}

/** Gathers what becomes of one request, and says it once: when its answer has ended and no engine holds anything of it. */
export class Settling {
  readonly #clock: Clock;
  readonly #settled: (settlement: Settlement) => void;
  readonly #about: Pick<Settlement, 'id' | 'tenant' | 'route'>;
  readonly #arrivedMs: number;
  readonly #arrivedAtMs: number;
  #phase: RequestPhase = 'reading';
  #model: string | null = null;
  #engine: string | null = null;
  #engineId: string | null = null;
  #nodes: readonly string[] = [];
  #counted: Interval | null = null;
  #maxTokens: number | null = null;
  #came = 0;
  #limits: Settlement['limits'] = null;
  #said: Settlement['said'] = { decode: null, prefill: null, completion: null, cached: null };
  #dispatchedMs: number | null = null;
  #firstTextMs: number | null = null;
  #releasedMs: number | null = null;
  /** Called when it is settled, with the tokens that it used: of its prompt, if it was sent, and of output. */
  onUsed: ((tokens: number) => void) | null = null;
  #end: Pick<Settlement, 'outcome' | 'code' | 'abortPhase' | 'endedMs'> | null = null;

  constructor(
    clock: Clock,
    about: Pick<Settlement, 'id' | 'tenant' | 'route'>,
    arrivedMs: number,
    settled: (settlement: Settlement) => void,
  ) {
    this.#clock = clock;
    this.#settled = settled;
    this.#about = about;
    this.#arrivedMs = arrivedMs;
    this.#arrivedAtMs = clock.wallMs() - (clock.nowMs() - arrivedMs);
  }

  read(model: string): void {
    this.#model = model;
    this.#phase = 'counting';
  }

  /** It is to wait at this engine for its turn, which may be at once. */
  admitted(engine: string, counted: Interval, maxTokens: number, capacity: Capacity): void {
    const { context, prefillPool, decodePool } = capacity;
    this.#phase = 'waiting';
    this.#engine = engine;
    this.#counted = counted;
    this.#maxTokens = maxTokens;
    this.#limits = { context, prefillPool, decodePool, effective: effectiveLimit(capacity)?.tokens ?? null };
  }

  /** It was refused for its length. */
  counted(counted: Interval): void {
    this.#counted = counted;
  }

  dispatched(engineId: string): void {
    this.#phase = 'prefill';
    this.#engineId = engineId;
    this.#dispatchedMs = this.#sinceArrival();
  }

  atNodes(nodes: readonly string[] | undefined): void {
    this.#nodes = nodes ?? this.#nodes;
  }

  firstText(): void {
    this.#phase = 'decode';
    this.#firstTextMs = this.#sinceArrival();
  }

  said({ promptTokens, prefillTokens }: PromptCounts): void {
    this.#said = { ...this.#said, decode: countOf(promptTokens), prefill: countOf(prefillTokens) };
  }

  /** The engine's end of it; so many tokens of output came. */
  upstreamEnded(end: UpstreamEnd, came: number): void {
    this.#came = came;
    if (end.kind === 'failed' || end.usage === null) return;
    this.said(end.usage);
    const { completionTokens, cachedTokens } = end.usage;
    this.#said = { ...this.#said, completion: countOf(completionTokens), cached: countOf(cachedTokens) };
  }

  released(): void {
    this.#releasedMs = this.#sinceArrival();
    this.#tell();
  }

  /** The answer has ended; null: well. */
  answered(error: CodedError | null): void {
    const isAborted = error?.code === 'client_closed_request';
    this.#end = {
      outcome: error === null ? 'finished' : isAborted ? 'aborted' : this.#dispatchedMs === null ? 'refused' : 'failed',
      code: error?.code ?? null,
      abortPhase: isAborted ? this.#phase : null,
      endedMs: this.#sinceArrival(),
    };
    this.#tell();
  }

  get #used(): number {
    if (this.#dispatchedMs === null) return 0;
    return (this.#counted?.most ?? 0) + Math.max(this.#came, this.#said.completion ?? 0);
  }

  #sinceArrival(): number {
    return this.#clock.nowMs() - this.#arrivedMs;
  }

  #tell(): void {
    if (this.#end === null || (this.#dispatchedMs !== null && this.#releasedMs === null)) return;
    this.onUsed?.(this.#used);
    this.#settled({
      ...this.#about,
      engineId: this.#engineId,
      model: this.#model,
      engine: this.#engine,
      nodes: this.#nodes,
      counted: this.#counted === null ? null : { least: this.#counted.least, most: this.#counted.most },
      maxTokens: this.#maxTokens,
      came: this.#came,
      said: this.#said,
      limits: this.#limits,
      ...this.#end,
      arrivedAtMs: this.#arrivedAtMs,
      dispatchedMs: this.#dispatchedMs,
      firstTextMs: this.#firstTextMs,
      releasedMs: this.#releasedMs,
    });
  }
}

function countOf(value: unknown): number | null {
  return isCount(value) ? value : null;
}
