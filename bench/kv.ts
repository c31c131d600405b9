/**
 * What do the page checks cost? One landing, one XXH64 and one tag check, each beside Buffer.copy of the same 64 KiB page.
 *
 *   npm run build && node dist/bench/kv.js
 *
 * All variants take turns in every round; a figure is the median of the rounds after one to warm up. Pages are spread over
 * 32 MiB, so that nothing sits in the first-level caches by luck. Read the ratios: the machine's own speed wanders.
 */
import { SystemClock } from '../src/base/clock.js';
import { Checksummer } from '../src/kv/checksum.js';
import { pageGeometry } from '../src/kv/geometry.js';
import { PagePool } from '../src/kv/pool.js';
import { ReadGuard } from '../src/kv/read-guard.js';
import { RegistrationTable } from '../src/kv/registration.js';
import { newSharedMemory } from '../src/base/shared-memory.js';
import { newPageTag, OWNER_LEASE, writeTag } from '../src/kv/tag.js';
import { Wire } from '../src/kv/wire.js';

const ROUNDS = 9;
const PAGES = 512;
/** 16 tokens, 8 layers, 64 floats a row: 64 KiB of payload. */
const GEOMETRY = pageGeometry(16, 8, 64);

const clock = new SystemClock();
const memory = newSharedMemory(PAGES * GEOMETRY.pageBytes);
const target = new PagePool({ memory, base: 0, pages: PAGES, geometry: GEOMETRY, node: 'decode' });
const source = new PagePool({
  memory: newSharedMemory(PAGES * GEOMETRY.pageBytes),
  base: 0,
  pages: PAGES,
  geometry: GEOMETRY,
  node: 'prefill',
});
const registrations = new RegistrationTable(4);
const wire = new Wire({
  source,
  target,
  registrations,
  handle: registrations.register(1)!,
  delay: null,
  reorder: null,
});
const checksummer = new Checksummer(memory);
const guard = new ReadGuard();
const identity = { slot: 1, attempt: 1, incarnation: 1, tenant: 1 };
const tag = { ...newPageTag(), ownerKind: OWNER_LEASE, owner: 1, attempt: 1, incarnation: 1, epoch: 1, filled: 16 };
const table = Int32Array.from({ length: PAGES }, (_, place) => (place * 211) % PAGES);
const epochs = new Int32Array(PAGES).fill(1);
const checksums = new Uint32Array(PAGES * 2);
const out = new Uint32Array(2);
const plainFrom = Array.from({ length: PAGES }, () => Buffer.alloc(GEOMETRY.payloadBytes, 1));
const plainTo = Array.from({ length: PAGES }, () => Buffer.alloc(GEOMETRY.payloadBytes, 2));

/** Each runs over PAGES pages once. */
const variants: Readonly<Record<string, () => void>> = {
  'Buffer.copy, plain memory': () => {
    for (let i = 0; i < PAGES; i++) plainFrom[i]!.copy(plainTo[i]!);
  },
  'payload copy between shared pools': () => {
    for (let i = 0; i < PAGES; i++) source.copyPayload(i, target, table[i]!);
  },
  'landing (post, fence, mark, payload, header)': () => {
    for (let i = 0; i < PAGES; i++) {
      tag.place = i;
      wire.post({ room: 1n, slot: 1, attempt: 1, sourcePage: i, targetPage: table[i]!, tag }, 0);
    }
    wire.poll(0);
  },
  'XXH64 of a page': () => {
    for (let i = 0; i < PAGES; i++) checksummer.page(target, i, out);
  },
  'combined checksum, one page': () => checksummer.combine(checksums, PAGES, out),
  'tag check, 512 pages in one call': () => {
    if (guard.check(target, table, epochs, PAGES, identity, PAGES * GEOMETRY.pageTokens) !== 0) throw new Error('tags');
  },
  'tag check, 16 pages a call, warm': () => {
    for (let i = 0; i < PAGES / 16; i++) {
      if (guard.check(target, table, epochs, 16, identity, 16 * GEOMETRY.pageTokens) !== 0) throw new Error('tags');
    }
  },
  'zeroing the tail, half of a page': () => {
    for (let i = 0; i < PAGES; i++) source.zeroTail(i, 8);
  },
};

for (let place = 0; place < PAGES; place++) writeTag(target, table[place]!, { ...tag, place });
const figures = new Map<string, number[]>();
for (let round = 0; round <= ROUNDS; round++) {
  for (const [name, run] of Object.entries(variants)) {
    // Cheap variants are repeated, so that the clock's grain does not show.
    const repeats = /tag|combined/.test(name) ? 50 : 2;
    const startMs = clock.nowMs();
    for (let i = 0; i < repeats; i++) run();
    const ns = ((clock.nowMs() - startMs) * 1e6) / (repeats * PAGES);
    if (round > 0) figures.set(name, [...(figures.get(name) ?? []), ns]);
  }
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1]!;
const copyNs = median(figures.get('Buffer.copy, plain memory')!);
for (const [name, values] of figures) {
  const ns = median(values);
  const moved = /tag|combined|zeroing/.test(name) ? '' : `${(GEOMETRY.payloadBytes / ns).toFixed(1)} GB/s`;
  process.stdout.write(
    `${name.padEnd(46)} ${ns.toFixed(1).padStart(9)} ns/page  ${(ns / copyNs).toFixed(3).padStart(7)} × copy  ${moved}\n`,
  );
}
