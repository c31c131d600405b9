import { assert } from './assert.js';

/**
 * Seeded chance (xoshiro128**; seeding by splitmix32, both by Blackman and Vigna). Not for secrets: those come from node:crypto.
 * The same seed gives the same numbers on every machine.
 */
export class Prng {
  readonly #state = new Uint32Array(4);

  constructor(seed: number) {
    let x = seed >>> 0;
    for (let i = 0; i < 4; i++) {
      x = (x + 0x9e3779b9) >>> 0;
      let z = x;
      z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
      z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
      this.#state[i] = (z ^ (z >>> 15)) >>> 0;
    }
  }

  /** A whole number from 0 to 2^32 - 1. */
  u32(): number {
    const s = this.#state;
    const s1 = s[1]!;
    const x = Math.imul(s1, 5);
    const result = Math.imul((x << 7) | (x >>> 25), 9) >>> 0;
    const t = s1 << 9;
    s[2]! ^= s[0]!;
    s[3]! ^= s1;
    s[1]! ^= s[2]!;
    s[0]! ^= s[3]!;
    s[2]! ^= t;
    const s3 = s[3]!;
    s[3] = (s3 << 11) | (s3 >>> 21);
    return result;
  }

  /** A number in [0, 1). */
  unit(): number {
    return this.u32() / 4294967296;
  }

  /** A whole number in [0, bound). The bias is below bound / 2^32. */
  below(bound: number): number {
    assert(bound > 0, 'a bound for chance must be above zero');
    return Math.floor(this.unit() * bound);
  }

  /** A whole number in [low, high], both included. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  chance(probability: number): boolean {
    return this.unit() < probability;
  }

  pick<T>(items: readonly T[]): T {
    assert(items.length > 0, 'cannot pick from nothing');
    return items[this.below(items.length)]!;
  }

  /** Standard normal (Box-Muller). */
  normal(): number {
    const radius = Math.sqrt(-2 * Math.log(1 - this.unit()));
    return radius * Math.cos(2 * Math.PI * this.unit());
  }

  shuffle<T>(items: T[]): T[] {
    for (let i = items.length - 1; i > 0; i--) {
      const j = this.below(i + 1);
      const held = items[i]!;
      items[i] = items[j]!;
      items[j] = held;
    }
    return items;
  }

  /** A generator of its own, so that one consumer's draws do not move another's. */
  fork(): Prng {
    return new Prng(this.u32());
  }
}
