/** An upstream under the operator's own numbers, which lower what it says and stand in where it says nothing, and by what it counts. */
import type { Capacity, Upstream, UpstreamDescription } from '../../upstream/upstream.js';

export interface Dress {
  /** Tokens; null: none. */
  readonly context: number | null;
  readonly pool: number | null;
  /** The same for upstreams that count alike; null: it counts by itself. */
  readonly counting: string | null;
  /** Requests may hold images and files, as data. */
  readonly dataParts: boolean;
}

export function dressed(upstream: Upstream, { context, pool, counting, dataParts }: Dress): Upstream {
  const own: Partial<Upstream> = {
    capacity: (): Capacity => {
      const said = upstream.capacity();
      return {
        ...said,
        context: lesser(said.context, context),
        prefillPool: lesser(said.prefillPool, pool),
        decodePool: lesser(said.decodePool, pool),
      };
    },
    describe: (): UpstreamDescription => {
      const said = upstream.describe();
      return {
        ...said,
        ...(counting === null ? {} : { counting }),
        ...(dataParts ? { features: new Set([...(said.features ?? []), 'data-parts' as const]) } : {}),
      };
    },
  };
  // The adapters are classes with state of their own: all other methods stay theirs.
  return new Proxy(upstream, {
    get(target, name) {
      if (Object.hasOwn(own, name)) return own[name as keyof Upstream];
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

/** The lesser of what is known. */
function lesser(said: number | null, own: number | null): number | null {
  if (said === null || own === null) return said ?? own;
  return Math.min(said, own);
}
