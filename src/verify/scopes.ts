/** The named worlds of `cofferdam verify`, and the one in which each fault is looked for. */
import type { FaultName } from '../handoff/faults.js';
import type { HandoffScope } from './models/handoff-scope.js';

export type Bounds = Omit<HandoffScope, 'rules'>;

/** One slot, used by two tenants in turn: every use of a page has a use by somebody else before or behind it. */
const TURNS: Bounds = {
  requests: [
    { tenant: 1, pages: 1, hash: 1 },
    { tenant: 2, pages: 1, hash: 2 },
  ],
  slots: 1,
  prefillPages: 1,
  decodePages: 2,
  limit: 1,
  retries: 0,
  aborts: 1,
  losses: 0,
  repeats: 0,
  prefillCrashes: 0,
  decodeCrashes: 0,
  abandons: 0,
  handles: 0,
  tears: 0,
  prefixes: false,
  messagesMax: 4,
};

/** A prompt of two chunks, and one of one. */
const CHUNKS: Bounds = {
  ...TURNS,
  requests: [
    { tenant: 1, pages: 2, hash: 1 },
    { tenant: 2, pages: 1, hash: 2 },
  ],
  prefillPages: 2,
  limit: 2,
};

/** A prompt that prefill's pool cannot hold. */
const TOO_LONG: Bounds = { ...CHUNKS, prefillPages: 1, limit: 1 };
const TOGETHER: Bounds = { ...TURNS, slots: 2, aborts: 0, messagesMax: 5 };
const RESTART: Bounds = { ...TURNS, aborts: 0, prefillCrashes: 1 };
const RETRY: Bounds = { ...RESTART, requests: [{ tenant: 1, pages: 1, hash: 1 }], retries: 1, repeats: 1 };
const SHARED: Bounds = {
  ...TURNS,
  requests: [
    { tenant: 1, pages: 2, hash: 1 },
    { tenant: 2, pages: 2, hash: 1 },
  ],
  aborts: 0,
  prefillPages: 3,
  decodePages: 3,
  limit: 2,
  prefixes: true,
};

export const SCOPES = {
  /** Seconds; in every test run. */
  small: TURNS,
  /** What `cofferdam verify` explores unless told otherwise: under a minute on two cores. */
  default: { ...CHUNKS, decodePages: 3, losses: 1, prefillCrashes: 1 },
  faults: { ...TURNS, messagesMax: 6 },
  chunks: CHUNKS,
  'too-long': TOO_LONG,
  together: TOGETHER,
  restart: RESTART,
  retry: RETRY,
  handles: { ...TOGETHER, handles: 1 },
  torn: { ...TURNS, tears: 1 },
  'given-up': { ...CHUNKS, abandons: 1 },
  prefixes: SHARED,
  collision: { ...SHARED, requests: [SHARED.requests[0], { tenant: 2, pages: 2, hash: 2 }] },
  /** More than 40 million states: not run to its end. */
  large: { ...TURNS, losses: 1, repeats: 1, prefillCrashes: 1, messagesMax: 5 },
} as const satisfies Readonly<Record<string, Bounds>> as Readonly<Record<ScopeName, Bounds>>;

export type ScopeName =
  | 'small'
  | 'default'
  | 'faults'
  | 'chunks'
  | 'too-long'
  | 'together'
  | 'restart'
  | 'retry'
  | 'handles'
  | 'torn'
  | 'given-up'
  | 'prefixes'
  | 'collision'
  | 'large';

export const SCOPE_NAMES: readonly ScopeName[] = Object.keys(SCOPES) as ScopeName[];

/** Where a fault's trigger can happen; `faults` where nothing more is needed. */
export const FAULT_SCOPES: Readonly<Record<FaultName, ScopeName>> = {
  'rejected-stays-alive': 'too-long',
  'count-unchecked': 'chunks',
  'silent-abort': 'given-up',
  'reuse-before-drain': 'faults',
  'timeout-authorises-reuse': 'faults',
  'room-collision': 'together',
  'stale-handle': 'handles',
  'retry-keeps-attempt': 'retry',
  'unfenced-restart': 'restart',
  'torn-write': 'torn',
  'unannounced-rejection': 'too-long',
  'unsalted-prefix': 'prefixes',
  'prefix-hash-collision': 'collision',
};
