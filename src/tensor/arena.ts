import { assert } from '../base/assert.js';
import type { Address } from './contract.js';

/** Every buffer begins on a cache line. */
export const ALIGNMENT_BYTES = 64;

export function aligned(bytes: number): number {
  return Math.ceil(bytes / ALIGNMENT_BYTES) * ALIGNMENT_BYTES;
}

/** Hands out stretches of one memory, once, from the bottom up; nothing is ever given back. */
export class Arena {
  readonly end: Address;
  #next: Address;

  constructor(start: Address, end: Address) {
    assert(start % ALIGNMENT_BYTES === 0, 'an arena begins on a cache line');
    this.#next = start;
    this.end = end;
  }

  get used(): Address {
    return this.#next;
  }

  take(bytes: number): Address {
    const at = this.#next;
    this.#next = at + aligned(bytes);
    assert(this.#next <= this.end, `the arena ends at ${this.end} bytes, and ${this.#next} are needed`);
    return at;
  }
}
