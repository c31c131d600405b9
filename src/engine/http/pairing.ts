/**
 * Joins the two legs of a request by their room. The first leg waits a bounded time for its partner; a leg that fails leaves its
 * error for the partner, so that neither waits for nothing.
 */
import type { Clock, Timer } from '../../base/clock.js';
import { FAILED_ROOMS_MAX, LEGS_WAITING_MAX, PARTNER_MS_MAX } from './bounds.js';
import { engineFailure, type Failure, SHUTTING_DOWN } from './failure.js';
import type { Leg } from './leg.js';

export type PairRole = 'prefill' | 'decode';

export interface PairingOptions {
  readonly clock: Clock;
  /** Both legs are there. Calls back when the room is free again. */
  readonly join: (prefill: Leg, decode: Leg, released: () => void) => void;
  /** The fault `room-collision`: a room in use is no reason to refuse. */
  readonly sharesRooms: boolean;
  /** @default PARTNER_MS_MAX */
  readonly partnerMsMax?: number;
  /** Called for each leg that fails here. */
  readonly onFailed: () => void;
}

interface Waiting {
  readonly leg: Leg;
  readonly timer: Timer;
}

interface Failed {
  readonly role: PairRole;
  readonly failure: Failure;
  readonly untilMs: number;
}

/** In SGLang's words, since clients look for them. */
export const NO_ROOM: Failure = engineFailure(
  400,
  'Invalid request: Disaggregated request received without bootstrap room id.',
);
const ROOM_IN_USE: Failure = engineFailure(400, 'The `bootstrap_room` of this request is in use by another one.');
const PROMPTS_DIFFER: Failure = engineFailure(400, 'Expected both legs of a request to carry the same prompt.');
const PARTNER_LEFT: Failure = engineFailure(
  500,
  'The client of the other leg of this request left before it was joined.',
);
const FULL: Failure = engineFailure(503, 'Too many requests wait for their other leg; send the request again later.');

const otherRole = (role: PairRole): PairRole => (role === 'prefill' ? 'decode' : 'prefill');

export class Pairing {
  readonly #o: PairingOptions;
  readonly #partnerMsMax: number;
  /** By role, then room: first come first served; more than one only with `sharesRooms`. */
  readonly #waiting: Record<PairRole, Map<bigint, Waiting[]>> = { prefill: new Map(), decode: new Map() };
  readonly #live = new Map<bigint, number>();
  readonly #failed = new Map<bigint, Failed>();
  #waitingCount = 0;
  #isClosed = false;

  constructor(options: PairingOptions) {
    this.#o = options;
    this.#partnerMsMax = options.partnerMsMax ?? PARTNER_MS_MAX;
  }

  get waiting(): number {
    return this.#waitingCount;
  }

  /** Rooms of requests that are in the engine. */
  get live(): number {
    return this.#live.size;
  }

  waitingOf(role: PairRole): number {
    let count = 0;
    for (const legs of this.#waiting[role].values()) count += legs.length;
    return count;
  }

  arrive(role: PairRole, leg: Leg): void {
    const { room } = leg.call;
    if (room === null) return this.#refuse(leg, NO_ROOM);
    if (this.#isClosed) return this.#refuse(leg, SHUTTING_DOWN);
    if (!this.#o.sharesRooms && (this.#live.has(room) || this.#waiting[role].has(room))) {
      return this.#refuse(leg, ROOM_IN_USE);
    }
    const failed = this.#takeFailed(room, otherRole(role));
    if (failed !== null) return this.#refuse(leg, failed);
    const partner = this.#takeWaiting(otherRole(role), room);
    if (partner === null) return this.#wait(role, room, leg);
    if (role === 'prefill') this.#join(room, leg, partner);
    else this.#join(room, partner, leg);
  }

  /** A leg was refused before it could arrive: its partner gets the same error, now or when it comes. */
  failed(role: PairRole, room: bigint, failure: Failure): void {
    if (this.#live.has(room)) return;
    const partner = this.#takeWaiting(otherRole(role), room);
    if (partner !== null) return this.#refuse(partner, failure);
    this.#failed.delete(room);
    this.#failed.set(room, { role, failure, untilMs: this.#o.clock.nowMs() + this.#partnerMsMax });
    for (const oldest of this.#failed.keys()) {
      if (this.#failed.size <= FAILED_ROOMS_MAX) break;
      this.#failed.delete(oldest);
    }
  }

  /** Nobody waits any more, and nobody will. */
  close(): void {
    this.#isClosed = true;
    for (const role of ['prefill', 'decode'] as const) {
      for (const room of this.#waiting[role].keys()) {
        for (let leg = this.#takeWaiting(role, room); leg !== null; leg = this.#takeWaiting(role, room)) {
          this.#refuse(leg, SHUTTING_DOWN);
        }
      }
    }
  }

  #refuse(leg: Leg, failure: Failure): void {
    this.#o.onFailed();
    leg.fail(failure);
  }

  #wait(role: PairRole, room: bigint, leg: Leg): void {
    if (this.#waitingCount >= LEGS_WAITING_MAX) return this.#refuse(leg, FULL);
    const entry: Waiting = {
      leg,
      timer: this.#o.clock.after(this.#partnerMsMax, () => {
        this.#remove(role, room, entry);
        const words = `The ${otherRole(role)} leg of this request did not come within ${this.#partnerMsMax} ms.`;
        const failure = engineFailure(500, words);
        this.failed(role, room, failure);
        this.#refuse(leg, failure);
      }),
    };
    const legs = this.#waiting[role].get(room);
    if (legs === undefined) this.#waiting[role].set(room, [entry]);
    else legs.push(entry);
    this.#waitingCount++;
    leg.onGone = () => {
      this.#remove(role, room, entry);
      this.#o.onFailed();
      this.failed(role, room, PARTNER_LEFT);
    };
  }

  #remove(role: PairRole, room: bigint, entry: Waiting): void {
    const legs = this.#waiting[role].get(room);
    const at = legs?.indexOf(entry) ?? -1;
    if (legs === undefined || at < 0) return;
    legs.splice(at, 1);
    if (legs.length === 0) this.#waiting[role].delete(room);
    this.#waitingCount--;
    entry.timer.cancel();
    entry.leg.onGone = null;
  }

  #takeWaiting(role: PairRole, room: bigint): Leg | null {
    const entry = this.#waiting[role].get(room)?.[0];
    if (entry === undefined) return null;
    this.#remove(role, room, entry);
    return entry.leg;
  }

  /** The error that the partner left, if it is not too old. A leg that comes again after its own failure begins anew. */
  #takeFailed(room: bigint, partner: PairRole): Failure | null {
    const failed = this.#failed.get(room);
    if (failed === undefined) return null;
    this.#failed.delete(room);
    return failed.role === partner && this.#o.clock.nowMs() < failed.untilMs ? failed.failure : null;
  }

  #join(room: bigint, prefill: Leg, decode: Leg): void {
    if (!samePrompt(prefill.call.prompt, decode.call.prompt)) {
      this.#refuse(prefill, PROMPTS_DIFFER);
      this.#refuse(decode, PROMPTS_DIFFER);
      return;
    }
    this.#live.set(room, (this.#live.get(room) ?? 0) + 1);
    this.#o.join(prefill, decode, () => {
      const users = (this.#live.get(room) ?? 1) - 1;
      if (users === 0) this.#live.delete(room);
      else this.#live.set(room, users);
    });
  }
}

function samePrompt(one: Int32Array, other: Int32Array): boolean {
  return one.length === other.length && one.every((id, i) => id === other[i]);
}
