import { assert } from '../base/assert.js';
import type { Clock } from '../base/clock.js';
import { compareSeverity, type Finding, sortFindings } from './finding.js';

/** Findings kept by a running process: a few MB at most, and more than anyone reads. */
export const FINDINGS_KEPT_MAX = 1000;

export interface LoggedFinding extends Finding {
  /** How often it was seen; the texts are those of the worst, or else of the last time. */
  readonly count: number;
  /** Milliseconds since 1970. */
  readonly firstMs: number;
  readonly lastMs: number;
}

/**
 * What a running process noticed. A finding seen again at the same place is counted, not stored again. When the log is full,
 * the least severe goes, and among those the one seen longest ago: a flood of small ones never drives out a grave one.
 */
export class FindingLog {
  readonly #clock: Clock;
  readonly #capacity: number;
  /** By id and place; the order of insertion is the order in which they were last seen. */
  readonly #entries: Map<string, LoggedFinding> = new Map();
  #dropped = 0;

  constructor(clock: Clock, capacity: number = FINDINGS_KEPT_MAX) {
    assert(capacity > 0, 'a log of findings must hold at least one');
    this.#clock = clock;
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Findings that did not fit, each counted once per time it was lost. */
  get dropped(): number {
    return this.#dropped;
  }

  /** True when it is new here: the moment to raise an alarm. */
  record(finding: Finding): boolean {
    const key = JSON.stringify([finding.id, finding.where.node, finding.where.source, finding.where.line ?? null]);
    const nowMs = this.#clock.wallMs();
    const known = this.#entries.get(key);
    if (known === undefined) {
      this.#entries.set(key, { ...finding, count: 1, firstMs: nowMs, lastMs: nowMs });
      if (this.#entries.size > this.#capacity) this.#dropLeast();
      return true;
    }
    const shown = compareSeverity(finding.severity, known.severity) <= 0 ? finding : known;
    this.#entries.delete(key);
    this.#entries.set(key, { ...shown, count: known.count + 1, firstMs: known.firstMs, lastMs: nowMs });
    return false;
  }

  /** Worst first. */
  list(): LoggedFinding[] {
    return sortFindings([...this.#entries.values()]);
  }

  #dropLeast(): void {
    let least: [string, LoggedFinding] | undefined;
    for (const entry of this.#entries) {
      if (least === undefined || compareSeverity(entry[1].severity, least[1].severity) > 0) least = entry;
    }
    assert(least !== undefined, 'a full log holds a finding');
    this.#entries.delete(least[0]);
    this.#dropped++;
  }
}
