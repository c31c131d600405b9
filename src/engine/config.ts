import { CodedError } from '../base/errors.js';
import { FAULTS, type FaultName, guardsAgainst } from '../handoff/faults.js';
import { ALL_GUARDS } from '../handoff/guards.js';
import type { Rules } from '../handoff/layout.js';
import { FAULT } from '../handoff/rules.js';

/** Everything that the engine's threads need to know; plain data, so that it can be posted. */
export interface EngineConfig {
  /** Tokens. What is advertised; nothing changes it. */
  readonly context: number;
  /** Tokens; whole pages. */
  readonly prefillPool: number;
  readonly decodePool: number;
  readonly pageTokens: number;
  /** Requests in the engine at once. */
  readonly runningMax: number;
  /** Tokens that prefill computes before it looks at its messages again; whole pages. */
  readonly chunkTokens: number;
  readonly rules: Rules;
  readonly seed: number;
  /** A drain that takes longer raises an alarm. */
  readonly drainAlarmMs: number;
  readonly kernels: 'wasm' | 'reference';
  /** Whether finished prompts leave sealed pages behind for the tenant's next ones. */
  readonly prefixCache: boolean;
  /** Whether a page's bytes are overwritten with zeros when it goes back. */
  readonly zeroOnRelease: boolean;
}

export interface EngineOptions {
  readonly context?: number;
  readonly prefillPool?: number;
  readonly decodePool?: number;
  readonly pageTokens?: number;
  readonly runningMax?: number;
  readonly faults?: readonly FaultName[];
  /** Bits of guards that are on; by default all but those that stop the faults. */
  readonly guards?: number;
  readonly seed?: number;
  readonly kernels?: 'wasm' | 'reference';
  /** Default: on, but with a fault that leaks through pages that were given back, which sealed pages would hide. */
  readonly prefixCache?: boolean;
  /** @default false */
  readonly zeroOnRelease?: boolean;
}

const CONTEXT_DEFAULT = 4096;
const PREFILL_POOL_DEFAULT = 8192;
const DECODE_POOL_DEFAULT = 16_384;
const PAGE_TOKENS_DEFAULT = 16;
const RUNNING_DEFAULT = 32;
/** Long enough to keep the kernels busy, short enough that an abort is seen within some 50 ms. */
const CHUNK_TOKENS = 256;
/** A landing takes microseconds; half a minute of draining means that something is broken. */
const DRAIN_ALARM_MS = 30_000;
/** With the fault `timeout-authorises-reuse` the timer is what frees, so it is short enough to be met in a test. */
const DRAIN_ALARM_FAULTY_MS = 20;
/** Faults of the prefix cache itself. */
const PREFIX_FAULTS: readonly FaultName[] = ['unsalted-prefix', 'prefix-hash-collision'];
/** A pool is one WebAssembly memory of at most 4 GiB; at 4 KiB a token that is about a million tokens. */
const POOL_TOKENS_MAX = 900_000;
const RUNNING_MAX = 1024;

export function engineConfig(options: EngineOptions = {}): EngineConfig {
  const faults = options.faults ?? [];
  const context = options.context ?? CONTEXT_DEFAULT;
  const pageTokens = options.pageTokens ?? PAGE_TOKENS_DEFAULT;
  const needsSmallPrefill = faults.some((name) => name === 'rejected-stays-alive' || name === 'unannounced-rejection');
  const smallPool = Math.max(pageTokens, Math.floor(context / 2 / pageTokens) * pageTokens);
  const prefillPool = options.prefillPool ?? (needsSmallPrefill ? smallPool : PREFILL_POOL_DEFAULT);
  const decodePool = options.decodePool ?? DECODE_POOL_DEFAULT;
  const runningMax = options.runningMax ?? RUNNING_DEFAULT;
  if (!Number.isInteger(pageTokens) || pageTokens < 8 || pageTokens > 256 || (pageTokens & (pageTokens - 1)) !== 0) {
    throw new CodedError(
      'usage',
      `Expected \`--page-size\` to be a power of two from 8 to 256, got \`${pageTokens}\`.`,
    );
  }
  whole('--context', context, 2, POOL_TOKENS_MAX);
  whole('--prefill-pool', prefillPool, pageTokens, POOL_TOKENS_MAX);
  whole('--decode-pool', decodePool, pageTokens, POOL_TOKENS_MAX);
  whole('--max-running', runningMax, 1, RUNNING_MAX);
  return {
    context,
    prefillPool: wholePages('--prefill-pool', prefillPool, pageTokens),
    decodePool: wholePages('--decode-pool', decodePool, pageTokens),
    pageTokens,
    runningMax,
    chunkTokens: Math.max(CHUNK_TOKENS, pageTokens),
    rules: { faults: bitsOf(faults), guards: options.guards ?? ALL_GUARDS & ~guardsAgainst(faults) },
    seed: options.seed ?? 1,
    drainAlarmMs: faults.includes('timeout-authorises-reuse') ? DRAIN_ALARM_FAULTY_MS : DRAIN_ALARM_MS,
    kernels: options.kernels ?? 'wasm',
    prefixCache: options.prefixCache ?? faults.every((name) => PREFIX_FAULTS.includes(name)),
    zeroOnRelease: options.zeroOnRelease ?? false,
  };
}

function whole(flag: string, value: number, least: number, most: number): void {
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw new CodedError(
    'usage',
    `Expected \`${flag}\` to be a whole number from ${least} to ${most}, got \`${value}\`.`,
  );
}

function wholePages(flag: string, tokens: number, pageTokens: number): number {
  if (tokens % pageTokens === 0) return tokens;
  throw new CodedError(
    'usage',
    `Expected \`${flag}\` to be a multiple of the page size ${pageTokens}, got \`${tokens}\`; the next smaller one is ${tokens - (tokens % pageTokens)}.`,
  );
}

function bitsOf(faults: readonly FaultName[]): number {
  return faults.reduce((bits, name) => bits | (1 << FAULTS.indexOf(name)), 0);
}

export function hasFault(rules: Rules, fault: FaultName): boolean {
  return ((rules.faults >> FAULT[fault]) & 1) === 1;
}

export const pagesFor = (tokens: number, pageTokens: number): number => Math.ceil(tokens / pageTokens);

/** Most places of one request: the context, or a whole pool where that is smaller. */
export function pagesPerSlot(config: EngineConfig): number {
  return pagesFor(config.context, config.pageTokens);
}
