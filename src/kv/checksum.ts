import { assert } from '../base/assert.js';
import type { PagePool } from './pool.js';
import { instantiate, type SharedMemory } from '../base/shared-memory.js';
import { wasmBase64 } from './xxh64.wasm.js';

interface Xxh64Exports {
  readonly xxh64: (start: number, length: number) => number;
  readonly start: () => void;
  readonly add: (low: number, high: number) => void;
  readonly finish: () => number;
  readonly high: () => number;
}

/**
 * XXH64, seed 0, of pages in place in one role's memory. Results are two words of 32 bits, low then high, in a
 * `Uint32Array` that the caller owns: a BigInt for each page would be garbage in the hot path.
 * It finds torn and swapped pages. It is no proof against a forger: a tag is data like any other.
 */
export class Checksummer {
  readonly #memory: SharedMemory;
  readonly #wasm: Xxh64Exports;
  /** Pages hashed: shows that verification ran. */
  pagesHashed = 0;

  constructor(memory: SharedMemory) {
    this.#memory = memory;
    this.#wasm = instantiate(wasmBase64, memory) as Xxh64Exports;
  }

  /** The payload of `page`; the header is not part of it. Writes `out[0]` (low) and `out[1]` (high). */
  page(pool: PagePool, page: number, out: Uint32Array): void {
    assert(pool.buffer === this.#memory.buffer, 'a checksum is made in the memory that holds the page');
    this.pagesHashed++;
    this.bytes(pool.payloadAddress(page), pool.geometry.payloadBytes, out);
  }

  /** Any stretch of the memory. */
  bytes(start: number, length: number, out: Uint32Array): void {
    assert(
      start >= 0 && length >= 0 && start + length <= this.#memory.buffer.byteLength,
      'a checksum covers bytes of its memory',
    );
    out[0] = this.#wasm.xxh64(start, length);
    out[1] = this.#wasm.high();
  }

  /**
   * The checksum of a request: XXH64 over the checksums of its pages in order, 8 bytes each, little-endian.
   * `checksums` holds low and high of each page: shape (pages, 2).
   */
  combine(checksums: Uint32Array, pages: number, out: Uint32Array): void {
    assert(pages >= 0 && checksums.length >= 2 * pages, 'there is a checksum for each page that is combined');
    this.#wasm.start();
    for (let i = 0; i < 2 * pages; i += 2) this.#wasm.add(checksums[i], checksums[i + 1]);
    out[0] = this.#wasm.finish();
    out[1] = this.#wasm.high();
  }
}
