/**
 * The graph's progress edges, compressed, and the question of liveness asked of them: is there, from every state, a path to a settled
 * one? That is so exactly if every strongly connected component that nothing leaves holds a settled state, so a circle in which
 * requests could run for ever counts as stuck only if nothing leads out of it, and it does count then.
 */
import type { BitSet } from './store.js';

/** Bytes of one piece. */
const PIECE_BYTES = 1 << 23;
/** States of one block: the reader starts at a block. */
const BLOCK_STATES = 256;
const VARINT_BYTES_MAX = 5;

export class EdgeLog {
  readonly #pieces: Uint8Array[] = [];
  /** Where each block begins, as piece * PIECE_BYTES + byte. */
  readonly #blocks: number[] = [];
  #at: number = PIECE_BYTES;
  #states = 0;
  count = 0;
  readonly #actionsMax: number;
  readonly #targets: number[] = [];

  constructor(actionsMax: number) {
    this.#actionsMax = actionsMax;
  }

  get bytes(): number {
    return this.#pieces.length * PIECE_BYTES + this.#blocks.length * 8;
  }

  #blockBytesMax(): number {
    return BLOCK_STATES * (this.#actionsMax + 1) * VARINT_BYTES_MAX;
  }

  /** The edges of the next state in the order of exploration: state 0, 1, 2 … */
  add(targets: Int32Array, count: number): void {
    if (this.#states % BLOCK_STATES === 0) this.#startBlock();
    const piece = this.#pieces[this.#pieces.length - 1];
    const from = this.#states++;
    let at = this.#at;
    piece[at++] = count;
    for (let i = 0; i < count; i++) {
      const difference = targets[i] - from;
      let value = difference < 0 ? -difference * 2 - 1 : difference * 2;
      while (value > 127) {
        piece[at++] = (value & 127) | 128;
        value >>>= 7;
      }
      piece[at++] = value;
    }
    this.#at = at;
    this.count += count;
  }

  #startBlock(): void {
    if (this.#at + this.#blockBytesMax() > PIECE_BYTES) {
      this.#pieces.push(new Uint8Array(PIECE_BYTES));
      this.#at = 0;
    }
    this.#blocks.push((this.#pieces.length - 1) * PIECE_BYTES + this.#at);
  }

  /**
   * Grows `settled` to all states from which it can be reached, and returns the lowest state that is not among them, and how many are
   * not. Blocks are walked from the last to the first, again and again until nothing changes: most edges lead forward.
   */
  stuck(settled: BitSet, states: number): { readonly first: number; readonly count: number } {
    settled.reserve(states);
    const open = new Uint8Array(this.#blocks.length).fill(1);
    let left = 0;
    for (let changed = true; changed; ) {
      changed = false;
      left = 0;
      for (let block = this.#blocks.length - 1; block >= 0; block--) {
        if (open[block] === 0) continue;
        const result = this.#settleBlock(block, settled);
        if (result.gained) changed = true;
        if (result.left === 0) open[block] = 0;
        left += result.left;
      }
    }
    let first = -1;
    if (left > 0) {
      first = 0;
      while (settled.has(first)) first++;
    }
    return { first, count: left };
  }

  readonly #starts = new Int32Array(BLOCK_STATES + 1);

  /** States of the block that are still not settled, and whether any became so. */
  #settleBlock(block: number, settled: BitSet): { readonly left: number; readonly gained: boolean } {
    const base = block * BLOCK_STATES;
    const count = Math.min(BLOCK_STATES, this.#states - base);
    this.#readBlock(block, base, count);
    const targets = this.#targets;
    let left = 0;
    let gained = false;
    for (let i = count - 1; i >= 0; i--) {
      if (settled.has(base + i)) continue;
      let reaches = false;
      for (let edge = this.#starts[i]; edge < this.#starts[i + 1] && !reaches; edge++) {
        reaches = settled.has(targets[edge]);
      }
      if (reaches) {
        settled.set(base + i);
        gained = true;
      } else left++;
    }
    return { left, gained };
  }

  #readBlock(block: number, base: number, count: number): void {
    const start = this.#blocks[block];
    const piece = this.#pieces[Math.floor(start / PIECE_BYTES)];
    let at = start % PIECE_BYTES;
    let edges = 0;
    for (let i = 0; i < count; i++) {
      this.#starts[i] = edges;
      const edgeCount = piece[at++];
      for (let e = 0; e < edgeCount; e++) {
        let value = 0;
        let shift = 0;
        let byte = piece[at++];
        while (byte > 127) {
          value |= (byte & 127) << shift;
          shift += 7;
          byte = piece[at++];
        }
        value |= byte << shift;
        value >>>= 0;
        this.#targets[edges++] = base + i + (value % 2 === 1 ? -((value + 1) / 2) : value / 2);
      }
    }
    this.#starts[count] = edges;
  }
}
