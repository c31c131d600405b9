import { assert } from '../base/assert.js';

/** The header of a page, written by the same write as its payload: 16 words of 32 bits. See `tag.ts`. */
export const PAGE_HEADER_BYTES = 64;

/**
 * How one page lies in memory: the header, then for each layer all K rows, then all V rows of its tokens.
 * K of layer l: float32 (pageTokens, kvDim) at `kOffset(l)` bytes from the page's start; V follows at `vOffset(l)`.
 */
export interface PageGeometry {
  readonly pageTokens: number;
  readonly layers: number;
  /** Floats a token of K (or of V) in one layer: KV heads × head_dim. */
  readonly kvDim: number;
  readonly payloadBytes: number;
  /** Header and payload; the distance between two pages of a pool. */
  readonly pageBytes: number;
}

export function pageGeometry(pageTokens: number, layers: number, kvDim: number): PageGeometry {
  assert(Number.isInteger(pageTokens) && pageTokens >= 1, 'a page holds at least one token');
  assert(layers >= 1 && kvDim >= 4 && kvDim % 4 === 0, 'a page needs layers, and rows of whole SIMD vectors');
  const payloadBytes = layers * 2 * pageTokens * kvDim * 4;
  return { pageTokens, layers, kvDim, payloadBytes, pageBytes: PAGE_HEADER_BYTES + payloadBytes };
}

/** Bytes from a page's start to the K rows of `layer`. */
export function kOffset(geometry: PageGeometry, layer: number): number {
  return PAGE_HEADER_BYTES + layer * 2 * geometry.pageTokens * geometry.kvDim * 4;
}

/** Bytes from a page's start to the V rows of `layer`. */
export function vOffset(geometry: PageGeometry, layer: number): number {
  return kOffset(geometry, layer) + geometry.pageTokens * geometry.kvDim * 4;
}
