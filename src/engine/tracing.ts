/**
 * The trace of an engine whose machines run in several threads. Each record takes the next number of a counter that all threads share,
 * before any effect of its step is carried out; so a message's receipt always has a higher number than its sending, and the numbers are
 * an order in which it all could have happened. The main thread joins what the workers send by these numbers.
 */
import { newTraceKey, type Tapped, traceMachine, type TraceWriter } from '../handoff/trace.js';
import type { Role } from './parts.js';

/** One record on its way from a worker to the main thread. */
export interface TraceLetter {
  readonly stamp: number;
  /** As `traceMachine` gives it. */
  readonly tail: string;
}

/** What the threads of a trace have in common; can be posted. */
export interface TraceShare {
  /** The counter, one 64-bit cell. */
  readonly stamps: SharedArrayBuffer;
  readonly key: Uint8Array;
}

/** From now on `post` gets the machine's records. */
export function traceInto(machine: Tapped, { stamps, key }: TraceShare, post: (letter: TraceLetter) => void): void {
  const counter = new BigInt64Array(stamps);
  traceMachine(machine, key, (tail) => post({ stamp: Number(Atomics.add(counter, 0, 1n)), tail }));
}

/** Joins the records of all threads into one file, in the order of their stamps. */
export class TraceJoin {
  /** To be handed to the workers. */
  readonly share: TraceShare = { stamps: new SharedArrayBuffer(8), key: newTraceKey() };
  readonly #writer: TraceWriter;
  /** Records that came before an earlier one; those of what the threads send at one time. */
  readonly #early = new Map<number, string>();
  /** Below this nothing of the worker is still to come: what it sends comes in its order. */
  readonly #from: Record<Role, number> = { prefill: 0, decode: 0 };
  #next = 0;

  constructor(writer: TraceWriter) {
    this.#writer = writer;
  }

  /** A machine of this thread. */
  attach(machine: Tapped): void {
    traceInto(machine, this.share, ({ stamp, tail }) => this.#put(stamp, tail));
  }

  /** A worker is about to start: its records will be above all that there are. */
  begins(role: Role): void {
    this.#from[role] = Number(Atomics.load(new BigInt64Array(this.share.stamps), 0));
  }

  take(role: Role, { stamp, tail }: TraceLetter): void {
    this.#from[role] = stamp + 1;
    this.#put(stamp, tail);
  }

  /** The worker's thread is over and all that it sent has come. A number that it took and never used is not waited for. */
  ended(role: Role): void {
    this.#from[role] = Number.POSITIVE_INFINITY;
    this.#goOn();
  }

  /** No thread sends any more: the rest, and the last line. */
  finish(): void {
    this.ended('prefill');
    this.ended('decode');
    this.#writer.end();
  }

  #put(stamp: number, tail: string): void {
    this.#early.set(stamp, tail);
    this.#goOn();
  }

  #goOn(): void {
    while (this.#early.size > 0) {
      const tail = this.#early.get(this.#next);
      if (tail !== undefined) {
        this.#early.delete(this.#next);
        this.#writer.record(tail);
      } else if (this.#from.prefill <= this.#next || this.#from.decode <= this.#next) return;
      this.#next++;
    }
  }
}
