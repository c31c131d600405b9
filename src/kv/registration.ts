import { assert } from '../base/assert.js';

/**
 * Registrations in one table. A handle names its entry in the low 12 bits. One entry for each peer is enough to fence a peer;
 * one for each lease, in the manner of RDMA's memory windows, fences a single transfer.
 */
export const REGISTRATIONS_MAX = 4_096;
/** How often an entry can be used: what is left of a handle's 31 bits. Then the entry retires. */
const GENERATIONS_MAX = 1 << 19;

/** 64 bytes an entry, so that two peers do not share a cache line. */
const ENTRY_WORDS = 16;
const STATE = 0;
const PEER = 1;
const IN_FLIGHT = 2;
const LANDED = 3;
const REFUSED = 4;

/** Looks at the counter this often before it goes to sleep: a landing takes some ten microseconds. */
const REVOKE_SPINS_MAX = 20_000;
/** Then sleeps in slices of this many milliseconds, since a leaving writer wakes only who already waits. */
const REVOKE_SLICE_MS = 1;
/** Slices after which `revoke` gives up: 200 ms, many times the slowest landing. The caller then must not reuse a page. */
const REVOKE_SLICES_MAX = 200;

/** Names one registration, like RDMA's rkey: useless once revoked, also when its entry is used again. */
export type RegistrationHandle = number;

export interface RegistrationCounts {
  readonly inFlight: number;
  /** Writes that landed, and that were refused; they wrap at 2^32. */
  readonly landed: number;
  readonly refused: number;
}

/**
 * Who may write into decode's pool. Decode owns the table; the wire asks it around every landing, without decode's consent to
 * the single write. Revoking is the fence: once `revoke` has answered true, nothing posted under the handle can land any more.
 *
 * An entry's state is generation × 2 + (1 while registered), so that one atomic load tells registered from revoked and this
 * registration from a later one in the same entry.
 */
export class RegistrationTable {
  readonly buffer: SharedArrayBuffer;
  readonly entries: number;
  readonly #words: Int32Array;

  /** A new table of `entries`, or the one that another thread made. */
  constructor(from: number | SharedArrayBuffer) {
    const entries = typeof from === 'number' ? from : from.byteLength / (ENTRY_WORDS * 4);
    assert(
      Number.isInteger(entries) && entries >= 1 && entries <= REGISTRATIONS_MAX,
      'a table holds 1 to 4096 entries',
    );
    this.buffer = typeof from === 'number' ? new SharedArrayBuffer(entries * ENTRY_WORDS * 4) : from;
    this.entries = entries;
    this.#words = new Int32Array(this.buffer);
  }

  /** Lets a peer write. Answers null when every entry is registered or still has a copy in flight. Decode's thread only. */
  register(peerIncarnation: number): RegistrationHandle | null {
    for (let entry = 0; entry < this.entries; entry++) {
      const at = entry * ENTRY_WORDS;
      const state = Atomics.load(this.#words, at + STATE);
      const generation = (state >> 1) + 1;
      // A revoked entry whose copies have not ended stays out: the fence on it has not closed.
      if ((state & 1) !== 0 || Atomics.load(this.#words, at + IN_FLIGHT) !== 0 || generation >= GENERATIONS_MAX)
        continue;
      Atomics.store(this.#words, at + PEER, peerIncarnation);
      Atomics.store(this.#words, at + STATE, generation * 2 + 1);
      return generation * REGISTRATIONS_MAX + entry;
    }
    return null;
  }

  /**
   * The fence. Marks the handle revoked, then waits until no copy under it is in flight. True: nothing posted under it can
   * land any more. False: a copy did not end in time; the handle stays revoked, and its pages stay where they are until
   * `isQuiet` says so. Decode's thread only, never from within a landing.
   */
  revoke(handle: RegistrationHandle): boolean {
    const at = this.#at(handle);
    const state = generationOf(handle) * 2;
    // Only the registration that the handle names: a stale handle must not revoke whoever has the entry now.
    Atomics.compareExchange(this.#words, at + STATE, state + 1, state);
    if (Atomics.load(this.#words, at + STATE) !== state) return true;
    for (let spin = 0; spin < REVOKE_SPINS_MAX; spin++) {
      if (Atomics.load(this.#words, at + IN_FLIGHT) === 0) return true;
    }
    for (let slice = 0; slice < REVOKE_SLICES_MAX; slice++) {
      const inFlight = Atomics.load(this.#words, at + IN_FLIGHT);
      if (inFlight === 0) return true;
      Atomics.wait(this.#words, at + IN_FLIGHT, inFlight, REVOKE_SLICE_MS);
    }
    return false;
  }

  /** Whether the handle is revoked and no copy under it is in flight: what `revoke` waits for, to be asked again later. */
  isQuiet(handle: RegistrationHandle): boolean {
    const at = this.#at(handle);
    const state = Atomics.load(this.#words, at + STATE);
    // The entry is used again only after it was quiet.
    if (state >> 1 !== generationOf(handle)) return true;
    return (state & 1) === 0 && Atomics.load(this.#words, at + IN_FLIGHT) === 0;
  }

  /**
   * For a peer whose thread has ended: revokes, and forgets copies that it began and never finished. The caller must have seen
   * the thread's exit; a thread that only seems dead may still be copying. No other thread may hold a handle of this entry.
   */
  revokeEnded(handle: RegistrationHandle): void {
    const at = this.#at(handle);
    const state = generationOf(handle) * 2;
    if (Atomics.load(this.#words, at + STATE) >> 1 !== generationOf(handle)) return;
    Atomics.store(this.#words, at + STATE, state);
    Atomics.store(this.#words, at + IN_FLIGHT, 0);
  }

  /**
   * For a table whose owner is gone: nothing posted under any of its handles lands from now on, but for copies that have begun. Its
   * pages are not used again, so nobody waits for those.
   */
  revokeAll(): void {
    for (let entry = 0; entry < this.entries; entry++) Atomics.and(this.#words, entry * ENTRY_WORDS + STATE, ~1);
  }

  isRegistered(handle: RegistrationHandle): boolean {
    return Atomics.load(this.#words, this.#at(handle) + STATE) === generationOf(handle) * 2 + 1;
  }

  /** The peer of a live or revoked handle; null once its entry is used again. */
  peerOf(handle: RegistrationHandle): number | null {
    const at = this.#at(handle);
    return Atomics.load(this.#words, at + STATE) >> 1 === generationOf(handle)
      ? Atomics.load(this.#words, at + PEER) >>> 0
      : null;
  }

  /**
   * The wire is about to copy. False: refused and counted; nothing may be written. True: `leave` must follow.
   * The counter rises BEFORE the state is looked at. The other way round, a revoke that comes between look and rise would find
   * the counter at zero and answer, and the copy would land behind the fence. This way round one of the two always sees the
   * other, since atomics have one order that all threads agree on.
   */
  enter(handle: RegistrationHandle): boolean {
    const at = this.#at(handle);
    Atomics.add(this.#words, at + IN_FLIGHT, 1);
    if (Atomics.load(this.#words, at + STATE) === generationOf(handle) * 2 + 1) return true;
    Atomics.add(this.#words, at + REFUSED, 1);
    this.#fall(at);
    return false;
  }

  /** The copy has ended. */
  leave(handle: RegistrationHandle): void {
    const at = this.#at(handle);
    Atomics.add(this.#words, at + LANDED, 1);
    this.#fall(at);
  }

  /** Counts of the entry that the handle names, over all its registrations. */
  counts(handle: RegistrationHandle): RegistrationCounts {
    return this.#counts(this.#at(handle));
  }

  totals(): RegistrationCounts {
    let [inFlight, landed, refused] = [0, 0, 0];
    for (let entry = 0; entry < this.entries; entry++) {
      const counts = this.#counts(entry * ENTRY_WORDS);
      inFlight += counts.inFlight;
      landed += counts.landed;
      refused += counts.refused;
    }
    return { inFlight, landed, refused };
  }

  #fall(at: number): void {
    const before = Atomics.sub(this.#words, at + IN_FLIGHT, 1);
    assert(before > 0, 'a copy ends once');
    if (before === 1) Atomics.notify(this.#words, at + IN_FLIGHT);
  }

  #counts(at: number): RegistrationCounts {
    return {
      inFlight: Atomics.load(this.#words, at + IN_FLIGHT),
      landed: Atomics.load(this.#words, at + LANDED) >>> 0,
      refused: Atomics.load(this.#words, at + REFUSED) >>> 0,
    };
  }

  #at(handle: RegistrationHandle): number {
    const entry = handle & (REGISTRATIONS_MAX - 1);
    assert(handle >= REGISTRATIONS_MAX && entry < this.entries, 'a registration handle comes from register');
    return entry * ENTRY_WORDS;
  }
}

function generationOf(handle: RegistrationHandle): number {
  return handle >>> 12;
}
