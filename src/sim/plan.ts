/** What a seed stands for: the sizes of its world, the troubles in it and how often each comes. */
import { Prng } from '../base/prng.js';
import { type EngineConfig, engineConfig } from '../engine/config.js';
import { CATALOGUE, type FaultName } from '../handoff/faults.js';

/** What can be left out of a world, one by one: `--without`, and what shrinking tries. */
export const TROUBLES = [
  'loss',
  'repeats',
  'reordering',
  'late-writes',
  'aborts',
  'prefill-restarts',
  'decode-restarts',
  'handles',
  'rooms',
  'prefixes',
  'oversized',
  'pauses',
] as const;
export type Trouble = (typeof TROUBLES)[number];

export function isTrouble(name: string): name is Trouble {
  return (TROUBLES as readonly string[]).includes(name);
}

export interface SimOptions {
  readonly seed: number;
  /** Steps of the scheduler, before it lets everything come to rest. */
  readonly steps: number;
  /** Requests at most; they end sooner where the steps do. */
  readonly requests: number;
  readonly fault: FaultName | null;
  /** Bits; null: by default all, and with a fault all but those that stop it. */
  readonly guards: number | null;
  readonly without: readonly Trouble[];
}

export const STEPS_DEFAULT = 30_000;
export const REQUESTS_DEFAULT = 600;

/** Probabilities are in 1/65536 a step or a message, so that a draw is compared as a whole number. */
export interface Plan {
  readonly config: EngineConfig;
  readonly steps: number;
  readonly requests: number;
  /** Requests that are open at once, those that wait included. */
  readonly openMax: number;
  readonly tenants: number;
  readonly promptTokensMax: number;
  readonly outputTokensMax: number;
  readonly loss: number;
  readonly repeats: number;
  /** Letters of a channel among which the next one is chosen. */
  readonly reorderWindow: number;
  /** How often a write that could land does, each time it is asked. */
  readonly landing: number;
  /** Of an eighth of the writes: so much more seldom. */
  readonly straggling: number;
  readonly aborts: number;
  /** Requests that leave together. */
  readonly stormMax: number;
  readonly prefillRestarts: number;
  readonly decodeRestarts: number;
  readonly handles: number;
  readonly rooms: number;
  /** Prompts that begin with a text that others begin with too. */
  readonly prefixes: number;
  /** Writes whose payload never comes; only with the fault `torn-write`. */
  readonly tears: number;
  /** Steps on which a long time passes. */
  readonly pauses: number;
}

const ALWAYS = 65_536;
const PAGE_TOKENS = [1, 4, 16, 16] as const;
const RUNNING = [1, 2, 3, 4, 8, 16, 32, 64] as const;
/** Faults that need writes which are late, pages that are soon somebody else's, and answers that are read meanwhile. */
const LATE_FAULTS: readonly FaultName[] = ['reuse-before-drain', 'timeout-authorises-reuse', 'unfenced-restart'];
/** Pages of a whole context. */
const CONTEXT_PAGES = 8;

export function planOf(options: SimOptions): Plan {
  const { fault, guards } = options;
  const chance = new Prng(options.seed);
  const isIn = (trouble: Trouble): boolean => !options.without.includes(trouble);
  // Each is drawn whether or not it is used, so that what is left out moves nothing else.
  const drawn = (trouble: Trouble, odds: number, ...of: readonly number[]): number => {
    const has = chance.chance(odds);
    const value = chance.pick(of);
    return has && isIn(trouble) ? value : 0;
  };
  const isLate = fault !== null && LATE_FAULTS.includes(fault);
  const pageTokens = chance.pick(PAGE_TOKENS);
  const runningMax = chance.pick(isLate ? [4, 8] : RUNNING);
  const context = CONTEXT_PAGES * pageTokens;
  const promptPagesMax = chance.between(2, 5);
  const chunkTokens = pageTokens * chance.pick([1, 1, 2, 4]);
  // From a pool that holds one request at a time to one that is never full.
  const decodePages = promptPagesMax + 1 + chance.below(1 + Math.min(runningMax, isLate ? 3 : 24) * promptPagesMax);
  const prefillAsked = promptPagesMax + chance.below(1 + 3 * promptPagesMax);
  const needsOversized = fault !== null && CATALOGUE[fault].needsSmallPrefill;
  const oversized = drawn('oversized', needsOversized ? 1 : 0.25, 1);
  const prefillPages = oversized > 0 ? Math.max(1, promptPagesMax - 1 - chance.below(2)) : prefillAsked;
  const prefixes = drawn('prefixes', fault === null ? 0.3 : 0.8, ALWAYS / 4, ALWAYS / 2, ALWAYS - 2000);
  const base = engineConfig({
    faults: fault === null ? [] : [fault],
    seed: options.seed >>> 0,
    ...(guards === null ? {} : { guards }),
  });
  return {
    config: {
      ...base,
      context,
      pageTokens,
      runningMax,
      chunkTokens,
      prefillPool: prefillPages * pageTokens,
      decodePool: decodePages * pageTokens,
      prefixCache: base.prefixCache && prefixes > 0,
    },
    steps: options.steps,
    requests: options.requests,
    openMax: 2 + runningMax + chance.below(1 + runningMax),
    tenants: chance.pick([1, 2, 2, 3]),
    promptTokensMax: promptPagesMax * pageTokens,
    outputTokensMax: chance.pick(isLate ? [6, 6, pageTokens + 2] : [1, 3, 6, pageTokens + 2]),
    loss: drawn('loss', 0.6, 300, 1500, 6000),
    repeats: drawn('repeats', 0.6, 300, 1500, 6000),
    reorderWindow: 1 + drawn('reordering', 0.7, 1, 3, 7),
    landing: isIn('late-writes') ? chance.pick(isLate ? [4000, 1000, 300] : [ALWAYS, 40_000, 12_000, 4000]) : ALWAYS,
    straggling: isIn('late-writes') ? (isLate ? 64 : chance.pick([1, 4, 16])) : 1,
    aborts: drawn('aborts', isLate ? 1 : 0.7, 100, 400, isLate ? 800 : 1500),
    stormMax: chance.pick(isLate ? [1, 2, 4] : [1, 1, 8, 64]),
    prefillRestarts: drawn('prefill-restarts', fault === 'retry-keeps-attempt' || isLate ? 1 : 0.5, 10, 30, 100),
    decodeRestarts: drawn('decode-restarts', 0.4, 10, 30, 60),
    handles: drawn('handles', 0.3, 2000, 12_000),
    rooms: drawn('rooms', 0.3, 4000, 20_000),
    prefixes,
    tears: fault === 'torn-write' ? 6000 : 0,
    pauses: drawn('pauses', 0.5, 20, 100),
  };
}
