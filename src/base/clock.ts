/** Time comes in through this door: nothing outside `base/` reads a clock or sets a timer. */
export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Milliseconds since some start, never going back; fractions allowed. */
  nowMs(): number;
  /** Milliseconds since 1970, for timestamps that people read. */
  wallMs(): number;
  /** Runs `fn` once after `delayMs`. */
  after(delayMs: number, fn: () => void): Timer;
  /** Runs `fn` soon, after pending I/O. */
  soon(fn: () => void): void;
}

export class SystemClock implements Clock {
  nowMs(): number {
    return performance.now();
  }

  wallMs(): number {
    return Date.now();
  }

  after(delayMs: number, fn: () => void): Timer {
    const handle = setTimeout(fn, delayMs);
    return { cancel: () => clearTimeout(handle) };
  }

  soon(fn: () => void): void {
    setImmediate(fn);
  }
}

/** Resolves after `delayMs` on the given clock. */
export function sleep(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(delayMs, resolve);
  });
}

interface Waiting {
  readonly dueMs: number;
  readonly order: number;
  readonly fn: () => void;
}

/** A clock that moves only when told. `soon` callbacks run at the next `advance`, in the order they were asked for. */
export class ManualClock implements Clock {
  #nowMs = 0;
  #order = 0;
  #waiting: Waiting[] = [];

  nowMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, fn: () => void): Timer {
    const entry: Waiting = { dueMs: this.#nowMs + Math.max(0, delayMs), order: this.#order++, fn };
    this.#waiting.push(entry);
    return {
      cancel: () => {
        this.#waiting = this.#waiting.filter((other) => other !== entry);
      },
    };
  }

  soon(fn: () => void): void {
    this.after(0, fn);
  }

  /** How many timers wait. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Moves time by `ms` and runs what is due, in order of due time, then of asking. */
  advance(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (;;) {
      let next: Waiting | undefined;
      for (const entry of this.#waiting) {
        if (entry.dueMs > endMs) continue;
        if (!next || entry.dueMs < next.dueMs || (entry.dueMs === next.dueMs && entry.order < next.order)) next = entry;
      }
      if (!next) break;
      const due = next;
      this.#waiting = this.#waiting.filter((other) => other !== due);
      this.#nowMs = Math.max(this.#nowMs, due.dueMs);
      due.fn();
    }
    this.#nowMs = endMs;
  }
}
