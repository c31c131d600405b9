/**
 * What a reader makes of one text that an engine, a router or a person wrote: facts, each with the line it stands on. Readers
 * are pure; who calls them knows where the text came from. A fact never holds a key: readers put `SECRET` in its place.
 */
import type { NodeRole } from './upstream.js';

export const ENGINES = [
  'sglang',
  'vllm',
  'llamacpp',
  'cofferdam',
  'sglang-router',
  'sglang-mini-lb',
  'vllm-router',
  'llmd-sidecar',
  'llmd-epp',
  'dynamo',
  'tensorrt-llm',
  'lmcache',
  'mooncake',
  /** What Dynamo keeps its workers and their messages in. */
  'nats',
  'etcd',
] as const;

/** What runs on a node. Routers and caches are nodes too: their flags decide who reaches the engines. */
export type EngineName = (typeof ENGINES)[number];

/** Stands for the value of a key, wherever one was read. */
export const SECRET = '(set)';

/** What a line of a log gives away beyond figures. The readers hold the texts of every version that are looked for. */
export const LOG_SIGNS = [
  /** SGLang 0.5.23: `KV pool holds N tokens, fewer than --context-length M`. */
  'pool-below-context-warning',
  /** SGLang: `Input length (…) exceeds the maximum allowed length`: a request was refused for its length. */
  'length-refused',
  /** SGLang: `Deferred KV release … timed out … releasing anyway`. */
  'deferred-release-timeout',
  /** SGLang: `KV checksum mismatch`. */
  'checksum-mismatch',
  /** SGLang: `KV checksum skipped`. */
  'checksum-skipped',
  /** SGLang: the periodic `[canary] step=…` line. */
  'canary-alive',
  /** SGLang: `attach_canary_buffers`. */
  'canary-installed',
  /** SGLang: `kv_canary violation`, `KV cache canary violation detected`. */
  'canary-violation',
  /** SGLang: `KVPoll.WaitingForInput` timed out: decode waited for a prefill that never spoke. */
  'decode-wait-timeout',
  /** SGLang: `Prefill transfer failed`, `Decode transfer failed`, `Decode handshake failed`, `Prefill bootstrap failed`. */
  'transfer-failed',
  /** SGLang: `Metadata corruption detected`, `Context corruption detected`. */
  'metadata-corruption',
  /** SGLang: page size, dtype or layout of the two sides differ. */
  'pair-mismatch',
  /** SGLang: `EXPERIMENTAL: Radix cache is enabled for decode server`. */
  'decode-radix-cache',
  /** vLLM: `Potentially invalid KV blocks for unrecognized request`. */
  'invalid-blocks-read',
  /** vLLM: `Releasing expired KV blocks for request`. */
  'lease-expired',
  /** vLLM: `Overriding num_gpu_blocks=`. */
  'block-count-overridden',
  /** vLLM: `Auto-fit max_model_len: reduced from`. */
  'context-auto-fitted',
  /** vLLM: the start was refused, since the context does not fit the pool. */
  'start-refused-for-pool',
  /** vLLM: dev mode routes or the warning about them. */
  'dev-mode',
  /** LMCache: fewer tokens came back than were asked for. */
  'retrieved-too-few',
  /** llama-server: `failed to find a memory slot`, `failed to find free space in the KV cache`. */
  'pool-exhausted',
  /** llama-server: `Context size has been exceeded`: every running request ended. */
  'all-requests-ended',
  /** llama-server: `no API key is set and CORS allows all origins`. */
  'no-key-any-origin',
  /** llama-server: `purging slot`. */
  'slot-purged',
  /** llm-d sidecar: `missing 'kv_transfer_params' field in prefiller response`. */
  'handle-missing',
] as const;

export type LogSign = (typeof LOG_SIGNS)[number];

/** How a set of flags was written: by a person who starts it, or as the running engine resolved it. */
export type FlagForm = 'given' | 'resolved';

/** vLLM's `--kv-transfer-config`, without what is not looked at. */
export interface KvTransferConfig {
  readonly connector: string;
  /** `kv_producer`, `kv_consumer`, `kv_both`; null: not said. */
  readonly role: string | null;
  readonly loadFailurePolicy: string | null;
  readonly ip: string | null;
  readonly port: number | null;
  /** Scalars of `kv_connector_extra_config`, as text. */
  readonly extra: Readonly<Record<string, string>>;
  /** Connectors inside a MultiConnector, outermost first. */
  readonly inner: readonly string[];
}

/** Tokens throughout. `rank`: the data-parallel rank that said it; null: said for the node. */
export type Fact = { readonly line?: number } & (
  | { readonly kind: 'version'; readonly text: string }
  | { readonly kind: 'role'; readonly role: NodeRole }
  | { readonly kind: 'model'; readonly name: string }
  | { readonly kind: 'architecture'; readonly name: string }
  /** `host:port` that the node listens on. */
  | { readonly kind: 'listens'; readonly host: string; readonly port: number }
  /** The largest context that the node tells its clients. */
  | { readonly kind: 'advertised'; readonly tokens: number }
  /** What one request can fill at most on this rank; `estimate`: an older or hybrid engine's printed figure. */
  | { readonly kind: 'pool'; readonly tokens: number; readonly rank: string | null; readonly estimate: boolean }
  /** The pool is at most this: a flag caps it. */
  | { readonly kind: 'pool-cap'; readonly tokens: number }
  | { readonly kind: 'pool-swa'; readonly tokens: number; readonly rank: string | null }
  /** The node spoke of its pool without a figure, such as vLLM's `"None"`. */
  | { readonly kind: 'pool-unsaid'; readonly why: string }
  /** The smallest prompt length that is refused, as the node itself says it. */
  | { readonly kind: 'refused-from'; readonly tokens: number }
  | { readonly kind: 'page'; readonly tokens: number }
  /** llama-server: `contextEach` is what one slot takes; `unified`: the slots share one pool. */
  | {
      readonly kind: 'slots';
      readonly count: number;
      readonly contextEach: number | null;
      readonly unified: boolean | null;
    }
  | { readonly kind: 'context-trained'; readonly tokens: number }
  /** vLLM: how many requests of full length fit at once. */
  | { readonly kind: 'concurrency'; readonly times: number; readonly rank: string | null }
  /** Canonical name without dashes in front; null: resolved to nothing. */
  | { readonly kind: 'flag'; readonly name: string; readonly value: string | null; readonly form: FlagForm }
  /** Every flag was there to be read: what is not named has its default. */
  | { readonly kind: 'flags-complete'; readonly form: FlagForm }
  /** A value of null: it is set, to what is not known here. */
  | { readonly kind: 'variable'; readonly name: string; readonly value: string | null }
  /** Every variable whose name begins so was there to be read. */
  | { readonly kind: 'variables-complete'; readonly prefix: string }
  | { readonly kind: 'sign'; readonly sign: LogSign }
  | {
      readonly kind: 'sample';
      readonly name: string;
      readonly labels: Readonly<Record<string, string>>;
      readonly value: number;
    }
  /** The answer shows a key in clear in this field. */
  | { readonly kind: 'key-shown'; readonly field: string }
  | { readonly kind: 'transfer-config'; readonly config: KvTransferConfig }
  /** A route that the node says it serves. */
  | { readonly kind: 'route'; readonly path: string }
  | { readonly kind: 'ready' }
);

export type FactKind = Fact['kind'];

/** One text, read. `engine` null: the text is of a known kind but names no engine. */
export interface Reading {
  readonly engine: EngineName | null;
  readonly facts: readonly Fact[];
}
