import { assert } from '../base/assert.js';

/** One tenant's place in a round. */
export interface Place {
  /** Where it stands: smaller is sooner. It moves forward only. */
  pass: number;
}

/**
 * Whose turn is next, by stride scheduling: each turn moves a tenant on by its stride, and the one who has moved the least is next; of
 * equals, who came first. With equal strides that is going round. A tenant with a quarter of the stride has four turns for one of
 * another's, and nobody starves: who stands still is passed by finitely many turns.
 */
export class Round<P extends Place> {
  readonly #strideOf: (place: P) => number;
  /** Those with something waiting, next one first. */
  #places: P[] = [];
  /** Where the one stood that was served last. Never goes back. */
  #base = 0;

  /** A stride is above zero; 1 is the usual one. */
  constructor(strideOf: (place: P) => number) {
    this.#strideOf = strideOf;
  }

  get first(): P | undefined {
    return this.#places[0];
  }

  [Symbol.iterator](): Iterator<P> {
    return this.#places[Symbol.iterator]();
  }

  some(test: (place: P) => boolean): boolean {
    return this.#places.some(test);
  }

  /** It has something waiting from now on. What it did not use while it had nothing is gone; what it owes is not. */
  join(place: P): void {
    assert(!this.#places.includes(place), 'a tenant stands in a round once');
    place.pass = Math.max(place.pass, this.#base + Math.min(1, this.#strideOf(place)));
    this.#insert(place);
  }

  /** It had a turn, and has more waiting or not. Turns that it let pass, as at a ceiling of its own, are not made up for. */
  served(place: P, hasMore: boolean): void {
    this.#base = Math.max(this.#base, place.pass);
    place.pass = this.#base + this.#strideOf(place);
    this.leave(place);
    if (hasMore) this.#insert(place);
  }

  /** It has nothing waiting any more. */
  leave(place: P): void {
    this.#places = this.#places.filter((each) => each !== place);
  }

  #insert(place: P): void {
    const at = this.#places.findIndex((each) => each.pass > place.pass);
    if (at < 0) this.#places.push(place);
    else this.#places.splice(at, 0, place);
  }
}
