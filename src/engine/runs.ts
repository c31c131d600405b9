/** Requests that decode, the page that each writes to next, and the handles of those that are over. */
import { assert } from '../base/assert.js';
import { Prng } from '../base/prng.js';
import { getSlot, listAt, PG, pageAt, type View } from '../handoff/layout.js';
import type { LeaseIdentity } from '../kv/read-guard.js';
import type { PagePool } from '../kv/pool.js';
import { newPageTag, OWNER_LEASE, setFilled, WRITER_DECODE, writeTag } from '../kv/tag.js';
import type { PageTable } from './page-checks.js';
import type { Payload } from './traffic.js';

/** A request that decodes. */
export interface Run extends PageTable {
  readonly slot: number;
  readonly attempt: number;
  readonly chance: Prng;
  readonly temperature: number;
  readonly maxTokens: number;
  /** The end-of-sequence token ends nothing and is sent like any other. */
  readonly ignoreEos: boolean;
  /** The token to feed next, and where its KV goes. */
  token: number;
  position: number;
  produced: number;
  acknowledged: number;
}

/** The pages that a slot holds, copied, and their epochs. */
export function pagesOf(view: View, slot: number): { readonly pages: Int32Array; readonly epochs: Int32Array } {
  const list = listAt(view, slot, 0);
  const pages = Int32Array.from(view.cells.subarray(list, list + getSlot(view, slot, 'held')));
  return { pages, epochs: pages.map((page) => view.cells[pageAt(view, page) + PG.epoch] ?? 0) };
}

/** Where a handle replaced the transfer, the prompt's last token is fed first. */
export function newRun(
  view: View,
  slot: number,
  identity: LeaseIdentity,
  output: Payload & { kind: 'output' },
  pageTokens: number,
): Run {
  const { prompt, sampling } = output;
  const tokens = getSlot(view, slot, 'tokens');
  const { pages, epochs } = pagesOf(view, slot);
  return {
    slot,
    attempt: identity.attempt,
    identity,
    pages,
    epochs,
    chance: new Prng(sampling.seed + 1),
    temperature: sampling.temperature,
    maxTokens: Math.min(sampling.maxTokens, pages.length * pageTokens - tokens + 1),
    ignoreEos: sampling.ignoreEos,
    token: prompt[prompt.length - 1] ?? 0,
    position: getSlot(view, slot, 'attached') === 1 ? tokens - 1 : tokens,
    produced: 0,
    acknowledged: 0,
  };
}

/** The page in which the next token's KV goes carries the request's tag before the step writes to it. */
export function claimPage(pool: PagePool, run: Run, incarnation: number, step: number): void {
  const { pageTokens } = pool.geometry;
  const place = Math.floor(run.position / pageTokens);
  const page = run.pages[place];
  assert(page !== undefined, 'a lease has a page for every token that was admitted');
  const filled = (run.position % pageTokens) + 1;
  if (filled > 1) return setFilled(pool, page, filled);
  const tag = newPageTag();
  tag.ownerKind = OWNER_LEASE;
  tag.owner = run.slot;
  tag.attempt = run.attempt;
  tag.incarnation = incarnation;
  tag.epoch = run.epochs[place] ?? 0;
  tag.place = place;
  tag.filled = filled;
  tag.writer = WRITER_DECODE;
  tag.writtenAtStep = step;
  writeTag(pool, page, tag);
}

/** Finished leases whose pages a handle could still name; for the fault `stale-handle` alone. */
const HANDLES_MAX = 256;

type PageList = readonly (readonly [page: number, epoch: number])[];

/** Handles as engines give them out: each names pages that may by now be anybody's. */
export class HandleBook {
  readonly #pages = new Map<string, PageList>();

  remember(run: Run, incarnation: number): void {
    const pages = Array.from(run.pages, (page, place) => [page, run.epochs[place] ?? 0] as const);
    this.#pages.set(`${run.slot}.${run.attempt}.${incarnation}`, pages);
    if (this.#pages.size <= HANDLES_MAX) return;
    for (const oldest of this.#pages.keys()) {
      this.#pages.delete(oldest);
      return;
    }
  }

  pagesOf(handle: string): PageList {
    return this.#pages.get(handle) ?? [];
  }
}
