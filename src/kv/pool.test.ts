// Goal: a pool gives exactly the bytes of a page, and zeroes exactly what it says. Method: whole-region comparisons.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Checksummer } from './checksum.js';
import { fillPayload, GEOMETRY, newPool, startThread } from './fixture.test.help.js';
import { kOffset, PAGE_HEADER_BYTES, vOffset } from './geometry.js';
import { PagePool } from './pool.js';
import { newSharedMemory } from '../base/shared-memory.js';

test('K and V of a layer lie where the geometry says, and a page ends where the next begins', () => {
  const memory = newSharedMemory(4 * GEOMETRY.pageBytes + 64);
  const pool = new PagePool({ memory, base: 64, pages: 4, geometry: GEOMETRY, node: 'decode' });
  const bytes = new DataView(memory.buffer);
  for (let layer = 0; layer < GEOMETRY.layers; layer++) {
    pool.k(2, layer)[9] = 1.5 + layer;
    pool.v(2, layer)[9] = -1.5 - layer;
    assert.equal(bytes.getFloat32(pool.pageAddress(2) + kOffset(GEOMETRY, layer) + 36, true), 1.5 + layer);
    assert.equal(bytes.getFloat32(pool.pageAddress(2) + vOffset(GEOMETRY, layer) + 36, true), -1.5 - layer);
  }
  assert.equal(pool.pageAddress(1), 64 + GEOMETRY.pageBytes);
  assert.equal(pool.payload(1).byteOffset + pool.payload(1).byteLength, pool.pageAddress(2));
  pool.header(3)[15] = 77;
  assert.equal(pool.words[3 * pool.pageWords + 15], 77);
});

test('zeroing the tail leaves the filled rows, the header and the other pages alone, at any filling (seed 1)', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 16 }), fc.integer({ min: 0, max: 2 }), (filled, page) => {
      const pool = newPool(3);
      pool.words.fill(-1);
      pool.zeroTail(page, filled);
      for (let at = 0; at < pool.words.length; at++) {
        const inPage = at - page * pool.pageWords - PAGE_HEADER_BYTES / 4;
        const isPayload = inPage >= 0 && inPage < GEOMETRY.payloadBytes / 4;
        const row = Math.floor(inPage / GEOMETRY.kvDim) % GEOMETRY.pageTokens;
        assert.equal(pool.words[at], isPayload && row >= filled ? 0 : -1);
      }
    }),
    { seed: 1, numRuns: 60 },
  );
});

test('zeroing a page clears its header and payload, and no other page', () => {
  const pool = newPool(3);
  pool.words.fill(-1);
  pool.zeroPage(1);
  for (let at = 0; at < pool.words.length; at++) {
    assert.equal(pool.words[at], Math.floor(at / pool.pageWords) === 1 ? 0 : -1);
  }
});

test('copying a payload moves its bytes and leaves the header of the target', () => {
  const [from, to] = [newPool(2, 'prefill'), newPool(2)];
  fillPayload(from, 1, 0x01020304);
  to.words.fill(-1);
  from.copyPayload(1, to, 0);
  assert.deepEqual(to.payload(0), from.payload(1));
  assert.ok(to.header(0).every((word) => word === -1));
  assert.ok(to.payload(1).every((byte) => byte === 255));
});

test('a pool that does not fit its memory, or begins between two vectors, is refused, and so is a page outside it', () => {
  const memory = newSharedMemory(GEOMETRY.pageBytes);
  const pages = Math.floor(memory.buffer.byteLength / GEOMETRY.pageBytes);
  const make = (base: number, count: number): PagePool =>
    new PagePool({ memory, base, pages: count, geometry: GEOMETRY, node: 'decode' });
  assert.throws(() => make(0, pages + 1), /fits its memory/);
  assert.throws(() => make(8, 1), /whole vector/);
  const pool = make(0, pages);
  for (const page of [-1, pages, 0.5]) assert.throws(() => pool.payload(page), /lies in its pool/);
});

test('another thread reaches the same bytes, and checks them in the posted memory', async () => {
  const memory = newSharedMemory(2 * GEOMETRY.pageBytes);
  const pool = new PagePool({ memory, base: 0, pages: 2, geometry: GEOMETRY, node: 'decode' });
  fillPayload(pool, 0, 12345);
  const here = new Uint32Array(2);
  new Checksummer(memory).page(pool, 0, here);
  const registrations = new SharedArrayBuffer(64);
  const thread = await startThread({
    kind: 'checksum',
    target: pool.descriptor(),
    memory,
    registrations,
    handle: 4096,
  });
  const there = await new Promise((resolve) => thread.worker.once('message', resolve));
  await thread.stop();
  assert.deepEqual(there, [...here]);
});
