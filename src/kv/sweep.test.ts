// Goal: a write that no lease explains is found, wherever it lands, and nothing else is. Method: a ledger driven by its own machine, and pages written by hand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stepDecode } from '../handoff/decode.js';
import { newView, PG, pageAt, resetView, shapeOf, type View } from '../handoff/layout.js';
import { evictPage, freePage, sealPage, takePage } from '../handoff/ledger.js';
import { newOut } from '../handoff/messages.js';
import { ALL_GUARDS } from '../handoff/guards.js';
import { packEvent } from '../handoff/step.js';
import { newSharedMemory } from '../base/shared-memory.js';
import { Checksummer } from './checksum.js';
import { fillPayload, GEOMETRY, leaseTag } from './fixture.test.help.js';
import { PagePool } from './pool.js';
import { Sweep, type SweepFinding } from './sweep.js';
import { beginWrite, MAGIC_LANDING, OWNER_TENANT, readTag, setChecksum, TAG_MAGIC, writeTag } from './tag.js';

const PAGES = 6;
const INCARNATION = 7;

interface Swept {
  readonly pool: PagePool;
  readonly view: View;
  readonly sweep: Sweep;
  readonly checksummer: Checksummer;
  readonly findings: SweepFinding[];
  /** One round over the pool with checksums. */
  round(): string[];
}

function newSwept(zeroOnRelease = false): Swept {
  const memory = newSharedMemory(PAGES * GEOMETRY.pageBytes);
  const pool = new PagePool({ memory, base: 0, pages: PAGES, geometry: GEOMETRY, node: 'decode' });
  const view = newView(shapeOf('decode', { slots: 4, pages: PAGES, pagesPerSlot: 4, prefixes: true }), {
    faults: 0,
    guards: ALL_GUARDS,
  });
  resetView(view, INCARNATION, 2);
  const findings: SweepFinding[] = [];
  const checksummer = new Checksummer(memory);
  const onFinding = (finding: SweepFinding): number => findings.push(finding);
  const sweep = new Sweep({
    pool,
    view,
    incarnation: INCARNATION,
    checksummer,
    zeroOnRelease,
    isFresh: true,
    onFinding,
  });
  const round = (): string[] => {
    const from = findings.length;
    sweep.idle(PAGES);
    return findings.slice(from).map(({ words }) => words);
  };
  return { pool, view, sweep, checksummer, findings, round };
}

function take(swept: Swept): number {
  return takePage(swept.view, 0);
}

function give(swept: Swept, page: number): void {
  freePage(swept.view, page);
  swept.sweep.noteReleased();
}

/** Slot 3 of the machine gets two pages for a prompt of 20 tokens. Answers them. */
function lease({ view }: Swept): [number, number] {
  const out = newOut(4, 4);
  const start = {
    slot: 3,
    attempt: 1,
    to: INCARNATION,
    room: 1,
    tokens: 20,
    promptPages: 2,
    pages: 2,
    tenant: 1,
    salt: 1,
  };
  stepDecode(view, packEvent({ kind: 'start', ...start }), out);
  stepDecode(view, packEvent({ kind: 'admit', slot: 3, attempt: 1 }), out);
  const own = Array.from({ length: PAGES }, (_, page) => page).filter(
    (page) => view.cells[pageAt(view, page) + PG.owner] === 4,
  );
  assert.equal(own.length, 2);
  return own as [number, number];
}

function placeOf({ view }: Swept, page: number): number {
  return [0, 1].find((place) => view.cells[pageListAt(view) + place] === page)!;
}

const pageListAt = (view: View): number =>
  view.shape.slotBase + view.at + 3 * view.shape.slotWidth + view.shape.listBase;

function seal(swept: Swept, page: number): void {
  const { pool, view, sweep, checksummer } = swept;
  const sum = new Uint32Array(2);
  fillPayload(pool, page, 5);
  sealPage(view, page, 2, 2, 99);
  const epoch = view.cells[pageAt(view, page) + PG.epoch]!;
  writeTag(pool, page, leaseTag({ ownerKind: OWNER_TENANT, owner: 2, attempt: 0, epoch }));
  checksummer.page(pool, page, sum);
  setChecksum(pool, page, sum[0]!, sum[1]!);
  sweep.noteSealed(page);
}

test('a pool in which nothing happens has no findings, and every page is counted', () => {
  const swept = newSwept();
  for (let i = 1; i <= 3; i++) {
    assert.deepEqual(swept.round(), []);
    assert.deepEqual([swept.sweep.pagesSwept, swept.sweep.passes], [i * PAGES, i]);
  }
});

test('a write to a free page is found by its header, told with page, owner and writer, and told once', () => {
  const swept = newSwept();
  const page = take(swept);
  writeTag(swept.pool, page, leaseTag({ owner: 0 }));
  give(swept, page);
  assert.deepEqual(swept.round(), [], 'what lay there when it went back is no write');
  writeTag(swept.pool, page, leaseTag({ owner: 2, attempt: 4, writer: 9, writtenAtStep: 17 }));
  const [words, ...more] = swept.round();
  assert.deepEqual(more, []);
  assert.match(words!, new RegExp(`no write to page ${page} of decode, which is free since epoch 1`));
  assert.match(words!, /lease 2, attempt 4.*written by prefill incarnation 9 at step 17/);
  assert.deepEqual(swept.round(), []);
  assert.equal(swept.sweep.findings, 1);
});

test('a write that has begun in a free page is found before its header is there', () => {
  const swept = newSwept();
  beginWrite(swept.pool, 3);
  assert.equal(swept.round().length, 1);
});

test('a write of payload alone to a free page is found: at once where a sampled word changed, else from the second visit on', () => {
  const swept = newSwept();
  fillPayload(swept.pool, 2, 1);
  assert.match(swept.round()[0]!, /a payload that no lease explains; its writer left no tag/);
  swept.round();
  // One byte that no sample looks at: the checksum sees it, since the page was visited.
  swept.pool.payload(2)[3] ^= 1;
  assert.equal(swept.round().length, 1);
  const fresh = newSwept();
  fresh.pool.payload(2)[3] ^= 1;
  assert.deepEqual(fresh.round(), [], 'the documented limit: before its first visit only sampled words are known');
});

test('with zero on release a page is empty when it goes back, and every write to it is found at the next visit', () => {
  const swept = newSwept(true);
  const page = take(swept);
  fillPayload(swept.pool, page, 7);
  writeTag(swept.pool, page, leaseTag());
  give(swept, page);
  assert.ok(swept.pool.payload(page).every((byte) => byte === 0));
  assert.ok(swept.pool.header(page).every((word) => word === 0));
  swept.pool.payload(page)[3] = 1;
  assert.equal(swept.round().length, 1);
});

test('a leased page may be unwritten, landing or its own; another owner, attempt, epoch or place in it is found, once', () => {
  for (const change of [{ owner: 1 }, { attempt: 2 }, { epoch: 9 }, { incarnation: 6 }, { place: 1 }, null]) {
    const swept = newSwept();
    const [page] = lease(swept);
    const place = placeOf(swept, page);
    assert.deepEqual(swept.round(), []);
    beginWrite(swept.pool, page);
    assert.deepEqual(swept.round(), []);
    const own = leaseTag({ owner: 3, attempt: 1, incarnation: INCARNATION, epoch: 0, place });
    writeTag(swept.pool, page, own);
    assert.deepEqual(swept.round(), []);
    if (change === null) continue;
    writeTag(swept.pool, page, { ...own, ...change, ...('place' in change ? { place: 1 - place } : {}) });
    const [words] = swept.round();
    assert.match(words!, /which lease 3, attempt 1 holds in epoch 0, got a header/);
    assert.deepEqual(swept.round(), []);
  }
});

test('a sealed page is compared with what was sealed, header and payload, and is named as shared', () => {
  for (const spoil of [
    (swept: Swept, page: number) => fillPayload(swept.pool, page, 6),
    (swept: Swept, page: number) => writeTag(swept.pool, page, { ...readTag(swept.pool, page), owner: 1 }),
    (swept: Swept, page: number) =>
      Atomics.store(swept.pool.words, page * swept.pool.pageWords + TAG_MAGIC, MAGIC_LANDING),
  ]) {
    const swept = newSwept();
    const page = take(swept);
    seal(swept, page);
    assert.deepEqual(swept.round(), []);
    spoil(swept, page);
    assert.match(swept.round()[0]!, /which is sealed for tenant 2 in epoch 0/);
    assert.equal(swept.findings[0]!.isSealed, true);
  }
});

test('a sealed page that is evicted is a free page again, without a finding', () => {
  const swept = newSwept();
  const page = take(swept);
  seal(swept, page);
  assert.ok(evictPage(swept.view, page));
  swept.sweep.noteReleased();
  assert.deepEqual(swept.round(), []);
  writeTag(swept.pool, page, leaseTag());
  assert.equal(swept.round().length, 1);
});

test('a step looks at a bounded number of pages, and pays for checksums with the tokens it made', () => {
  const swept = newSwept();
  swept.sweep.step(0);
  assert.equal(swept.sweep.pagesSwept, 0, 'without tokens no free page is compared');
  swept.sweep.step(1_000);
  assert.ok(swept.sweep.pagesSwept >= 1 && swept.sweep.pagesSwept <= PAGES);
});
