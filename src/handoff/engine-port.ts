import type { ErrorCode } from '../base/errors.js';
import type { GuardName } from './guards.js';

/** What the embedded engine offers; `cli/` hands the real one to the adapter, so that `upstream/` imports no engine. */
export interface EnginePort {
  describe(): EngineDescription;
  /** A refusal may reach the sink before this returns. */
  submit(request: EngineRequest, sink: EngineSink): EngineRun;
  /** Pages and counters now. */
  stats(): EngineStats;
  close(): Promise<void>;
}

export interface EngineDescription {
  readonly model: string;
  readonly version: string;
  readonly context: number;
  /** Tokens. */
  readonly prefillPool: number;
  readonly decodePool: number;
  readonly pageTokens: number;
  readonly runningMax: number;
}

export interface EngineRequest {
  /** Owner in the ledgers: 1 and up. */
  readonly tenant: number;
  readonly salt: string;
  /** Token ids. */
  readonly prompt: Int32Array;
  readonly maxTokens: number;
  /** 0: greedy. */
  readonly temperature: number;
  readonly seed: number;
  /** The bootstrap room that joins the two legs; null: the engine draws one. */
  readonly room: bigint | null;
  /** A transfer handle that the caller holds; honoured only by a fault, refused by the guard `lease`. */
  readonly handle: string | null;
  /** Goes on behind the end-of-text token, which is then a token like any other. @default false */
  readonly ignoreEos?: boolean;
}

/** Exactly one `end`, then exactly one `released`. */
export interface EngineSink {
  /** `counts`, where the engine has them by now: both roles' own counts of the prompt, as in `EngineEnd`. */
  started(counts?: EngineCounts): void;
  token(id: number): void;
  end(end: EngineEnd): void;
  released(): void;
}

export interface EngineCounts {
  readonly promptTokens: number;
  readonly prefillTokens: number;
  /** Tokens of the prompt that came from sealed pages; absent where the engine does not say. */
  readonly cachedTokens?: number;
}

export interface EngineEnd {
  readonly outcome: 'finished' | 'refused' | 'failed' | 'aborted';
  readonly finishReason: 'stop' | 'length' | null;
  /** Decode's own count of the prompt. */
  readonly promptTokens: number;
  /** Prefill's own count of the prompt. */
  readonly prefillTokens: number;
  readonly completionTokens: number;
  /** Tokens of the prompt that came from sealed pages of the request's own tenant. */
  readonly cachedTokens: number;
  readonly error: { readonly code: ErrorCode; readonly message: string; readonly detail: string } | null;
  readonly guard: GuardName | null;
  /** The transfer handle of the finished request, as engines return it to whoever may call prefill. */
  readonly handle: string;
}

export interface EngineRun {
  abort(): void;
  /** Tokens of output that the reader has taken since the start, in all. */
  acknowledge(tokens: number): void;
}

export interface PageCounts {
  readonly free: number;
  readonly leased: number;
  readonly draining: number;
  readonly sealed: number;
  readonly total: number;
}

export interface EngineStats {
  readonly prefillPages: PageCounts;
  readonly decodePages: PageCounts;
  readonly running: number;
  /** Requests that wait for a slot; absent where none can wait. */
  readonly waiting?: number;
  /** Pages whose checksum was compared at commit. */
  readonly pagesVerified: number;
  /** Tags compared by the read guard. */
  readonly tagsChecked: number;
  /** Landings refused because their registration was revoked. */
  readonly landingsRefused: number;
  readonly guardHits: Readonly<Record<GuardName, number>>;
  readonly findings: readonly EngineFinding[];
  /** Sealed pages of decode's pool by the tenant that alone can hit them, those above 0; absent where the engine does not say. */
  readonly sealedByTenant?: ReadonlyMap<number, number>;
  /** How far the sweep over each pool got; absent where there is none. */
  readonly sweep?: Readonly<Record<'prefill' | 'decode', SweepCounts>>;
}

export interface SweepCounts {
  /** Pages held against the ledger, whole rounds over the pool, and writes that no lease explains. */
  readonly pages: number;
  readonly passes: number;
  readonly findings: number;
}

/** What the engine noticed: numbers and names, never text. */
export interface EngineFinding {
  /** `sweep`: nobody read the page yet; it was found by looking. */
  readonly guard: GuardName | 'sweep';
  readonly words: string;
  readonly atMs: number;
}
