/**
 * A queue that stands still, seen from outside. A request that needs more than the pool waits at the head for ever, and
 * everything behind it too, while `/health` and `/metrics` go on answering. Pure but for what it remembers.
 */
import type { VllmEngine } from './state.js';

/** Requests wait, none runs, nothing is in the pool: for so long it is no accident of timing. */
export const STALL_MS = 5_000;
/** The same with a pool in use: longer than a decode node takes to give up a prefill's pages (30 s and its extensions). */
export const STALL_HELD_MS = 60_000;
/** Above this share of the pool something is held. */
const USAGE_NONE_MAX = 0.01;

interface Standing {
  readonly progress: string;
  readonly sinceMs: number;
}

export class StallWatch {
  readonly #standing = new Map<string, Standing>();
  readonly #stallMs: number;

  constructor(stallMs: number = STALL_MS) {
    this.#stallMs = stallMs;
  }

  /** Ranks that stand still, after this reading. An engine that does not say how many wait or run is none of them. */
  see(engines: readonly VllmEngine[], nowMs: number): string[] {
    for (const rank of this.#standing.keys()) {
      if (!engines.some((engine) => engine.rank === rank)) this.#standing.delete(rank);
    }
    return engines.filter((engine) => this.#stands(engine, nowMs)).map(({ rank }) => rank);
  }

  #stands(engine: VllmEngine, nowMs: number): boolean {
    const { rank, waiting, running, usage, progress } = engine;
    if (waiting === null || waiting <= 0 || running !== 0) {
      this.#standing.delete(rank);
      return false;
    }
    const before = this.#standing.get(rank);
    if (before === undefined || before.progress !== progress) {
      this.#standing.set(rank, { progress, sinceMs: nowMs });
      return false;
    }
    const held = usage !== null && usage > USAGE_NONE_MAX;
    return nowMs - before.sinceMs >= (held ? Math.max(STALL_HELD_MS, this.#stallMs) : this.#stallMs);
  }

  /** When it began to stand still; null: it does not. */
  sinceMs(rank: string): number | null {
    return this.#standing.get(rank)?.sinceMs ?? null;
  }
}
