/** Breadth-first exploration: shortest counterexamples, bounded memory that is said, liveness over the whole graph that was seen. */
import { assert } from '../base/assert.js';
import { threadCpuS } from '../base/cpu.js';
import { EdgeLog } from './edges.js';
import { ACTION_INDEX_MAX, ACTIONS_MAX, ALL_PARTS, type Broken, type Model } from './model.js';
import { BitSet, IntList, StateQueue } from './store.js';
import { STATES_AT_ONCE, Successors } from './successors.js';
import { collisionProbability, Fingerprint, StateTable } from './table.js';

export type VerdictWord = 'holds' | 'violated' | 'incomplete';

export interface Violation {
  readonly kind: 'always' | 'liveness';
  readonly invariant: string;
  readonly words: string;
  /** The actions that lead from the first state to the broken one; no shorter way does. */
  readonly path: readonly number[];
}

export interface Exploration {
  readonly verdict: VerdictWord;
  /** Why the verdict is "incomplete"; empty otherwise. */
  readonly reasons: readonly string[];
  readonly distinct: number;
  readonly generated: number;
  readonly depth: number;
  readonly cpuS: number;
  /** Distinct states per CPU-second of this thread, until the last state was met. */
  readonly rate: number;
  readonly memoryBytes: number;
  readonly collisionProbability: number;
  /** Times that each kind of action was taken. */
  readonly coverage: Readonly<Record<string, number>>;
  /** The depth at which each `sometimes` was first met; null: never. */
  readonly witnesses: Readonly<Record<string, number | null>>;
  readonly violation: Violation | null;
  /** States from which nothing settled can be reached; null where that was not checked. */
  readonly stuck: number | null;
  readonly progressEdges: number;
}

export interface ExploreOptions {
  /** All stores together. A space that needs more is cut, and the verdict says so. */
  readonly memoryBytesMax?: number;
  /** The most distinct states; for tests, and for a quick look. */
  readonly statesMax?: number;
  /** False: safety only; no edges are kept. */
  readonly liveness?: boolean;
  /** False: neither actions that never fired nor witnesses never seen make the verdict incomplete. */
  readonly coverage?: boolean;
}

export const MEMORY_BYTES_DEFAULT: number = 3 * 2 ** 30;
/** The clock of a thread may stand still for a tick; a shorter run than this has no rate. */
const CPU_S_MIN = 0.004;
/** States between two looks at the memory. */
const LOOK_EVERY = 4096;
/** What the queue, the list of parents and the block of edges may grow by between two looks. */
const SLACK_BYTES = 40 << 20;

export function explore(model: Model, options: ExploreOptions = {}): Exploration {
  return new Explorer(model, options).run();
}

/** States that are explored together: where each lies in the queue, and where its successors end. */
class Batch {
  count = 0;
  readonly pieces: Int32Array[] = [];
  readonly ats: Int32Array = new Int32Array(STATES_AT_ONCE);
  readonly lengths: Int32Array = new Int32Array(STATES_AT_ONCE);
  readonly ends: Int32Array = new Int32Array(STATES_AT_ONCE);
}

class Explorer {
  readonly #model: Model;
  readonly #options: ExploreOptions;
  readonly #words: Int32Array;
  readonly #table = new StateTable();
  readonly #queue = new StateQueue();
  readonly #parents = new IntList();
  readonly #via = new IntList();
  readonly #settled = new BitSet();
  readonly #print = new Fingerprint();
  readonly #image: Int32Array;
  readonly #taken: Float64Array;
  readonly #isProgress: Uint8Array;
  readonly #targets: Int32Array = new Int32Array(ACTIONS_MAX);
  /** The state of the batch that the model is in; -1: another one. */
  #isAt = -1;
  readonly #firstSeen: number[];
  #edges: EdgeLog | null;
  #missing: number[];
  #generated = 0;
  #outside = 0;
  #violation: Violation | null = null;
  readonly #reasons: string[] = [];
  #memoryBytes = 0;

  constructor(model: Model, options: ExploreOptions) {
    this.#model = model;
    this.#options = options;
    assert(
      model.width % 4 === 0 && model.cells.byteLength === model.width,
      'a record is whole words, in its own buffer',
    );
    this.#words = new Int32Array(model.cells.buffer, model.cells.byteOffset, model.width / 4);
    this.#image = new Int32Array(model.width / 4);
    this.#taken = new Float64Array(model.kinds.length);
    this.#isProgress = Uint8Array.from(model.kinds, (kind) => (kind.isProgress ? 1 : 0));
    this.#edges = options.liveness === false ? null : new EdgeLog(ACTIONS_MAX);
    this.#firstSeen = model.properties.sometimes.map(() => -1);
    this.#missing = model.properties.sometimes.map((_, index) => index);
  }

  run(): Exploration {
    const startS = threadCpuS();
    this.#start();
    this.#explore();
    const exploreS = threadCpuS() - startS;
    const isWhole = this.#violation === null && this.#reasons.length === 0;
    const stuck = isWhole ? this.#checkLiveness() : null;
    if (isWhole && this.#violation === null) this.#checkCoverage();
    this.#lookAtMemory();
    const distinct = this.#table.count;
    return {
      verdict: this.#violation !== null ? 'violated' : this.#reasons.length > 0 ? 'incomplete' : 'holds',
      reasons: this.#violation === null ? this.#reasons : [],
      distinct,
      generated: this.#generated,
      depth: this.#depthOf(distinct - 1),
      cpuS: threadCpuS() - startS,
      rate: Math.round(distinct / Math.max(exploreS, CPU_S_MIN)),
      memoryBytes: this.#memoryBytes,
      collisionProbability: collisionProbability(distinct),
      coverage: Object.fromEntries(this.#model.kinds.map(({ name }, kind) => [name, this.#taken[kind]])),
      witnesses: this.#witnesses(),
      violation: this.#violation,
      stuck,
      progressEdges: this.#edges?.count ?? 0,
    };
  }

  #start(): void {
    this.#model.init();
    const length = this.#model.wordsUsed();
    const print = this.#print;
    print.of(this.#words, length);
    const { low, high } = print;
    const id =
      this.#model.symmetry === undefined
        ? this.#table.add(low, high)
        : this.#addLeast(length, low, high, this.#model.symmetry);
    this.#welcome(id, -1, -1, ALL_PARTS, length, low, high);
  }

  #explore(): void {
    const { statesMax = Number.POSITIVE_INFINITY } = this.#options;
    const batch = new Batch();
    const successors = new Successors(this.#model, this.#words);
    let lookAt = 0;
    for (let id = 0; id < this.#table.count; id += batch.count) {
      if (id >= lookAt) {
        if (!this.#mayGoOn()) return;
        lookAt += LOOK_EVERY;
      }
      this.#gather(batch, successors, Math.min(STATES_AT_ONCE, this.#table.count - id));
      this.#table.warm(successors.low, successors.count);
      for (let b = 0; b < batch.count; b++) {
        if (this.#table.count >= statesMax) return this.#stop(`the bound of ${statesMax} states was reached`);
        this.#meetAll(batch, b, successors, id + b);
        if (this.#violation !== null) return;
      }
      this.#queue.release();
    }
  }

  /** The next `count` states of the queue, and what comes of each. */
  #gather(batch: Batch, successors: Successors, count: number): void {
    const queue = this.#queue;
    const words = this.#words;
    successors.clear();
    for (let b = 0; b < count; b++) {
      queue.next();
      const { piece, at, length } = queue;
      for (let i = 0; i < length; i++) words[i] = piece[at + i];
      batch.pieces[b] = piece;
      batch.ats[b] = at;
      batch.lengths[b] = length;
      if (this.#model.boundary()) successors.gather(piece, at, length, queue.low, queue.high);
      else if (this.#outside++ === 0) this.#stop('states outside of the boundary were not explored');
      batch.ends[b] = successors.count;
    }
    batch.count = count;
  }

  /** Looks up every successor of one state of the batch. */
  #meetAll(batch: Batch, b: number, successors: Successors, id: number): void {
    const { actions } = successors;
    const begin = b === 0 ? 0 : batch.ends[b - 1];
    const end = batch.ends[b];
    const targets = this.#targets;
    this.#isAt = -1;
    let edges = 0;
    for (let a = begin; a < end; a++) {
      const kind = (actions[a] / ACTION_INDEX_MAX) | 0;
      this.#taken[kind]++;
      const to = this.#meet(successors, a, id, batch, b);
      if (this.#isProgress[kind] === 1 && to !== id) targets[edges++] = to;
      if (this.#violation !== null) return;
    }
    this.#generated += end - begin;
    this.#edges?.add(targets, edges);
  }

  #stop(reason: string): void {
    this.#reasons.push(reason);
  }

  /** The number of a successor; a new one is checked and waits to be explored. */
  #meet(successors: Successors, index: number, from: number, batch: Batch, b: number): number {
    const { symmetry } = this.#model;
    const low = successors.low[index];
    const high = successors.high[index];
    if (symmetry !== undefined) {
      this.#return(batch, b);
      const length = successors.enter(index);
      const id = this.#addLeast(length, low, high, symmetry);
      if (this.#table.isNew)
        this.#welcome(id, from, successors.actions[index], successors.touched[index], length, low, high);
      // An image is written all over the record.
      this.#isAt = -1;
      return id;
    }
    const id = this.#table.add(low, high);
    if (!this.#table.isNew) return id;
    if (this.#isAt !== b) this.#return(batch, b);
    const length = successors.enter(index);
    this.#welcome(id, from, successors.actions[index], successors.touched[index], length, low, high);
    successors.leave(index, batch.pieces[b], batch.ats[b]);
    return id;
  }

  /** Puts the model into state `b` of the batch. */
  #return(batch: Batch, b: number): void {
    const words = this.#words;
    const piece = batch.pieces[b];
    const at = batch.ats[b];
    const length = batch.lengths[b];
    for (let i = 0; i < length; i++) words[i] = piece[at + i];
    this.#isAt = b;
  }

  /** The model is in a state that was not met before. */
  #welcome(id: number, from: number, action: number, touched: number, length: number, low: number, high: number): void {
    const { properties } = this.#model;
    this.#parents.push(from);
    this.#via.push(action);
    this.#queue.push(this.#words, length, low, high);
    const broken = properties.always(touched);
    if (broken !== null) this.#violation = { kind: 'always', ...broken, path: this.#pathTo(id) };
    if (this.#edges !== null && properties.settled()) this.#settled.set(id);
    if (this.#missing.length > 0) this.#look(id);
  }

  /** Of all images of the state the one with the least fingerprint stands for all of them. */
  #addLeast(length: number, ownLow: number, ownHigh: number, symmetry: NonNullable<Model['symmetry']>): number {
    const words = this.#words;
    const print = this.#print;
    let low = ownLow;
    let high = ownHigh;
    const kept = this.#image;
    for (let i = 0; i < length; i++) kept[i] = words[i];
    for (let image = 0; image < symmetry.count; image++) {
      if (image > 0) for (let i = 0; i < length; i++) words[i] = kept[i];
      symmetry.image(image);
      print.of(words, this.#model.wordsUsed());
      if (image > 0 && (print.low > low || (print.low === low && print.high >= high))) continue;
      low = print.low;
      high = print.high;
    }
    for (let i = 0; i < length; i++) words[i] = kept[i];
    return this.#table.add(low, high);
  }

  #look(id: number): void {
    const { sometimes } = this.#model.properties;
    this.#missing = this.#missing.filter((index) => {
      if (!sometimes[index].holds()) return true;
      this.#firstSeen[index] = id;
      return false;
    });
  }

  #lookAtMemory(): number {
    const bytes =
      this.#table.bytes +
      this.#queue.bytes +
      this.#parents.bytes +
      this.#via.bytes +
      this.#settled.bytes +
      (this.#edges?.bytes ?? 0);
    this.#memoryBytes = Math.max(this.#memoryBytes, bytes);
    return bytes;
  }

  /** Where memory ends, the edges go first: what is left still proves safety. */
  #mayGoOn(): boolean {
    const bytesMax = this.#options.memoryBytesMax ?? MEMORY_BYTES_DEFAULT;
    const wanted = (): number => this.#lookAtMemory() + this.#table.bytesToGrow(LOOK_EVERY * ACTIONS_MAX) + SLACK_BYTES;
    if (wanted() <= bytesMax) return true;
    if (this.#edges !== null) {
      this.#edges = null;
      this.#reasons.push('liveness: its edges do not fit into the memory');
      if (wanted() <= bytesMax) return true;
    }
    this.#reasons.push(`the bound of ${bytesMax} bytes was reached`);
    return false;
  }

  #checkLiveness(): number | null {
    if (this.#edges === null) return null;
    const { first, count } = this.#edges.stuck(this.#settled, this.#table.count);
    if (count > 0) {
      const words = `${count} states from which nothing can settle any more, whatever the system does`;
      this.#violation = { kind: 'liveness', invariant: 'everythingCanSettle', words, path: this.#pathTo(first) };
    }
    return count;
  }

  #checkCoverage(): void {
    if (this.#options.coverage === false) return;
    const unused = this.#model.kinds.filter(({ isExpected }, kind) => isExpected && this.#taken[kind] === 0);
    for (const { name } of unused) this.#reasons.push(`the action "${name}" never fired`);
    for (const index of this.#missing) {
      this.#reasons.push(`"${this.#model.properties.sometimes[index].name}" was never seen`);
    }
  }

  #witnesses(): Record<string, number | null> {
    const found: Record<string, number | null> = {};
    for (const [index, { name }] of this.#model.properties.sometimes.entries()) {
      const id = this.#firstSeen[index];
      found[name] = id < 0 ? null : this.#depthOf(id);
    }
    return found;
  }

  #depthOf(id: number): number {
    return this.#pathTo(id).length;
  }

  #pathTo(id: number): number[] {
    const path: number[] = [];
    for (let state = id; this.#parents.at(state) >= 0; state = this.#parents.at(state)) path.push(this.#via.at(state));
    return path.reverse();
  }
}

/** The invariant that breaks at the end of a path, told again from the first state. */
export function replayPath(
  model: Model,
  path: readonly number[],
  at: (step: number, action: number) => void,
): Broken | null {
  model.init();
  for (const [step, action] of path.entries()) {
    at(step, action);
    model.next(action);
  }
  return model.properties.always(ALL_PARTS);
}
