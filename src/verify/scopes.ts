/**
 * The named scopes. Each is a few worlds that are explored whole, one after the other: a world in which everything may go wrong at once
 * would be too large to finish, and each pair of troubles that has to meet does meet in one of them.
 */
import { CATALOGUE, type FaultName } from '../handoff/faults.js';
import { type HandoffScope, scopeInWords } from './models/handoff-scope.js';

export type World = Omit<HandoffScope, 'rules'>;

export interface NamedWorld {
  readonly title: string;
  readonly world: World;
}

export interface Scope {
  readonly name: ScopeName;
  readonly words: string;
  readonly worlds: readonly NamedWorld[];
}

export const SCOPE_NAMES = [
  'small',
  'default',
  'large',
  'faults',
  'alone',
  'oversized',
  'restarts',
  'retries',
  'handles',
  'prefixes',
] as const;
export type ScopeName = (typeof SCOPE_NAMES)[number];

export function isScopeName(name: string): name is ScopeName {
  return (SCOPE_NAMES as readonly string[]).includes(name);
}

const A = { tenant: 1, pages: 1, hash: 1 } as const;
const B = { tenant: 2, pages: 1, hash: 1 } as const;
/** A prompt of two pages, computed in two chunks. */
const LONG_A = { tenant: 1, pages: 2, hash: 1 } as const;

/** Two tenants' requests, of which only one at a time fits into prefill. The wire holds two messages: more are lost. */
const TWO: World = {
  requests: [A, B],
  slots: 2,
  prefillPages: 1,
  decodePages: 2,
  limit: 7,
  retries: 0,
  aborts: 0,
  losses: 0,
  repeats: 0,
  prefillCrashes: 0,
  decodeCrashes: 0,
  abandons: 0,
  handles: 0,
  tears: 0,
  prefixes: false,
  messagesMax: 2,
};
const ONE: World = { ...TWO, requests: [A], slots: 1, decodePages: 1 };
/** One page of decode, so that what one request gives back is what the other gets. */
const TIGHT: World = { ...TWO, decodePages: 1 };
/** A third request comes when a slot is free again, so slots are used by one tenant after another. */
const THREE: World = { ...TWO, requests: [A, B, { ...A, hash: 2 }] };
const LONG: World = { ...TWO, requests: [LONG_A, B], prefillPages: 2, decodePages: 3 };
const PREFIXES: World = { ...TWO, requests: [A, B, A], slots: 1, prefixes: true };

const SCOPES: Readonly<Record<ScopeName, Omit<Scope, 'name'>>> = {
  small: {
    words: 'seconds: one request among every trouble, two requests over one page, shared prefixes',
    worlds: [
      {
        title: 'one request, a lost and a repeated message, an abort',
        world: { ...ONE, losses: 1, repeats: 1, aborts: 1, messagesMax: 3 },
      },
      {
        title: 'one request, both nodes restart, a retry',
        world: { ...ONE, prefillCrashes: 1, decodeCrashes: 1, retries: 1 },
      },
      { title: 'two requests over one page, an abort', world: { ...TIGHT, aborts: 1 } },
      { title: 'shared prefixes', world: PREFIXES },
    ],
  },
  default: {
    words: 'two tenants, two or three requests, every trouble, each world whole',
    worlds: [
      {
        title: 'prompts of two chunks and one, both clients may leave, a prefill gives up',
        world: { ...LONG, aborts: 2, abandons: 1 },
      },
      {
        title: 'a message is lost and one repeated, a client leaves',
        world: { ...TWO, losses: 1, repeats: 1, aborts: 1 },
      },
      { title: 'prefill restarts, a client leaves', world: { ...TWO, prefillCrashes: 1, aborts: 1 } },
      { title: 'decode restarts, both may try again', world: { ...TWO, decodeCrashes: 1, retries: 1 } },
      { title: 'three requests over a full pool, a client leaves', world: { ...THREE, decodePages: 1, aborts: 1 } },
      {
        title: 'one request, both nodes restart, a message is lost and one repeated',
        world: { ...ONE, prefillCrashes: 1, decodeCrashes: 1, losses: 1, repeats: 1, retries: 1, aborts: 1 },
      },
      {
        title: 'prefill refuses what the gateway let through',
        world: { ...TWO, requests: [LONG_A, B], aborts: 1, losses: 1 },
      },
      { title: 'shared prefixes, two at once', world: { ...PREFIXES, slots: 2, decodePages: 1 } },
    ],
  },
  large: {
    words:
      'one large world, in minutes: prompts of two chunks and one, both clients may leave, a loss, a restart of prefill, a prefill gives up',
    worlds: [
      {
        title: 'everything about prefill at once',
        world: { ...LONG, aborts: 2, abandons: 1, prefillCrashes: 1, losses: 1 },
      },
    ],
  },
  faults: {
    words: 'two tenants in transfer at once, prompts of two chunks and one, a client leaves',
    worlds: [{ title: 'two tenants in transfer', world: { ...LONG, prefillPages: 3, decodePages: 4, aborts: 1 } }],
  },
  alone: {
    words: 'one request of two chunks whose prefill gives up, whose client leaves, of which a write may be torn',
    worlds: [
      {
        title: 'one request alone',
        world: {
          ...ONE,
          requests: [LONG_A],
          prefillPages: 2,
          decodePages: 3,
          aborts: 1,
          abandons: 1,
          losses: 1,
          tears: 1,
          messagesMax: 3,
        },
      },
    ],
  },
  oversized: {
    words: 'a prompt that decode could hold and prefill cannot',
    worlds: [{ title: 'too long for prefill', world: { ...TWO, requests: [LONG_A, B], limit: 1 } }],
  },
  restarts: {
    words: 'two requests over one page of decode, prefill restarts',
    worlds: [{ title: 'prefill restarts', world: { ...TIGHT, prefillPages: 1, prefillCrashes: 1 } }],
  },
  retries: {
    words: 'one request that tries again, prefill restarts, a message is repeated',
    worlds: [
      { title: 'a second attempt', world: { ...ONE, prefillCrashes: 1, retries: 1, repeats: 1, messagesMax: 3 } },
    ],
  },
  handles: {
    words: 'two requests, one of which may name a page by a handle',
    worlds: [{ title: 'a handle', world: { ...TWO, handles: 1 } }],
  },
  prefixes: {
    words: 'three requests of two tenants with the same first page, sealed, shared and evicted',
    worlds: [{ title: 'shared prefixes', world: PREFIXES }],
  },
};

export function scopeOf(name: ScopeName): Scope {
  return { name, ...SCOPES[name] };
}

/** The scope in which a fault can be seen. */
export function scopeOfFault(fault: FaultName): ScopeName {
  const { scope } = CATALOGUE[fault];
  return scope !== undefined && isScopeName(scope) ? scope : 'faults';
}

/** One line a world: what it is called, and its bounds. */
export function worldInWords({ title, world }: NamedWorld): string {
  return `${title}: ${scopeInWords({ ...world, rules: { faults: 0, guards: 0 } })}`;
}
