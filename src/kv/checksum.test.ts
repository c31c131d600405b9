// Goal: the WebAssembly checksum is XXH64, bit for bit. Method: published vectors, and a slow BigInt reading of the specification.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Checksummer } from './checksum.js';
import { fillPayload, GEOMETRY, leaseTag, newPool } from './fixture.test.help.js';
import { PagePool } from './pool.js';
import { newSharedMemory } from '../base/shared-memory.js';
import { writeTag } from './tag.js';

const [P1, P2, P3, P4, P5] = [
  0x9e3779b185ebca87n,
  0xc2b2ae3d27d4eb4fn,
  0x165667b19e3779f9n,
  0x85ebca77c2b2ae63n,
  0x27d4eb2f165667c5n,
] as const;
const cut = (x: bigint): bigint => BigInt.asUintN(64, x);
const rotate = (x: bigint, by: bigint): bigint => cut((x << by) | (cut(x) >> (64n - by)));
const round = (lane: bigint, input: bigint): bigint => cut(rotate(cut(lane + input * P2), 31n) * P1);

/** XXH64 with seed 0, after the specification's five steps. */
function reference(data: Uint8Array): bigint {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  let at = 0;
  let hash: bigint = P5;
  if (data.length >= 32) {
    const lanes = [cut(P1 + P2), P2, 0n, cut(-P1)];
    for (; at + 32 <= data.length; at += 32) {
      for (let i = 0; i < 4; i++) lanes[i] = round(lanes[i], view.getBigUint64(at + 8 * i, true));
    }
    hash = cut(rotate(lanes[0], 1n) + rotate(lanes[1], 7n) + rotate(lanes[2], 12n) + rotate(lanes[3], 18n));
    for (const lane of lanes) hash = cut((hash ^ round(0n, lane)) * P1 + P4);
  }
  hash = cut(hash + BigInt(data.length));
  for (; at + 8 <= data.length; at += 8) {
    hash = cut(rotate(hash ^ round(0n, view.getBigUint64(at, true)), 27n) * P1 + P4);
  }
  if (at + 4 <= data.length) {
    hash = cut(rotate(hash ^ cut(BigInt(view.getUint32(at, true)) * P1), 23n) * P2 + P3);
    at += 4;
  }
  for (; at < data.length; at++) hash = cut(rotate(hash ^ cut(BigInt(data[at]) * P5), 11n) * P1);
  hash = cut((hash ^ (hash >> 33n)) * P2);
  hash = cut((hash ^ (hash >> 29n)) * P3);
  return hash ^ (hash >> 32n);
}

const memory = newSharedMemory(65_536);
const bytes = new Uint8Array(memory.buffer);
const checksummer = new Checksummer(memory);
const out = new Uint32Array(2);
const hex = (): string => [out[1], out[0]].map((half) => half.toString(16).padStart(8, '0')).join('');
const asHex = (value: bigint): string => value.toString(16).padStart(16, '0');

/** Published: the empty input, "abc"; the others by other implementations of XXH64. */
const VECTORS: readonly [string, string][] = [
  ['', 'ef46db3751d8e999'],
  ['abc', '44bc2cf5ad770999'],
  ['a', 'd24ec4f1a98c6e5b'],
  ['Nobody inspects the spammish repetition', 'fbcea83c8a378bf1'],
];

test('known texts have their published checksums, here and in the reference', () => {
  for (const [text, wanted] of VECTORS) {
    const data = new TextEncoder().encode(text);
    bytes.set(data, 3);
    checksummer.bytes(3, data.length, out);
    assert.equal(hex(), wanted, text);
    assert.equal(asHex(reference(data)), wanted, text);
  }
});

test('any bytes at any alignment have the checksum that the reference gives (seed 3)', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.integer({ min: 0, max: 16 }), (data, at) => {
      bytes.set(data, at);
      checksummer.bytes(at, data.length, out);
      assert.equal(hex(), asHex(reference(data)));
    }),
    { seed: 3, numRuns: 500 },
  );
});

test('a page is hashed without its header, and every bit of the payload counts (seed 4)', () => {
  const poolMemory = newSharedMemory(2 * GEOMETRY.pageBytes);
  const pool = new PagePool({ memory: poolMemory, base: 0, pages: 2, geometry: GEOMETRY, node: 'prefill' });
  const own = new Checksummer(poolMemory);
  fillPayload(pool, 1, 0x0badcafe);
  own.page(pool, 1, out);
  const before = hex();
  assert.equal(before, asHex(reference(Uint8Array.from(pool.payload(1)))));
  writeTag(pool, 1, leaseTag());
  own.page(pool, 1, out);
  assert.equal(hex(), before);
  const bits = fc.integer({ min: 0, max: GEOMETRY.payloadBytes * 8 - 1 });
  fc.assert(
    fc.property(bits, (bit) => {
      pool.payload(1)[bit >> 3] ^= 1 << (bit & 7);
      own.page(pool, 1, out);
      assert.notEqual(hex(), before);
      pool.payload(1)[bit >> 3] ^= 1 << (bit & 7);
    }),
    { seed: 4 },
  );
  assert.equal(own.pagesHashed, 102);
});

test('the checksum of a request is XXH64 of its pages’ checksums in order, from none to forty pages (seed 5)', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 320 }), (data) => {
      const pages = Math.floor(data.length / 8);
      const words = new Uint32Array(Uint8Array.from(data.subarray(0, pages * 8)).buffer);
      checksummer.combine(words, pages, out);
      assert.equal(hex(), asHex(reference(data.subarray(0, pages * 8))));
    }),
    { seed: 5, numRuns: 300 },
  );
});

test('two pages swapped change the checksum of the request', () => {
  checksummer.combine(Uint32Array.of(1, 2, 3, 4), 2, out);
  const before = hex();
  checksummer.combine(Uint32Array.of(3, 4, 1, 2), 2, out);
  assert.notEqual(hex(), before);
});

test('a checksum of a page in another memory, or outside the memory, is refused', () => {
  assert.throws(() => checksummer.page(newPool(1), 0, out), /in the memory that holds the page/);
  assert.throws(() => checksummer.bytes(65_530, 7, out), /bytes of its memory/);
});
