import type { PagePool } from './pool.js';
import { compareTag, type OwnerKind, TAG_OWN, type TagVerdict } from './tag.js';

/** Pages by state. Invariant: free + leased + draining + sealed = total. */
export interface PageStateCounts {
  readonly free: number;
  readonly leased: number;
  readonly draining: number;
  readonly sealed: number;
  readonly total: number;
}

/** Conservation. Null where every page is in exactly one state; else what is wrong, in words. */
export function everyPageIsCounted(counts: PageStateCounts, pool: { readonly pages: number }): string | null {
  const { free, leased, draining, sealed, total } = counts;
  for (const [name, count] of Object.entries({ free, leased, draining, sealed })) {
    if (!Number.isInteger(count) || count < 0) return `the count of ${name} pages is ${count}`;
  }
  if (total !== pool.pages) return `the ledger counts ${total} pages, the pool has ${pool.pages}`;
  const sum = free + leased + draining + sealed;
  if (sum === total) return null;
  return `${free} free + ${leased} leased + ${draining} draining + ${sealed} sealed pages are ${sum}, the pool has ${total}`;
}

/** What the ledger says must stand in a page's header. */
export interface TagExpectation {
  readonly ownerKind: OwnerKind;
  readonly owner: number;
  /** Not compared for a sealed page. */
  readonly attempt: number;
  readonly incarnation: number;
  readonly epoch: number;
  readonly place: number;
  readonly filledMin: number;
}

export interface TagDisagreement {
  readonly page: number;
  readonly verdict: TagVerdict;
}

/**
 * Compares pages `first … first + count - 1` with what `expect` says; the first that disagrees, or null. `expect` answers null
 * for a page of which nothing is expected (free, draining, leased and not yet written), and may use one object again and again.
 */
export function tagsAgree(
  pool: PagePool,
  first: number,
  count: number,
  expect: (page: number) => TagExpectation | null,
): TagDisagreement | null {
  const end = Math.min(first + count, pool.pages);
  for (let page = first; page < end; page++) {
    const e = expect(page);
    if (e === null) continue;
    const at = page * pool.pageWords;
    const { words } = pool;
    const verdict = compareTag(
      words,
      at,
      e.ownerKind,
      e.owner,
      e.attempt,
      e.incarnation,
      e.epoch,
      e.place,
      e.filledMin,
    );
    if (verdict !== TAG_OWN) return { page, verdict };
  }
  return null;
}
