/**
 * The successors of one state, as what each changed in it. They are gathered before any of them is looked up: then the look-ups wait for
 * memory together, and only what is new is ever put together again.
 */
import { ACTIONS_MAX, type Model } from './model.js';
import { Fingerprint } from './table.js';

export class Successors {
  count = 0;
  readonly actions: Int32Array = new Int32Array(ACTIONS_MAX);
  readonly low: Int32Array = new Int32Array(ACTIONS_MAX);
  readonly high: Int32Array = new Int32Array(ACTIONS_MAX);
  readonly touched: Int32Array = new Int32Array(ACTIONS_MAX);
  readonly #lengths = new Int32Array(ACTIONS_MAX);
  readonly #starts = new Int32Array(ACTIONS_MAX + 1);
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
    this.#places = new Int32Array(ACTIONS_MAX * words.length);
    this.#values = new Int32Array(ACTIONS_MAX * words.length);
  }

  /** Takes every action in turn. The model is in the state `state` (`length` words, with this fingerprint), before and after. */
  gather(state: Int32Array, length: number, low: number, high: number): void {
    const model = this.#model;
    const words = this.#words;
    const print = this.#print;
    this.count = model.actions(this.actions);
    let at = 0;
    for (let a = 0; a < this.count; a++) {
      const touched = model.next(this.actions[a]);
      const used = model.wordsUsed();
      print.low = low;
      print.high = high;
      this.#starts[a] = at;
      at = this.#compare(state, length, used, touched, at);
      this.low[a] = print.low;
      this.high[a] = print.high;
      this.touched[a] = touched;
      this.#lengths[a] = used;
      for (let i = this.#starts[a]; i < at; i++) words[this.#places[i]] = state[this.#places[i]];
    }
    this.#starts[this.count] = at;
  }

  #compare(state: Int32Array, length: number, used: number, touched: number, from: number): number {
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
        if (word === state[i]) continue;
        places[at] = i;
        values[at++] = word;
        print.change(i, state[i], word);
      }
    }
    for (let i = shared; i < used; i++) {
      places[at] = i;
      values[at++] = words[i];
      print.add(i, words[i]);
    }
    for (let i = shared; i < length; i++) print.remove(i, state[i]);
    return at;
  }

  /** Puts the model into successor `index`, and returns its length in words. */
  enter(index: number): number {
    const words = this.#words;
    for (let i = this.#starts[index]; i < this.#starts[index + 1]; i++) words[this.#places[i]] = this.#values[i];
    return this.#lengths[index];
  }

  /** Puts the model back into the state that it came from. */
  leave(index: number, state: Int32Array): void {
    const words = this.#words;
    for (let i = this.#starts[index]; i < this.#starts[index + 1]; i++) words[this.#places[i]] = state[this.#places[i]];
  }
}
