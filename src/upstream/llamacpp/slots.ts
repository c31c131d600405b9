/**
 * Which request is in which slot. The adapter names the slot of every request (`id_slot`), so that it knows when the slot is
 * really left: a server looks for a client that has gone about once a second, and until then the request goes on filling the
 * pool that all share.
 */
import { assert } from '../../base/assert.js';

/** `free`: idle as far as is known. `running`: with a request. `leaving`: its request was aborted, and the server may still be at it. */
type SlotPhase = 'free' | 'running' | 'leaving';

interface Slot {
  readonly id: number;
  phase: SlotPhase;
  /** How often it was given out: who looks twice sees whether it was in between. */
  leases: number;
  /** When it was last given out, as a number that grows. */
  turn: number;
  /** Whose prompt was in it last; null: nobody's that is known. */
  owner: number | null;
  /** Called when nothing of the request is in it any more. */
  onLeft: (() => void) | null;
}

interface Waiting {
  readonly tenant: number;
  readonly take: (lease: SlotLease) => void;
}

export interface SlotLease {
  readonly slot: number;
  /** The slot holds nothing but what this tenant sent. */
  readonly isOwn: boolean;
}

export class SlotTable {
  #slots: Slot[] = [];
  readonly #waiting: Waiting[] = [];
  #turns = 0;

  /** As many slots as the server has now. Slots that are in use stay until they are left. */
  resize(count: number): void {
    for (let id = this.#slots.length; id < count; id++)
      this.#slots.push({ id, phase: 'free', leases: 0, turn: 0, owner: null, onLeft: null });
    while (this.#slots.length > count && this.#slots.at(-1)!.phase === 'free') this.#slots.pop();
    this.#pump();
  }

  /** Takes a slot, the tenant's own last one if it is free, else the one that was longest not given out; `take` may be called before this returns. Returns how to give up waiting. */
  enter(tenant: number, take: (lease: SlotLease) => void): () => void {
    const entry: Waiting = { tenant, take };
    this.#waiting.push(entry);
    this.#pump();
    return () => {
      const at = this.#waiting.indexOf(entry);
      if (at >= 0) this.#waiting.splice(at, 1);
    };
  }

  /** The request's answer came whole: its slot is free. */
  finished(id: number): void {
    this.#leave(this.#slotOf(id));
  }

  /** The request was cut short: its slot is free when the server says so. */
  cutShort(id: number, onLeft: () => void): void {
    const slot = this.#slotOf(id);
    assert(slot.phase === 'running', 'only a running request is cut short');
    slot.phase = 'leaving';
    slot.onLeft = onLeft;
  }

  /** Slots whose request has gone here and perhaps not there. */
  get leaving(): number[] {
    return this.#slots.filter(({ phase }) => phase === 'leaving').map(({ id }) => id);
  }

  /** Slots that are free, each with how often it was given out. */
  get free(): ReadonlyMap<number, number> {
    return new Map(this.#slots.flatMap(({ id, phase, leases }) => (phase === 'free' ? [[id, leases] as const] : [])));
  }

  /** The server says that these slots are idle. Only what left before it was asked may be named. */
  left(ids: readonly number[]): void {
    for (const id of ids) {
      const slot = this.#slots[id];
      if (slot?.phase === 'leaving') this.#leave(slot);
    }
  }

  /** Everybody goes: closing. */
  leaveAll(): void {
    this.#waiting.length = 0;
    for (const slot of this.#slots) if (slot.phase === 'leaving') this.#leave(slot);
  }

  #slotOf(id: number): Slot {
    const slot = this.#slots[id];
    assert(slot !== undefined, 'a slot that was given out stays');
    return slot;
  }

  #leave(slot: Slot): void {
    assert(slot.phase !== 'free', 'a slot is left once');
    slot.phase = 'free';
    const told = slot.onLeft;
    slot.onLeft = null;
    told?.();
    this.#pump();
  }

  #pump(): void {
    for (;;) {
      const next = this.#waiting[0];
      const free = this.#slots.filter(({ phase }) => phase === 'free');
      if (next === undefined || free.length === 0) return;
      this.#waiting.shift();
      const slot = free.find(({ owner }) => owner === next.tenant) ?? free.reduce((a, b) => (b.turn < a.turn ? b : a));
      const isOwn = slot.owner === next.tenant;
      slot.phase = 'running';
      slot.leases++;
      slot.turn = ++this.#turns;
      slot.owner = next.tenant;
      next.take({ slot: slot.id, isOwn });
    }
  }
}
