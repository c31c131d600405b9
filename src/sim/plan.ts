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

/** Draws of one seed, of which some may be left out. */
class Draws {
  readonly chance: Prng;
  readonly #without: readonly Trouble[];

  constructor({ seed, without }: SimOptions) {
    this.chance = new Prng(seed);
    this.#without = without;
  }

  /** One of `of`, with the odds given; else, or where the trouble is left out, `otherwise`. What is left out moves no other draw. */
  of(trouble: Trouble, odds: number, of: readonly number[], otherwise = 0): number {
    const has = this.chance.chance(odds);
    const value = this.chance.pick(of);
    return has && !this.#without.includes(trouble) ? value : otherwise;
  }
}

interface Sizes {
  readonly config: EngineConfig;
  readonly promptPagesMax: number;
  readonly prefixes: number;
}

/** From a pool that holds one request at a time to one that is never full; prefill's and decode's are drawn apart. */
function sizesOf({ seed, fault, guards }: SimOptions, draws: Draws, isLate: boolean): Sizes {
  const { chance } = draws;
  const pageTokens = chance.pick(PAGE_TOKENS);
  const runningMax = chance.pick(isLate ? [4, 8] : RUNNING);
  const promptPagesMax = chance.between(2, 5);
  const chunkTokens = pageTokens * chance.pick([1, 1, 2, 4]);
  const decodePages = promptPagesMax + 1 + chance.below(1 + Math.min(runningMax, isLate ? 3 : 24) * promptPagesMax);
  const prefillAsked = promptPagesMax + chance.below(1 + 3 * promptPagesMax);
  const needsOversized = fault !== null && CATALOGUE[fault].needsSmallPrefill;
  const missing = draws.of('oversized', needsOversized ? 1 : 0.25, [1, 2]);
  const prefillPages = missing > 0 ? Math.max(1, promptPagesMax - missing) : prefillAsked;
  const prefixes = draws.of('prefixes', fault === null ? 0.3 : 0.8, [ALWAYS / 4, ALWAYS / 2, ALWAYS - 2000]);
  const zeroOnRelease = chance.chance(0.2) && fault === null;
  const faults = fault === null ? [] : [fault];
  const base = engineConfig({ faults, seed: seed >>> 0, zeroOnRelease, ...(guards === null ? {} : { guards }) });
  const config = {
    ...base,
    context: CONTEXT_PAGES * pageTokens,
    pageTokens,
    runningMax,
    chunkTokens,
    prefillPool: prefillPages * pageTokens,
    decodePool: decodePages * pageTokens,
    prefixCache: base.prefixCache && prefixes > 0,
  };
  return { config, promptPagesMax, prefixes };
}

export function planOf(options: SimOptions): Plan {
  const { fault, steps, requests } = options;
  const draws = new Draws(options);
  const { chance } = draws;
  const isLate = fault !== null && LATE_FAULTS.includes(fault);
  const { config, promptPagesMax, prefixes } = sizesOf(options, draws, isLate);
  const { pageTokens, runningMax } = config;
  return {
    config,
    steps,
    requests,
    prefixes,
    openMax: 2 + runningMax + chance.below(1 + runningMax),
    tenants: chance.pick([1, 2, 2, 3]),
    promptTokensMax: promptPagesMax * pageTokens,
    outputTokensMax: chance.pick(isLate ? [6, 6, pageTokens + 2] : [1, 3, 6, pageTokens + 2]),
    loss: draws.of('loss', 0.6, [300, 1500, 6000]),
    repeats: draws.of('repeats', 0.6, [300, 1500, 6000]),
    reorderWindow: draws.of('reordering', 0.7, [2, 4, 8], 1),
    landing: draws.of('late-writes', 1, isLate ? [4000, 1000, 300] : [ALWAYS, 40_000, 12_000, 4000], ALWAYS),
    straggling: draws.of('late-writes', 1, isLate ? [64] : [1, 4, 16], 1),
    aborts: draws.of('aborts', isLate ? 1 : 0.7, [100, 400, isLate ? 800 : 1500]),
    stormMax: chance.pick(isLate ? [1, 2, 4] : [1, 1, 8, 64]),
    prefillRestarts: draws.of('prefill-restarts', fault === 'retry-keeps-attempt' || isLate ? 1 : 0.5, [10, 30, 100]),
    decodeRestarts: draws.of('decode-restarts', 0.4, [10, 30, 60]),
    handles: draws.of('handles', 0.3, [2000, 12_000]),
    rooms: draws.of('rooms', 0.3, [4000, 20_000]),
    tears: fault === 'torn-write' ? 6000 : 0,
    pauses: draws.of('pauses', 0.5, [20, 100]),
  };
}
