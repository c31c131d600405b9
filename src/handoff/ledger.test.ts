/** Goal: pages are never in two hands, and come back in a known order under a new epoch. Method: exact page numbers and lists. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ALL_GUARDS } from './guards.js';
import { everyPageIsAccountedFor } from './invariants.js';
import { getHeader, getPage, listAt, newView, PageState, shapeOf, type View } from './layout.js';
import {
  countPages,
  drainPages,
  dropPrefix,
  evictPage,
  freeCount,
  freePage,
  freePages,
  sealPage,
  takePage,
} from './ledger.js';

function pool(pages: number, prefixes = false): View {
  return newView(shapeOf('decode', { slots: 2, pages, pagesPerSlot: pages, prefixes }), {
    faults: 0,
    guards: ALL_GUARDS,
  });
}

/** The free list from its head, by following it. */
function freeList(view: View): number[] {
  const list: number[] = [];
  for (let next = getHeader(view, 'freeHead'); next !== 0; next = getPage(view, next - 1, 'next')) list.push(next - 1);
  return list;
}

test('pages are taken lowest first from a fresh pool', () => {
  const view = pool(3);
  assert.deepEqual([takePage(view, 0), takePage(view, 1), takePage(view, 0)], [0, 1, 2]);
  assert.deepEqual(
    [0, 1, 2].map((page) => getPage(view, page, 'owner')),
    [1, 2, 1],
  );
  assert.equal(freeCount(view), 0);
  assert.deepEqual(freeList(view), []);
});

test('the page freed last is taken first', () => {
  const view = pool(4);
  for (let i = 0; i < 3; i++) takePage(view, 0);
  freePage(view, 0);
  freePage(view, 2);
  assert.deepEqual(freeList(view), [2, 0, 3]);
  assert.equal(takePage(view, 1), 2);
  assert.deepEqual(freeList(view), [0, 3]);
});

test('a list that is freed is taken again in the same order', () => {
  const view = pool(4);
  const list = listAt(view, 0, 0);
  for (let place = 0; place < 3; place++) view.cells[list + place] = takePage(view, 0);
  freePages(view, list, 0, 3);
  assert.deepEqual(freeList(view), [0, 1, 2, 3]);
  assert.deepEqual(Array.from(view.cells.slice(list, list + 3)), [0, 0, 0]);
});

test('a page gets a new epoch each time that it goes back, and only then', () => {
  const view = pool(2);
  takePage(view, 0);
  assert.equal(getPage(view, 0, 'epoch'), 0);
  freePage(view, 0);
  assert.equal(getPage(view, 0, 'epoch'), 1);
  takePage(view, 1);
  assert.equal(getPage(view, 0, 'epoch'), 1);
  assert.equal(getPage(view, 1, 'epoch'), 0);
});

test('an epoch that runs over in a byte is still another epoch than the last', () => {
  const shape = shapeOf('decode', { slots: 1, pages: 1, pagesPerSlot: 1 });
  const view = newView(shape, { faults: 0, guards: ALL_GUARDS }, new Uint8Array(shape.width));
  let last = -1;
  for (let i = 0; i < 600; i++) {
    takePage(view, 0);
    assert.notEqual(getPage(view, 0, 'epoch'), last);
    last = getPage(view, 0, 'epoch');
    freePage(view, 0);
  }
});

test('a page that is freed twice is a programmer error', () => {
  const view = pool(2);
  takePage(view, 0);
  freePage(view, 0);
  assert.throws(() => freePage(view, 0), /a page was freed twice/);
  assert.throws(() => freePage(view, 1), /a page was freed twice/);
});

test('a page that is taken from an empty pool is a programmer error', () => {
  const view = pool(1);
  takePage(view, 0);
  assert.throws(() => takePage(view, 0), /empty free list/);
});

test('draining pages are neither free nor taken', () => {
  const view = pool(3);
  const list = listAt(view, 0, 0);
  for (let place = 0; place < 2; place++) view.cells[list + place] = takePage(view, 0);
  drainPages(view, list, 0, 2);
  assert.deepEqual(countPages(view), { free: 1, leased: 0, draining: 2, sealed: 0 });
  assert.equal(getPage(view, 0, 'owner'), 1);
  assert.equal(takePage(view, 1), 2);
  assert.throws(() => takePage(view, 1), /empty free list/);
});

test('taking and giving back touches a fixed number of cells, however large the pool', () => {
  for (const pages of [8, 4096]) {
    const view = pool(pages);
    const before = view.cells.slice();
    takePage(view, 0);
    assert.equal(differing(before, view), 5, 'head and count; state, owner and next of one page');
    const taken = view.cells.slice();
    freePage(view, 0);
    assert.ok(differing(taken, view) <= 6);
  }
});

function differing(before: ArrayLike<number>, view: View): number {
  let count = 0;
  for (let i = 0; i < view.cells.length; i++) if (before[i] !== view.cells[i]) count++;
  return count;
}

test('a sealed page belongs to its tenant and to no slot', () => {
  const view = pool(2, true);
  takePage(view, 0);
  sealPage(view, 0, 7, 8, 9);
  assert.deepEqual(
    (['state', 'owner', 'refs', 'tenant', 'salt', 'hash'] as const).map((field) => getPage(view, 0, field)),
    [PageState.sealed, 0, 0, 7, 8, 9],
  );
  assert.equal(everyPageIsAccountedFor(view), null);
});

test('only a leased page can be sealed, and only where the record has room for it', () => {
  const view = pool(1, true);
  assert.throws(() => sealPage(view, 0, 1, 1, 1), /only a leased page can be sealed/);
  const plain = pool(1);
  takePage(plain, 0);
  assert.throws(() => sealPage(plain, 0, 1, 1, 1), /no room for sealed pages/);
});

test('a sealed page is evicted only when nobody reads it', () => {
  const view = pool(1, true);
  const list = listAt(view, 0, 0);
  takePage(view, 0);
  assert.equal(evictPage(view, 0), false, 'it is leased');
  sealPage(view, 0, 1, 1, 5);
  view.cells[list] = 0;
  view.cells.fill(1, refsOf(view, 0), refsOf(view, 0) + 1);
  assert.equal(evictPage(view, 0), false, 'it is read');
  dropPrefix(view, list, 1);
  assert.equal(evictPage(view, 0), true);
  assert.equal(getPage(view, 0, 'hash'), 0);
  assert.equal(getPage(view, 0, 'epoch'), 1);
  assert.equal(evictPage(view, 0), false, 'it is free');
  for (const page of [-1, 1, 99]) assert.equal(evictPage(view, page), false);
});

function refsOf(view: View, page: number): number {
  return view.shape.pageBase + page * view.shape.pageWidth + 4;
}

test('a reference that was never taken cannot be dropped', () => {
  const view = pool(1, true);
  takePage(view, 0);
  sealPage(view, 0, 1, 1, 5);
  assert.throws(() => dropPrefix(view, listAt(view, 0, 0), 1), /lost a reference/);
});
