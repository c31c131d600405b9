import { assert } from '../base/assert.js';
import { kOffset, PAGE_HEADER_BYTES, type PageGeometry, vOffset } from './geometry.js';
import type { SharedMemory } from '../base/shared-memory.js';

/** Words of 32 bits in the header of a page. */
export const PAGE_HEADER_WORDS: number = PAGE_HEADER_BYTES / 4;

/** Pages begin at whole SIMD vectors. */
const PAGE_ALIGNMENT_BYTES = 16;

export type PoolNode = 'prefill' | 'decode';

export interface PagePoolOptions {
  /** The role's own memory; `base + pages × pageBytes` must fit it. */
  readonly memory: SharedMemory;
  /** Bytes from the start of the memory to page 0; a multiple of 16. */
  readonly base: number;
  readonly pages: number;
  readonly geometry: PageGeometry;
  readonly node: PoolNode;
}

/** What another thread needs to reach a pool: plain data and one shared buffer. */
export interface PoolDescriptor {
  readonly buffer: SharedArrayBuffer;
  readonly base: number;
  readonly pages: number;
  readonly geometry: PageGeometry;
  readonly node: PoolNode;
}

/**
 * The bytes of one role's pages. Who owns a page is not known here: the ledger says so, and the tag in the page's header
 * (`tag.ts`) says whose bytes really lie there. Any thread may attach to the same pool; nothing here takes a lock.
 */
export class PagePool {
  readonly buffer: SharedArrayBuffer;
  readonly base: number;
  readonly pages: number;
  readonly geometry: PageGeometry;
  readonly node: PoolNode;
  /** Distance between the headers of two pages, in 32-bit words. */
  readonly pageWords: number;
  /** All of the region as words: the header of page p is `words[p × pageWords …]`. Shape (pages, pageWords). */
  readonly words: Int32Array;
  /** The same as 64-bit cells, since a fill of shared memory costs the same for each element however small. */
  readonly #cells: Float64Array;
  readonly #payloads: (Uint8Array | undefined)[];

  constructor(options: PagePoolOptions) {
    const { base, pages, geometry } = options;
    const { buffer } = options.memory;
    assert(buffer instanceof SharedArrayBuffer, 'a pool lies in shared memory');
    assert(Number.isInteger(pages) && pages > 0, 'a pool holds at least one page');
    assert(Number.isInteger(base) && base >= 0 && base % PAGE_ALIGNMENT_BYTES === 0, 'a pool begins at a whole vector');
    assert(geometry.pageBytes % PAGE_ALIGNMENT_BYTES === 0, 'pages are whole vectors');
    assert(base + pages * geometry.pageBytes <= buffer.byteLength, 'a pool fits its memory');
    this.buffer = buffer;
    this.base = base;
    this.pages = pages;
    this.geometry = geometry;
    this.node = options.node;
    this.pageWords = geometry.pageBytes / 4;
    this.words = new Int32Array(buffer, base, pages * this.pageWords);
    this.#cells = new Float64Array(buffer, base, (pages * geometry.pageBytes) / 8);
    this.#payloads = Array.from({ length: pages }, () => undefined);
  }

  /** The same pool, from another thread. */
  static attach(descriptor: PoolDescriptor): PagePool {
    return new PagePool({ ...descriptor, memory: descriptor });
  }

  descriptor(): PoolDescriptor {
    const { buffer, base, pages, geometry, node } = this;
    return { buffer, base, pages, geometry, node };
  }

  /** Bytes from the start of the memory to `page`: its address for kernels in this memory. */
  pageAddress(page: number): number {
    this.assertPage(page);
    return this.base + page * this.geometry.pageBytes;
  }

  payloadAddress(page: number): number {
    return this.pageAddress(page) + PAGE_HEADER_BYTES;
  }

  /** The header of `page`: 16 words, live. */
  header(page: number): Int32Array {
    return new Int32Array(this.buffer, this.pageAddress(page), PAGE_HEADER_WORDS);
  }

  /** The payload of `page` as bytes, live. The view is made once for each page, so that landing a page allocates nothing. */
  payload(page: number): Uint8Array {
    this.assertPage(page);
    const made = this.#payloads[page];
    if (made !== undefined) return made;
    const view = new Uint8Array(this.buffer, this.payloadAddress(page), this.geometry.payloadBytes);
    this.#payloads[page] = view;
    return view;
  }

  /** K of one layer of `page`, live: float32 (pageTokens, kvDim). */
  k(page: number, layer: number): Float32Array {
    return this.#rows(page, kOffset(this.geometry, this.#layer(layer)));
  }

  /** V of one layer of `page`, live: float32 (pageTokens, kvDim). */
  v(page: number, layer: number): Float32Array {
    return this.#rows(page, vOffset(this.geometry, this.#layer(layer)));
  }

  /** Header and payload to zero. */
  zeroPage(page: number): void {
    this.assertPage(page);
    const { pageBytes } = this.geometry;
    this.#zero(page * pageBytes, (page + 1) * pageBytes);
  }

  /**
   * Zeroes the rows `filled … pageTokens - 1` of every layer's K and V, so that no byte of an earlier request travels in the
   * unused part of a page, and so that its checksum says nothing about one.
   */
  zeroTail(page: number, filled: number): void {
    this.assertPage(page);
    const { layers, pageTokens, kvDim, pageBytes } = this.geometry;
    assert(
      Number.isInteger(filled) && filled >= 0 && filled <= pageTokens,
      'a page is filled by 0 to pageTokens tokens',
    );
    if (filled === pageTokens) return;
    const rowBytes = kvDim * 4;
    const stretchBytes = pageTokens * rowBytes;
    let from = page * pageBytes + PAGE_HEADER_BYTES;
    for (let stretch = 0; stretch < 2 * layers; stretch++) {
      this.#zero(from + filled * rowBytes, from + stretchBytes);
      from += stretchBytes;
    }
  }

  /** Copies the payload of `page` into `targetPage` of `target`; the header is not touched. */
  copyPayload(page: number, target: PagePool, targetPage: number): void {
    assert(target.geometry.payloadBytes === this.geometry.payloadBytes, 'pages of two pools have one shape');
    target.payload(targetPage).set(this.payload(page));
  }

  assertPage(page: number): void {
    assert(Number.isInteger(page) && page >= 0 && page < this.pages, 'a page number lies in its pool');
  }

  #layer(layer: number): number {
    assert(Number.isInteger(layer) && layer >= 0 && layer < this.geometry.layers, 'a layer number lies in its page');
    return layer;
  }

  #rows(page: number, offset: number): Float32Array {
    const { pageTokens, kvDim } = this.geometry;
    return new Float32Array(this.buffer, this.pageAddress(page) + offset, pageTokens * kvDim);
  }

  /** Zeroes from one byte of the region to another; both at multiples of 8, since rows are whole vectors. */
  #zero(fromByte: number, toByte: number): void {
    this.#cells.fill(0, fromByte / 8, toByte / 8);
  }
}
