import { assert } from './assert.js';

/** First in, first out, with a bound that is visible: `push` answers false when full. */
export class BoundedQueue<T> {
  readonly capacity: number;
  /** What has left is overwritten at once: a queue must not keep a prompt alive. */
  #items: (T | undefined)[] = [];
  #head = 0;

  constructor(capacity: number) {
    assert(capacity > 0, 'a queue must hold at least one item');
    this.capacity = capacity;
  }

  get size(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): boolean {
    if (this.size >= this.capacity) return false;
    this.#items.push(item);
    return true;
  }

  peek(): T | undefined {
    return this.#items[this.#head];
  }

  shift(): T | undefined {
    if (this.size === 0) return undefined;
    const item = this.#items[this.#head]!;
    this.#items[this.#head] = undefined;
    this.#head++;
    if (this.size === 0) {
      this.#items.length = 0;
      this.#head = 0;
      return item;
    }
    if (this.#head > 64 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Takes one item out, wherever it stands. */
  remove(item: T): boolean {
    const at = this.#items.indexOf(item, this.#head);
    if (at < 0) return false;
    this.#items.splice(at, 1);
    return true;
  }

  *[Symbol.iterator](): IterableIterator<T> {
    for (let i = this.#head; i < this.#items.length; i++) yield this.#items[i]!;
  }
}
