/** What a start has to tell: the two numbers of every node, and what follows from them. */
import { effectiveLimit } from '../handoff/admission.js';
import type { Rules } from '../handoff/layout.js';
import type { Capacity } from '../upstream/upstream.js';
import type { TenantOption } from './keys.js';
import type { ServingEngine, ServingEngines } from './serving-engines.js';

export interface StartFacts {
  readonly url: string;
  readonly opsUrl: string;
  /** Tokens, as all sizes here; of the engine with the smallest limit. */
  readonly advertised: number;
  readonly prefillPool: number;
  readonly decodePool: number;
  readonly effectiveLimit: number;
  readonly limitedBy: string;
  readonly tenants: readonly { readonly name: string; readonly keyFingerprint: string }[];
  readonly rules: Rules;
  /** Engines that are there; empty: the embedded one. */
  readonly engines: readonly EngineFacts[];
}

export interface EngineFacts {
  readonly name: string;
  readonly kind: string;
  readonly models: readonly string[];
  /** By what prompts are counted. */
  readonly counted: string;
  readonly nodes: readonly NodeFacts[];
  readonly effectiveLimit: number;
  readonly limitedBy: string;
}

export interface NodeFacts {
  readonly node: string;
  readonly role: string;
  readonly advertised: number | null;
  readonly pool: number | null;
}

/** What may be shown of a key: the first digits of its SHA-256. */
const FINGERPRINT_DIGITS = 12;

export function startFacts(
  urls: { readonly url: string; readonly opsUrl: string },
  tenants: readonly TenantOption[],
  engines: ServingEngines,
): StartFacts {
  const tightest = engines.list
    .map(({ upstream }) => upstream.capacity())
    .reduce((least, each) => (limitOf(each).tokens < limitOf(least).tokens ? each : least));
  const limit = limitOf(tightest);
  return {
    ...urls,
    advertised: tightest.context ?? 0,
    prefillPool: tightest.prefillPool ?? 0,
    decodePool: tightest.decodePool ?? 0,
    effectiveLimit: limit.tokens,
    limitedBy: limit.limitedBy,
    tenants: tenants.map(({ name, keys }) => ({
      name,
      keyFingerprint: keys[0]?.sha256.slice(0, FINGERPRINT_DIGITS) ?? '',
    })),
    rules: engines.rules,
    engines: engines.list.flatMap((engine) => (engine.counted === null ? [] : [engineFacts(engine, engine.counted)])),
  };
}

function engineFacts({ name, upstream }: ServingEngine, counted: string): EngineFacts {
  const { kind, models } = upstream.describe();
  const capacity = upstream.capacity();
  const { tokens, limitedBy } = limitOf(capacity);
  const nodes = capacity.nodes.map(({ node, role, advertised, pool }) => ({ node, role, advertised, pool }));
  return { name, kind, models, counted, nodes, effectiveLimit: tokens, limitedBy };
}

/** What is not known admits nothing. */
function limitOf(capacity: Capacity): { readonly tokens: number; readonly limitedBy: string } {
  return effectiveLimit(capacity) ?? { tokens: 0, limitedBy: 'number that is not known' };
}
