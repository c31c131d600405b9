/**
 * The successors of a few states at once, as what each changed in its state. They are gathered before any of them is looked up: then the
 * look-ups wait for memory together, and only what is new is ever put together again.
 */
import { ACTIONS_MAX, type Model } from './model.js';
import { Fingerprint } from './table.js';

/** States that are gathered at once. More look-ups than these lead to do not wait together. */
export const STATES_AT_ONCE = 16;
const SUCCESSORS_MAX = STATES_AT_ONCE * ACTIONS_MAX;

export class Successors {
  /** Of all states that were gathered since `clear`. */
  count = 0;
  readonly actions: Int32Array = new Int32Array(SUCCESSORS_MAX);
  readonly low: Int32Array = new Int32Array(SUCCESSORS_MAX);
  readonly high: Int32Array = new Int32Array(SUCCESSORS_MAX);
  readonly touched: Int32Array = new Int32Array(SUCCESSORS_MAX);
  readonly #lengths = new Int32Array(SUCCESSORS_MAX);
  readonly #starts = new Int32Array(SUCCESSORS_MAX + 1);
  readonly #own = new Int32Array(ACTIONS_MAX);
  readonly #places: Int32Array;
  readonly #values: Int32Array;
  readonly #model: Model;
  readonly #words: Int32Array;
  /** The first word of each part, and behind the last the length of the record. */
  readonly #parts: Int32Array;
  readonly #print = new Fingerprint();

  constructor(model: Model, words: Int32Array) {
    this.#model = model;
    this.#words = words;
    this.#parts = Int32Array.from([...model.parts, words.length]);
    this.#places = new Int32Array(SUCCESSORS_MAX * words.length);
    this.#values = new Int32Array(SUCCESSORS_MAX * words.length);
  }

  clear(): void {
    this.count = 0;
  }

  /**
   * Takes every action in turn, and adds what comes of it. The model is in the state whose `length` words lie in `piece` from `at` on, with
   * this fingerprint, before and after.
   */
  gather(piece: Int32Array, at: number, length: number, low: number, high: number): void {
    const model = this.#model;
    const words = this.#words;
    const print = this.#print;
    const own = this.#own;
    const places = this.#places;
    const starts = this.#starts;
    const base = this.count;
    const count = model.actions(own);
    let to = starts[base];
    for (let a = 0; a < count; a++) {
      const action = own[a];
      const touched = model.next(action);
      const used = model.wordsUsed();
      print.low = low;
      print.high = high;
      const from = to;
      to = this.#compare(piece, at, length, used, touched, from);
      const index = base + a;
      this.actions[index] = action;
      this.low[index] = print.low;
      this.high[index] = print.high;
      this.touched[index] = touched;
      this.#lengths[index] = used;
      starts[index + 1] = to;
      for (let i = from; i < to; i++) words[places[i]] = piece[at + places[i]];
    }
    this.count = base + count;
  }

  #compare(piece: Int32Array, base: number, length: number, used: number, touched: number, from: number): number {
    const words = this.#words;
    const print = this.#print;
    const places = this.#places;
    const values = this.#values;
    const parts = this.#parts;
    const shared = Math.min(used, length);
    let at = from;
    for (let part = 0; part < parts.length - 1; part++) {
      if (((touched >> part) & 1) === 0) continue;
      const end = Math.min(parts[part + 1], shared);
      for (let i = parts[part]; i < end; i++) {
        const word = words[i];
        const old = piece[base + i];
        if (word === old) continue;
        places[at] = i;
        values[at++] = word;
        print.change(i, old, word);
      }
    }
    for (let i = shared; i < used; i++) {
      places[at] = i;
      values[at++] = words[i];
      print.add(i, words[i]);
    }
    for (let i = shared; i < length; i++) print.remove(i, piece[base + i]);
    return at;
  }

  /** Puts the model, which is in the state that it came from, into successor `index`, and returns its length in words. */
  enter(index: number): number {
    const words = this.#words;
    for (let i = this.#starts[index]; i < this.#starts[index + 1]; i++) words[this.#places[i]] = this.#values[i];
    return this.#lengths[index];
  }

  /** Puts the model back into the state that it came from. */
  leave(index: number, piece: Int32Array, at: number): void {
    const words = this.#words;
    for (let i = this.#starts[index]; i < this.#starts[index + 1]; i++)
      words[this.#places[i]] = piece[at + this.#places[i]];
  }
}
