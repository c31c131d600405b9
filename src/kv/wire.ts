import { assert } from '../base/assert.js';
import { Prng } from '../base/prng.js';
import { PAGE_HEADER_WORDS, type PagePool } from './pool.js';
import type { RegistrationHandle, RegistrationTable } from './registration.js';
import { beginWrite, encodeTag, type PageTag, writeHeader } from './tag.js';

/** Page writes that wait to land: some pages each for a few dozen long prompts. When full, `post` answers false. */
export const POSTED_WRITES_MAX = 4_096;

/** One write, as a fault's predicate sees it. */
export interface PostedWrite {
  readonly room: bigint;
  /** Of the lease that the write is meant for. */
  readonly slot: number;
  readonly attempt: number;
  readonly sourcePage: number;
  readonly targetPage: number;
}

export interface WritePost extends PostedWrite {
  /** Copied when posted; the payload is read when it lands. */
  readonly tag: PageTag;
}

export type WritePredicate = (write: PostedWrite) => boolean;
export type WriteOutcome = 'landed' | 'refused';

export interface WireOptions {
  /** The prefill's own pool. */
  readonly source: PagePool;
  /** Decode's pool, attached. */
  readonly target: PagePool;
  readonly registrations: RegistrationTable;
  /** Writes are posted under this registration until `useRegistration`. */
  readonly handle: RegistrationHandle;
  /** How long a write travels, drawn for each; null: it lands at the next poll. */
  readonly delay: { readonly seed: number; readonly minMs: number; readonly maxMs: number } | null;
  /** Lets writes overtake each other, by draws from this seed; null: they land in posting order, as on one RDMA connection. */
  readonly reorder: { readonly seed: number } | null;
  /** Called for every write once it can no longer land: it has landed, or has been refused. */
  readonly onSettled?: (slot: number, attempt: number, outcome: WriteOutcome) => void;
}

interface Entry {
  room: bigint;
  slot: number;
  attempt: number;
  sourcePage: number;
  targetPage: number;
  handle: RegistrationHandle;
  dueMs: number;
  /** Among the writes that land in one poll, lower goes first. */
  rank: number;
  readonly header: Int32Array;
}

/**
 * One-sided page writes, as RDMA does them. Lives in the prefill's thread; nobody on decode's side takes part in a landing.
 * Payload and header of a page are one write, and the bytes are read when it lands, so a source page that prefill uses again
 * too early sends the wrong bytes, as it would in life.
 *
 * The order of bytes: mark, payload, header. The header is last so that a tag never vouches for bytes that are not there yet;
 * the mark is first so that the old tag never vouches for bytes that are being replaced (`read-guard.ts`).
 */
export class Wire {
  readonly #options: WireOptions;
  readonly #delays: Prng | null;
  readonly #ranks: Prng | null;
  #handle: RegistrationHandle;
  /** In posting order. */
  #waiting: Entry[] = [];
  readonly #spare: Entry[] = [];
  readonly #due: Entry[] = [];
  readonly #holds = new Set<WritePredicate>();
  /** Writes not settled, by attempt. Bounded by POSTED_WRITES_MAX, since a count of zero is taken out. */
  readonly #open = new Map<number, number>();
  #posted = 0;
  #lastDueMs = 0;
  #tears: WritePredicate | null = null;
  landed = 0;
  refused = 0;
  /** Landings of which only the header arrived (the fault `tornWrites`). */
  torn = 0;

  constructor(options: WireOptions) {
    const { source, target, delay, reorder } = options;
    assert(source.geometry.pageBytes === target.geometry.pageBytes, 'both ends of a wire have pages of one shape');
    assert(delay === null || (delay.minMs >= 0 && delay.minMs <= delay.maxMs), 'a delay lies between its bounds');
    this.#options = options;
    this.#handle = options.handle;
    this.#delays = delay === null ? null : new Prng(delay.seed);
    this.#ranks = reorder === null ? null : new Prng(reorder.seed);
  }

  /** Writes posted from now on go under another registration; those that wait keep theirs. */
  useRegistration(handle: RegistrationHandle): void {
    this.#handle = handle;
  }

  /** Queues a write. False, and nothing queued, where the wire is full. */
  post(post: WritePost, nowMs: number): boolean {
    const { source, target } = this.#options;
    source.assertPage(post.sourcePage);
    target.assertPage(post.targetPage);
    assert(post.tag.filled >= 1 && post.tag.filled <= source.geometry.pageTokens, 'a page travels with tokens in it');
    if (this.#waiting.length >= POSTED_WRITES_MAX) return false;
    const entry = this.#spare.pop() ?? newEntry();
    entry.room = post.room;
    entry.slot = post.slot;
    entry.attempt = post.attempt;
    entry.sourcePage = post.sourcePage;
    entry.targetPage = post.targetPage;
    entry.handle = this.#handle;
    entry.dueMs = this.#draw(nowMs);
    entry.rank = this.#ranks === null ? this.#posted : this.#ranks.u32();
    encodeTag(post.tag, entry.header, 0);
    this.#posted++;
    this.#waiting.push(entry);
    const key = attemptKey(post.slot, post.attempt);
    this.#open.set(key, (this.#open.get(key) ?? 0) + 1);
    return true;
  }

  /** Lands what is due and not held. Answers how many writes were settled, refused ones included. */
  poll(nowMs: number): number {
    const due = this.#due;
    assert(due.length === 0, 'a wire is not polled from within onSettled');
    if (this.#waiting.length === 0) return 0;
    let kept = 0;
    for (const entry of this.#waiting) {
      if (entry.dueMs <= nowMs && !this.#isHeld(entry)) due.push(entry);
      else this.#waiting[kept++] = entry;
    }
    this.#waiting.length = kept;
    if (this.#ranks !== null) due.sort((a, b) => a.rank - b.rank);
    const settled = due.length;
    for (const entry of due) this.#settle(entry, this.#land(entry));
    due.length = 0;
    return settled;
  }

  /** When the next write that is not held is due; null where none waits. */
  nextDueMs(): number | null {
    let next: number | null = null;
    for (const entry of this.#waiting) {
      if ((next === null || entry.dueMs < next) && !this.#isHeld(entry)) next = entry.dueMs;
    }
    return next;
  }

  /** Writes of one attempt that may still land. Zero: the attempt is quiescent on this wire. */
  inFlight(slot: number, attempt: number): number {
    return this.#open.get(attemptKey(slot, attempt)) ?? 0;
  }

  /** All writes that may still land. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Keeps back the writes that `predicate` chooses, those that wait and those to come, until `release(predicate)`. */
  hold(predicate: WritePredicate): void {
    this.#holds.add(predicate);
  }

  /** Lets held writes go at the next poll: those of one predicate, or all. */
  release(predicate?: WritePredicate): void {
    if (predicate === undefined) this.#holds.clear();
    else this.#holds.delete(predicate);
  }

  /** A fault: of the chosen writes the header lands and the payload does not. null: none. */
  tearWrites(predicate: WritePredicate | null): void {
    this.#tears = predicate;
  }

  #land(entry: Entry): WriteOutcome {
    const { source, target, registrations } = this.#options;
    if (!registrations.enter(entry.handle)) return 'refused';
    try {
      if (this.#tears?.(entry)) {
        this.torn++;
      } else {
        beginWrite(target, entry.targetPage);
        source.copyPayload(entry.sourcePage, target, entry.targetPage);
      }
      writeHeader(target, entry.targetPage, entry.header, 0);
    } finally {
      registrations.leave(entry.handle);
    }
    return 'landed';
  }

  #settle(entry: Entry, outcome: WriteOutcome): void {
    this[outcome]++;
    const { slot, attempt } = entry;
    const key = attemptKey(slot, attempt);
    const open = this.#open.get(key) ?? 0;
    assert(open > 0, 'a write settles once');
    if (open === 1) this.#open.delete(key);
    else this.#open.set(key, open - 1);
    this.#spare.push(entry);
    this.#options.onSettled?.(slot, attempt, outcome);
  }

  /** In order, a write is not due before the one posted before it: it queues behind it on the connection. */
  #draw(nowMs: number): number {
    const { delay } = this.#options;
    if (delay === null || this.#delays === null) return nowMs;
    const dueMs = nowMs + delay.minMs + this.#delays.unit() * (delay.maxMs - delay.minMs);
    if (this.#ranks !== null) return dueMs;
    this.#lastDueMs = Math.max(this.#lastDueMs, dueMs);
    return this.#lastDueMs;
  }

  #isHeld(entry: Entry): boolean {
    for (const predicate of this.#holds) if (predicate(entry)) return true;
    return false;
  }
}

function newEntry(): Entry {
  return {
    room: 0n,
    slot: 0,
    attempt: 0,
    sourcePage: 0,
    targetPage: 0,
    handle: 0,
    dueMs: 0,
    rank: 0,
    header: new Int32Array(PAGE_HEADER_WORDS),
  };
}

/** One number for slot and attempt: exact, since slots stay below 2^20 and attempts below 2^32. */
function attemptKey(slot: number, attempt: number): number {
  assert(slot >= 0 && slot < 1 << 20 && attempt >= 0, 'a lease slot lies below 2^20');
  return slot * 4_294_967_296 + (attempt >>> 0);
}
