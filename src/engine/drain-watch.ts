/** How long each slot of decode has been draining: whoever takes too long is told of. It never frees anything. */
export class DrainWatch {
  readonly #sinceMs: number[];
  readonly #alarmMs: number;

  constructor(slots: number, alarmMs: number) {
    this.#sinceMs = Array.from({ length: slots }, () => 0);
    this.#alarmMs = alarmMs;
  }

  /** Calls `alarm` for every slot whose time is over; answers when the next one's is, null where nothing drains. */
  look(nowMs: number, isDraining: (slot: number) => boolean, alarm: (slot: number) => void): number | null {
    let wakeAtMs: number | null = null;
    for (let slot = 0; slot < this.#sinceMs.length; slot++) {
      if (!isDraining(slot)) {
        this.#sinceMs[slot] = 0;
        continue;
      }
      const since = this.#sinceMs[slot] || nowMs;
      this.#sinceMs[slot] = since;
      const dueMs = since + this.#alarmMs;
      if (nowMs >= dueMs) {
        this.#sinceMs[slot] = nowMs;
        alarm(slot);
      }
      wakeAtMs = Math.min(wakeAtMs ?? Number.POSITIVE_INFINITY, nowMs >= dueMs ? nowMs + 1 : dueMs);
    }
    return wakeAtMs;
  }
}
