/** Rooms are 63-bit numbers; the machines compare small integers that stand for them. */
import { randomBytes } from 'node:crypto';

/** One request's use of a room. */
export interface RoomUse {
  readonly room: bigint;
  readonly index: number;
}

export class Rooms {
  readonly #open = new Map<bigint, { readonly index: number; users: number }>();
  #next = 1;

  /** Null: a fresh one. Requests that name the same room at one time get the same index. */
  take(wanted: bigint | null): RoomUse {
    const room = wanted ?? drawRoom();
    const known = this.#open.get(room);
    if (known !== undefined) {
      known.users++;
      return { room, index: known.index };
    }
    const index = this.#next++;
    this.#open.set(room, { index, users: 1 });
    return { room, index };
  }

  leave({ room }: RoomUse): void {
    const known = this.#open.get(room);
    if (known === undefined) return;
    known.users--;
    if (known.users === 0) this.#open.delete(room);
  }
}

/** Below 2^63, and nobody can guess it. */
function drawRoom(): bigint {
  return randomBytes(8).readBigUInt64BE() >> 1n;
}
