import type { ErrorCode } from '../base/errors.js';
import type { GuardName } from '../handoff/guards.js';

/**
 * One engine (or pair of engines) as the gateway sees it. One contract, one set of cases (`test/cases/upstream.ts`), many
 * implementations. Nothing here names a tenant's key, a room or a URL.
 */
export interface Upstream {
  describe(): UpstreamDescription;
  /** What every node said of its size, and where. Unknown is `null`, never a guess. */
  capacity(): Capacity;
  /** Whether it can take requests at all just now. It says nothing of trust: that is the gateway's rotation. */
  health(): UpstreamHealth;
  /** The rendered prompt's tokens, template included, as the engine will count them. Throws CodedError where it can't be counted. */
  count(prompt: Prompt): PromptCount;
  /** Sends one admitted request. Throws nothing: every failure is an `end` event. */
  start(request: UpstreamRequest, sink: UpstreamSink): UpstreamRun;
  /** One token through the whole path; resolves with what went wrong, or null. */
  selfTest(signal: AbortSignal): Promise<string | null>;
  close(): Promise<void>;
}

export interface UpstreamDescription {
  readonly kind: string;
  readonly models: readonly string[];
  /** Requests that the upstream runs at once; more wait at the gateway. */
  readonly runningMax: number;
  /** What a request may ask of it beyond plain text. @default none */
  readonly features?: ReadonlySet<UpstreamFeature>;
  /**
   * A name of the tokenizer and template that it counts with. Upstreams that say the same name count every prompt alike, so a prompt
   * is counted once for all of them. @default its own
   */
  readonly counting?: string;
  /**
   * Whether the tokens said with each piece are exact. Where not, as where one event of a stream may hold several tokens, the usage
   * at the end is what counts. @default true
   */
  readonly exactPieces?: boolean;
}

/**
 * `sampling`: top_p, penalties, logit_bias. `tools`: tools, tool_choice, tool calls in answers. `response-format`: JSON and schemas.
 * `logprobs`. `reasoning`: reasoning apart from content, and its effort. `data-parts`: images and files in the request itself, never
 * by URL.
 */
export type UpstreamFeature = 'sampling' | 'tools' | 'response-format' | 'logprobs' | 'reasoning' | 'data-parts';

/**
 * `unreachable`: no node answers. `stalled`: it answers, and what waits in it makes no progress. `changed`: it is no longer what it
 * was, such as another model, and is read again.
 */
export type UpstreamHealth =
  | { readonly isUp: true }
  | { readonly isUp: false; readonly reason: 'unreachable' | 'stalled' | 'changed'; readonly words: string };

/**
 * Tokens of a prompt. With `bounds`, `least <= exact <= most` holds for certain; `exact` counts once, however often it is called, and
 * rejects with CodedError where it can't be known.
 */
export type PromptCount =
  | { readonly kind: 'exact'; readonly tokens: number }
  | {
      readonly kind: 'bounds';
      readonly least: number;
      readonly most: number;
      readonly exact: () => Promise<number>;
    };

export type NodeRole = 'prefill' | 'decode' | 'single' | 'router' | 'unknown';

export interface NodeCapacity {
  readonly node: string;
  readonly role: NodeRole;
  /** Tokens; null: not known. */
  readonly advertised: number | null;
  readonly pool: number | null;
  readonly acceptLimit: number | null;
  readonly source: string;
  readonly atMs: number;
}

export interface Capacity {
  readonly nodes: readonly NodeCapacity[];
  /** The configured context; nothing changes it. */
  readonly context: number | null;
  readonly prefillPool: number | null;
  readonly decodePool: number | null;
  readonly pageTokens: number;
}

export type Prompt =
  | {
      readonly kind: 'chat';
      readonly messages: readonly { readonly role: string; readonly content: string }[];
      /** Only with features beyond text: what `messages`, which then hold the text alone, leave out. */
      readonly rich?: RichChat;
    }
  | { readonly kind: 'text'; readonly text: string };

/** A chat in OpenAI's own fields, checked by the request policy: what an engine gets, and all that a template may write. */
export interface RichChat {
  /** Tool calls, their results, reasoning and parts of content included. As many as the prompt's `messages`. */
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  /** Empty: none. They are in the request's `params` too, and templates write them into the prompt. */
  readonly tools: readonly unknown[];
  /** `tool_choice`, `parallel_tool_calls`, `reasoning_effort`, `response_format`, where given: a template may read them. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** Whether a part is no text: only an engine can count such a prompt. */
  readonly hasData: boolean;
}

export interface UpstreamRequest {
  /** What an engine may call the request: 32 hex digits, made for it alone, and known to no client. */
  readonly id: string;
  /** A span of our own, in the client's trace or a new one (W3C Trace Context); all that an engine gets of a client's headers. */
  readonly traceparent: string;
  readonly prompt: Prompt;
  /** Tokens of the prompt as counted here, or the most that it can have: for spreading load over nodes. @default not known */
  readonly promptTokens?: number;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly seed: number;
  /** The owner in the page ledgers: 1 and up, one per tenant. */
  readonly tenant: number;
  /** HMAC(secret, tenant), fixed-length hex; empty with the guard `salt` off. */
  readonly salt: string;
  /** Fields of the tenant's body that the policy knows and the upstream's features allow, verbatim. @default none */
  readonly params?: Readonly<Record<string, unknown>>;
  /** Fields of the body that only an engine may set, verbatim; empty unless the guard `policy` is off. */
  readonly engineFields: Readonly<Record<string, unknown>>;
  /** False: the tenant reads the answer whole, so an engine may be asked for it whole. @default true */
  readonly streamed?: boolean;
}

/** Exactly one `end`, then exactly one `released`, when the upstream holds nothing of the request any more. */
export interface UpstreamSink {
  /**
   * Prefill is done and decode has verified it: the first token follows. `counts` lets the gateway compare before anything
   * leaves; null where the upstream says them only at the end.
   */
  started(counts: PromptCounts | null): void;
  /** Text as it comes; whole characters only. */
  text(piece: string, tokens: number): void;
  /** All else that an answer may hold, in order with its text. Only where the request asked for what brings it. */
  piece(piece: AnswerPiece, tokens: number): void;
  end(end: UpstreamEnd): void;
  released(): void;
}

/**
 * `text`: text with the probabilities of its tokens. `tool-call`: a further piece of the call `index` (0 and up); its id and name come
 * once, with its first piece, and are null after it. Everything in it is text of the engine's and goes through the guard of streams.
 */
export type AnswerPiece =
  | { readonly kind: 'text'; readonly text: string; readonly logprobs: readonly TokenLogprob[] }
  | { readonly kind: 'reasoning'; readonly text: string }
  | { readonly kind: 'refusal'; readonly text: string }
  | {
      readonly kind: 'tool-call';
      readonly index: number;
      readonly id: string | null;
      readonly name: string | null;
      /** A piece of a JSON text. */
      readonly arguments: string;
    };

/** One token of the answer with its natural-log probability (0 or less), and the likeliest at its place. */
export interface TokenLogprob {
  readonly token: string;
  readonly logprob: number;
  readonly top: readonly { readonly token: string; readonly logprob: number }[];
}

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter';

export type UpstreamEnd =
  | {
      readonly kind: 'finished';
      readonly finishReason: FinishReason;
      readonly usage: UpstreamUsage;
      /** Fields that the engine puts into its answer, such as transfer handles; they pass only with the guard `policy` off. */
      readonly engineAnswer?: Readonly<Record<string, unknown>>;
    }
  | { readonly kind: 'aborted' /** As far as it got; null: not said. */; readonly usage: UpstreamUsage | null }
  | {
      readonly kind: 'failed';
      readonly code: ErrorCode;
      /** In the engine's or the adapter's words. It stays here: the tenant gets the gateway's own words for the code. */
      readonly message: string;
      /** For the operators, who see only its known words: an engine may quote a prompt. */
      readonly detail: string;
      /** The guard that stopped it, where one did. */
      readonly guard: GuardName | null;
      /** No byte of an answer came: the connection was refused, cut, or quiet. An answer with an error status is none. @default false */
      readonly isTransport?: boolean;
    };

export interface PromptCounts {
  /** Decode's count; null where it has not said it yet. The usage at the end always says it. */
  readonly promptTokens: number | null;
  /** Prefill's own count; null where the upstream has no prefill to ask. */
  readonly prefillTokens: number | null;
}

export interface UpstreamUsage extends PromptCounts {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Of the prompt, tokens from the tenant's own prefix cache; null where the upstream does not say. */
  readonly cachedTokens: number | null;
}

export interface UpstreamRun {
  /** The nodes that have the request, by the names of `Capacity.nodes`. @default not said */
  readonly nodes?: readonly string[];
  /** Ends the request; `end` follows (kind `aborted` unless it was over already), then `released`. */
  abort(): void;
  /**
   * How many tokens of output the reader has taken since the start, in all (never less than said before); the upstream stops
   * ahead of it by a bounded number.
   */
  acknowledge(tokens: number): void;
}
