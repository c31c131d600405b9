/** What holds when no flag says otherwise. Sizes are in tokens. */
export const DEFAULT_HOST = '127.0.0.1';
export const DEFAULT_PORT = 8080;
export const DEFAULT_OPS_PORT = 8081;
/** The engine alone listens where SGLang does, whose dialect it speaks. */
export const DEFAULT_ENGINE_PORT = 30000;
export const DEFAULT_CONTEXT_TOKENS = 4096;
/** An exported lab model declares what its construction is tried up to. */
export const DEFAULT_LAB_CONTEXT_TOKENS = 8192;
export const DEFAULT_PREFILL_POOL_TOKENS = 8192;
export const DEFAULT_DECODE_POOL_TOKENS = 16384;
export const DEFAULT_PAGE_TOKENS = 16;
export const DEFAULT_RUNNING_MAX = 32;
export const DEFAULT_SEED = 1;

/** A context of one token would hold a prompt or an answer, not both. */
export const CONTEXT_TOKENS_MIN = 2;
export const CONTEXT_TOKENS_MAX: number = 1024 ** 2;
/** A pool is one stretch of memory; above this its page numbers and sizes leave what is tested. */
export const POOL_TOKENS_MAX: number = 16 * 1024 ** 2;
export const PAGE_TOKENS_MIN = 8;
export const PAGE_TOKENS_MAX = 256;
export const RUNNING_MAX_MAX = 1024;
/** Tenants of one process; each has queues and counters of its own. */
export const TENANTS_MAX = 1000;
export const TENANT_NAME_CHARACTERS_MAX = 63;
export const KEY_CHARACTERS_MAX = 512;
export const SEED_MAX: number = 2 ** 32 - 1;
/** What Linux takes for a path, in bytes. */
export const PATH_CHARACTERS_MAX = 4095;
/** Addresses of engines behind one gateway. */
export const NODES_MAX = 64;
/** Tokens that an engine may be said to hold: far above any that is known. */
export const ENGINE_TOKENS_MAX: number = 1024 ** 3;
/** Requests that an engine may be said to run at once. */
export const ENGINE_RUNNING_MAX_MAX = 65_536;
/** A long prompt is prefilled before the first byte. */
export const FIRST_BYTE_MS_MAX = 300_000;
export const IDLE_MS_MAX = 60_000;
/** Processes that share one port. */
export const WORKERS_MAX = 64;
