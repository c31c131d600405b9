import type { Clock, Timer } from '../../base/clock.js';
import type { SlotTable } from './slots.js';
import type { LlamaSlot } from './state.js';

/** Between two looks at slots whose request has gone here. */
export const LOOK_MS = 100;
/** The same once they stay busy: a server in a long batch looks for clients that have gone about once a second. */
export const LOOK_LATER_MS = 1_000;
/** A request of which nothing came may not have begun there: its slot has to be seen idle for so long. */
export const SETTLE_MS = 1_500;
/** Where the server does not show its slots, one is taken as left after so long: twice its own time for finding out, and a batch. */
export const UNSEEN_MS = 10_000;
/** Looks with the short pause. */
const LOOKS_SOON_MAX = 20;

export interface LeaveWatchOptions {
  readonly clock: Clock;
  readonly table: SlotTable;
  /** `/slots` as it is now. `hidden`: the server does not show them; `failed`: it did not answer. */
  readonly look: () => Promise<readonly LlamaSlot[] | 'hidden' | 'failed'>;
  /** @default SETTLE_MS */
  readonly settleMs?: number;
  /** @default UNSEEN_MS */
  readonly unseenMs?: number;
}

interface Leaving {
  readonly sinceMs: number;
  readonly hadAnswer: boolean;
  idleSinceMs: number | null;
}

/** Looks at the server's slots until those whose request was cut short are idle. While none is, it looks at nothing. */
export class LeaveWatch {
  readonly #o: LeaveWatchOptions;
  readonly #leaving = new Map<number, Leaving>();
  #timer: Timer | null = null;
  #looks = 0;
  #isLooking = false;
  #isClosed = false;

  constructor(options: LeaveWatchOptions) {
    this.#o = options;
  }

  /** The slot's request was cut short here; `hadAnswer`: some of its answer had come. */
  watch(slot: number, hadAnswer: boolean): void {
    this.#leaving.set(slot, { sinceMs: this.#o.clock.nowMs(), hadAnswer, idleSinceMs: null });
    this.#looks = 0;
    this.#arm(0);
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#leaving.clear();
  }

  #arm(waitMs: number): void {
    if (this.#isClosed || this.#isLooking) return;
    this.#timer?.cancel();
    this.#timer = this.#o.clock.after(waitMs, () => void this.#look());
  }

  async #look(): Promise<void> {
    this.#timer = null;
    this.#isLooking = true;
    // What goes away while the server answers is not in this answer.
    const before = new Map(this.#leaving);
    const seen = await this.#o.look();
    this.#isLooking = false;
    if (this.#isClosed) return;
    const nowMs = this.#o.clock.nowMs();
    for (const [slot, leaving] of before) {
      if (this.#leaving.get(slot) === leaving && this.#isLeft(slot, leaving, seen, nowMs)) {
        this.#leaving.delete(slot);
        this.#o.table.left([slot]);
      }
    }
    if (this.#leaving.size > 0) this.#arm(++this.#looks < LOOKS_SOON_MAX ? LOOK_MS : LOOK_LATER_MS);
  }

  #isLeft(slot: number, leaving: Leaving, seen: readonly LlamaSlot[] | 'hidden' | 'failed', nowMs: number): boolean {
    const { settleMs = SETTLE_MS, unseenMs = UNSEEN_MS } = this.#o;
    if (seen === 'failed') return false;
    if (seen === 'hidden') return nowMs - leaving.sinceMs >= unseenMs;
    const there = seen.find(({ id }) => id === slot);
    // A slot that the server does not have any more holds nothing.
    if (there?.isProcessing === true) {
      leaving.idleSinceMs = null;
      return false;
    }
    leaving.idleSinceMs ??= nowMs;
    return leaving.hadAnswer || nowMs - leaving.idleSinceMs >= settleMs;
  }
}
