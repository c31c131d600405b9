/** What the file of a run says, gathered record by record: the one thing from which every report is made. */
import type { JournalHeader, JournalRecord, KnowledgeRecord, PlanRecord, RequestRecord } from './journal.js';
import type { ExperimentResult, Hit } from './result.js';
import { type OverallVerdict, verdictOfRun } from './verdict.js';

/** What became of the requests of one experiment. */
export interface Traffic {
  readonly experiment: string;
  readonly requests: number;
  /** Counted by the endpoint, prompts and answers; what it did not count is not in it. */
  readonly tokens: number;
  /** By outcome: `answered`, `refused`, …. */
  readonly outcomes: ReadonlyMap<string, number>;
  /** Answers that asked to come later (429). */
  readonly throttled: number;
  /** Answers by the time to their first byte; see `timeBin`. */
  readonly firstByte: readonly number[];
}

export interface RunRecord {
  readonly header: JournalHeader;
  /** Null: it was not learned. */
  readonly knowledge: KnowledgeRecord | null;
  readonly plan: PlanRecord['experiments'];
  readonly results: readonly ExperimentResult[];
  readonly hits: readonly Hit[];
  readonly traffic: readonly Traffic[];
  readonly requests: number;
  readonly tokens: number;
  /** Runs that were written into it, one after the other. */
  readonly runs: number;
  /** Why the last one ended before its end; null: it did not. */
  readonly stopped: string | null;
  /** False: the last run never wrote its end. */
  readonly whole: boolean;
  readonly verdict: OverallVerdict;
}

/** Time in bins of an eighth of a decade, from 0.1 ms to 1,000 s: bounded, whatever the number of requests. */
export const TIME_BINS = 56;
const BINS_PER_DECADE = 8;
const TIME_MIN_MS = 0.1;

export function timeBin(ms: number): number {
  const bin = Math.floor(Math.log10(Math.max(TIME_MIN_MS, ms) / TIME_MIN_MS) * BINS_PER_DECADE);
  return Math.min(TIME_BINS - 1, bin);
}

/** The lower edge of a bin, in milliseconds. */
export function timeOfBin(bin: number): number {
  return TIME_MIN_MS * 10 ** (bin / BINS_PER_DECADE);
}

interface Counting {
  requests: number;
  tokens: number;
  throttled: number;
  readonly outcomes: Map<string, number>;
  readonly firstByte: number[];
}

const TOO_MANY_REQUESTS = 429;

/** Takes the records of a file in their order; a second header is a run that went on with the first. */
export class RecordBuilder {
  #header: JournalHeader | null = null;
  #knowledge: KnowledgeRecord | null = null;
  readonly #plan = new Map<string, PlanRecord['experiments'][number]>();
  readonly #results = new Map<string, ExperimentResult>();
  readonly #hits = new Map<string, Hit>();
  readonly #traffic = new Map<string, Counting>();
  readonly #required = new Set<string>();
  #tokens = 0;
  #lastId = 0;
  #runs = 0;
  #stopped: string | null = null;
  #whole = false;

  get header(): JournalHeader | null {
    return this.#header;
  }

  /** The number of the last request: ids of a run that goes on come after it. */
  get lastId(): number {
    return this.#lastId;
  }

  take(record: JournalRecord): void {
    switch (record.record) {
      case 'probe':
        this.#runs++;
        this.#whole = false;
        this.#stopped = null;
        this.#header = record;
        for (const name of record.required) this.#required.add(name);
        return;
      case 'knowledge':
        this.#knowledge = record;
        return;
      case 'plan':
        for (const each of record.experiments) this.#plan.set(each.name, each);
        return;
      case 'request':
        this.#request(record);
        return;
      case 'hit': {
        const { record: _, ...hit } = record;
        // A run that goes on in a new file writes the earlier hits again.
        this.#hits.set(JSON.stringify([hit.request, hit.place, hit.offset, hit.markerOffset, hit.marker]), hit);
        return;
      }
      case 'experiment': {
        const { record: _, ...result } = record;
        this.#results.set(result.name, result);
        return;
      }
      case 'end':
        this.#whole = true;
        this.#stopped = record.why;
        return;
    }
  }

  /** Null before a header came. */
  result(): RunRecord | null {
    if (this.#header === null) return null;
    const results = [...this.#results.values()];
    const hits = [...this.#hits.values()];
    const traffic = [...this.#traffic].map(([experiment, counting]) => ({ experiment, ...counting }));
    return {
      header: this.#header,
      knowledge: this.#knowledge,
      plan: [...this.#plan.values()],
      results,
      hits,
      traffic,
      requests: traffic.reduce((sum, { requests }) => sum + requests, 0),
      tokens: this.#tokens,
      runs: this.#runs,
      stopped: this.#stopped,
      whole: this.#whole,
      verdict: verdictOfRun(results, [...this.#required], hits.length),
    };
  }

  #request(record: RequestRecord): void {
    const { usage, outcome, status, firstByteMs } = record;
    const traffic = this.#trafficOf(record.experiment);
    const tokens = usage === null ? 0 : usage.promptTokens + usage.completionTokens;
    traffic.requests++;
    traffic.tokens += tokens;
    this.#tokens += tokens;
    traffic.outcomes.set(outcome, (traffic.outcomes.get(outcome) ?? 0) + 1);
    if (status === TOO_MANY_REQUESTS) traffic.throttled++;
    if (firstByteMs !== null && outcome === 'answered') traffic.firstByte[timeBin(firstByteMs)]!++;
    this.#lastId = Math.max(this.#lastId, Number(/^q-(\d{1,9})$/.exec(record.id)?.[1] ?? 0));
  }

  #trafficOf(experiment: string): Counting {
    const known = this.#traffic.get(experiment);
    if (known !== undefined) return known;
    const firstByte = Array.from({ length: TIME_BINS }, () => 0);
    const fresh: Counting = { requests: 0, tokens: 0, throttled: 0, outcomes: new Map(), firstByte };
    this.#traffic.set(experiment, fresh);
    return fresh;
  }
}
