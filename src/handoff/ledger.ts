/**
 * Who owns each page of a pool. Free pages hang in a list through `next` (page + 1; 0 ends it), last freed first, so that taking
 * and giving back are O(1) a page. A page that goes back gets a new epoch: whatever was meant for the old owner no longer fits.
 */
import { assert } from '../base/assert.js';
import { FREE_COUNT, FREE_HEAD, PageState, PG, pageAt, type View } from './layout.js';

export function freeCount(view: View): number {
  return view.cells[view.at + FREE_COUNT];
}

/** Takes a free page for `slot`. The caller has compared with `freeCount`. */
export function takePage(view: View, slot: number): number {
  const { cells, at } = view;
  const head = cells[at + FREE_HEAD];
  assert(head > 0, 'a page was taken from an empty free list');
  const page = head - 1;
  const cell = pageAt(view, page);
  assert(cells[cell + PG.state] === PageState.free, 'a page in the free list was not free');
  cells[at + FREE_HEAD] = cells[cell + PG.next];
  cells[at + FREE_COUNT]--;
  cells[cell + PG.state] = PageState.leased;
  cells[cell + PG.owner] = slot + 1;
  cells[cell + PG.next] = 0;
  return page;
}

/** Gives a page back, under a new epoch. */
export function freePage(view: View, page: number): void {
  const { cells, at } = view;
  const cell = pageAt(view, page);
  assert(cells[cell + PG.state] !== PageState.free, 'a page was freed twice');
  cells[cell + PG.state] = PageState.free;
  cells[cell + PG.owner] = 0;
  cells[cell + PG.epoch]++;
  cells[cell + PG.next] = cells[at + FREE_HEAD];
  cells[at + FREE_HEAD] = page + 1;
  cells[at + FREE_COUNT]++;
  if (view.shape.prefixes) cells.fill(0, cell + PG.refs, cell + PG.hash + 1);
}

/** Marks the slot's own pages [from, to) of the list at `list` as draining: still owned, not to be reused. */
export function drainPages(view: View, list: number, from: number, to: number): void {
  for (let place = from; place < to; place++) {
    view.cells[pageAt(view, view.cells[list + place]) + PG.state] = PageState.draining;
  }
}

/** Frees the slot's own pages [from, to) of the list at `list`, last place first, and clears the list. */
export function freePages(view: View, list: number, from: number, to: number): void {
  for (let place = to - 1; place >= from; place--) {
    freePage(view, view.cells[list + place]);
    view.cells[list + place] = 0;
  }
}

/** Seals a leased page: from now on it belongs to the tenant, and may be shared inside it. */
export function sealPage(view: View, page: number, tenant: number, salt: number, hash: number): void {
  const { cells } = view;
  const cell = pageAt(view, page);
  assert(view.shape.prefixes, 'this record has no room for sealed pages');
  assert(cells[cell + PG.state] === PageState.leased, 'only a leased page can be sealed');
  cells[cell + PG.state] = PageState.sealed;
  cells[cell + PG.owner] = 0;
  cells[cell + PG.refs] = 0;
  cells[cell + PG.tenant] = tenant;
  cells[cell + PG.salt] = salt;
  cells[cell + PG.hash] = hash;
}

/** Lets go of shared prefix pages [0, prefix) of the list at `list`. */
export function dropPrefix(view: View, list: number, prefix: number): void {
  for (let place = 0; place < prefix; place++) {
    const cell = pageAt(view, view.cells[list + place]);
    assert(view.cells[cell + PG.refs] > 0, 'a sealed page lost a reference that it did not have');
    view.cells[cell + PG.refs]--;
    view.cells[list + place] = 0;
  }
}

/** A sealed page that nobody reads goes back to the free list. False: it is not sealed, or somebody reads it. */
export function evictPage(view: View, page: number): boolean {
  if (!view.shape.prefixes || page < 0 || page >= view.shape.pages) return false;
  const cell = pageAt(view, page);
  if (view.cells[cell + PG.state] !== PageState.sealed || view.cells[cell + PG.refs] !== 0) return false;
  freePage(view, page);
  return true;
}

export interface PageTotals {
  free: number;
  leased: number;
  draining: number;
  sealed: number;
}

/** Counts sealed pages by tenant into `counts`, whose index is the tenant's number; those of higher numbers are left out. */
export function countSealed(view: View, counts: Int32Array): void {
  counts.fill(0);
  if (!view.shape.prefixes) return;
  for (let page = 0; page < view.shape.pages; page++) {
    const cell = pageAt(view, page);
    const tenant = view.cells[cell + PG.tenant];
    if (view.cells[cell + PG.state] === PageState.sealed && tenant < counts.length) counts[tenant]++;
  }
}

/** Counts pages by state. */
export function countPages(view: View): PageTotals {
  const totals = [0, 0, 0, 0];
  for (let page = 0; page < view.shape.pages; page++) totals[view.cells[pageAt(view, page) + PG.state]]++;
  return { free: totals[0], leased: totals[1], draining: totals[2], sealed: totals[3] };
}
