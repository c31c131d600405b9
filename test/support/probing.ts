/** One experiment of the probe, run in this process against an endpoint of the test's own. */
import { type Clock, SystemClock, type Timer } from '../../src/base/clock.js';
import { NOTHING_TOLD } from '../../src/probe/knowledge.js';
import type { JournalRecord } from '../../src/probe/journal.js';
import type { Experiment, ExperimentResult } from '../../src/probe/experiment.js';
import { runProbe } from '../../src/probe/run.js';
import { NOTHING_EARLIER } from '../../src/probe/resume.js';

export const PROBE_KEYS = { a: 'probe-test-key-of-a', b: 'probe-test-key-of-b' } as const;
export const PROBE_TENANT_FLAGS: readonly string[] = Object.entries(PROBE_KEYS).flatMap(([name, key]) => [
  '--tenant',
  `${name}=${key}`,
]);

export interface Probing {
  readonly experiment: Experiment;
  /** Ends before `/v1`. */
  readonly url: string;
  readonly seed: number;
  readonly allowDestructive?: boolean;
  readonly tenants?: readonly (keyof typeof PROBE_KEYS)[];
  readonly clock?: Clock;
}

export interface Probed {
  readonly result: ExperimentResult;
  readonly records: readonly JournalRecord[];
}

export async function probed(probing: Probing): Promise<Probed> {
  const { experiment, url, seed, allowDestructive = false, tenants = ['a', 'b'] as const } = probing;
  const records: JournalRecord[] = [];
  const { results, stopped } = await runProbe({
    target: {
      origin: new URL(url),
      tenants: tenants.map((name) => ({ name, key: PROBE_KEYS[name] })),
      model: 'lab',
      route: 'completions',
    },
    told: NOTHING_TOLD,
    experiments: [experiment],
    limits: { requests: 2_000, tokens: 5_000_000, together: 32, durationMs: 30 * 60_000 },
    seed,
    bound: 0.05,
    keepText: false,
    allowDestructive,
    version: 'test',
    clock: probing.clock ?? new SystemClock(),
    journal: { write: (record) => void records.push(record), close: () => {} },
    earlier: NOTHING_EARLIER,
    confirm: () => Promise.resolve(true),
    say: () => {},
  });
  const result = results[0];
  if (result === undefined) throw new Error(`Expected a result, got none: ${stopped ?? 'no reason'}`);
  return { result, records };
}

/** A clock on which everything lasts `factor` times as long as it does, so that long deadlines pass soon. */
export class HastyClock implements Clock {
  readonly #clock = new SystemClock();
  readonly #factor: number;

  constructor(factor: number) {
    this.#factor = factor;
  }

  nowMs(): number {
    return this.#clock.nowMs() * this.#factor;
  }

  wallMs(): number {
    return this.#clock.wallMs();
  }

  after(delayMs: number, fn: () => void): Timer {
    return this.#clock.after(delayMs / this.#factor, fn);
  }

  soon(fn: () => void): void {
    this.#clock.soon(fn);
  }
}
