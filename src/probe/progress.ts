/** How far a run is, for whoever waits: one line that changes on a terminal, a line now and then elsewhere. */
import type { Clock } from '../base/clock.js';
import { truncate } from '../base/text.js';
import type { JournalRecord } from './journal.js';
import { timeText, whole } from './plan.js';
import type { PlannedExperiment } from './result.js';

export interface ProgressOutput {
  /** Standard error. */
  write(text: string): void;
  readonly isTerminal: boolean;
  readonly columns: number;
}

const REDRAW_MS = 200;
const LINE_EVERY_MS = 10_000;
/** Rates are of the last seconds. */
const RATE_WINDOW_MS = 5_000;
/** The name of requests that belong to no experiment. */
const LEARNING = 'learn';
const CLEAR = '\r\u001b[K';

/** Sees every record as it is written. Draws only when there is news, so that it needs no timer. */
export class Progress {
  readonly #clock: Clock;
  readonly #output: ProgressOutput;
  #plan = new Map<string, number>();
  #experiment = '';
  #requests = 0;
  #tokens = 0;
  #hits = 0;
  #throttled = 0;
  #drawnMs: number;
  #drawn = false;
  /** Times of the requests of the last seconds. */
  #ended: number[] = [];

  constructor(clock: Clock, output: ProgressOutput) {
    this.#clock = clock;
    this.#output = output;
    this.#drawnMs = clock.nowMs();
  }

  /** Experiments that will be made, in their order. */
  plan(experiments: readonly PlannedExperiment[]): void {
    this.#plan = new Map(
      experiments.filter(({ unfit }) => unfit === null).map(({ name, plan }) => [name, plan.requests]),
    );
  }

  take(record: JournalRecord): void {
    if (record.record === 'hit') this.#hits++;
    if (record.record !== 'request') return;
    // What measures a prompt is sent between the requests of an experiment, and is none of them.
    const measures = record.experiment === LEARNING && this.#plan.size > 0;
    if (!measures && record.experiment !== this.#experiment) {
      this.#experiment = record.experiment;
      this.#requests = 0;
      this.#tokens = 0;
    }
    if (!measures) this.#requests++;
    this.#tokens += record.usage === null ? 0 : record.usage.promptTokens + record.usage.completionTokens;
    if (record.status === 429) this.#throttled++;
    const nowMs = this.#clock.nowMs();
    this.#ended.push(nowMs);
    if (nowMs - this.#drawnMs < (this.#output.isTerminal ? REDRAW_MS : LINE_EVERY_MS)) return;
    this.#drawnMs = nowMs;
    this.#draw(nowMs);
  }

  /** A line that stays. */
  say(line: string): void {
    this.clear();
    this.#output.write(`${line}\n`);
  }

  clear(): void {
    if (this.#drawn) this.#output.write(CLEAR);
    this.#drawn = false;
  }

  #draw(nowMs: number): void {
    const line = this.#line(nowMs);
    if (!this.#output.isTerminal) {
      this.#output.write(`${line}\n`);
      return;
    }
    this.#output.write(`${CLEAR}${truncate(line, Math.max(20, this.#output.columns - 1))}`);
    this.#drawn = true;
  }

  #line(nowMs: number): string {
    this.#ended = this.#ended.filter((ms) => nowMs - ms < RATE_WINDOW_MS);
    const spanMs = Math.max(1000, nowMs - (this.#ended[0] ?? nowMs));
    const rate = (this.#ended.length * 1000) / spanMs;
    const own = this.#plan.get(this.#experiment);
    const place = [...this.#plan.keys()].indexOf(this.#experiment) + 1;
    const left = own === undefined ? 0 : Math.max(0, own - this.#requests);
    const of = own === undefined ? '' : ` (${place} of ${this.#plan.size})`;
    const parts = [
      `${this.#experiment}${of}: ${whole(this.#requests)}${own === undefined ? '' : ` of at most ${whole(own)}`} requests`,
      `${rate.toFixed(rate < 10 ? 1 : 0)}/s`,
      // Experiments differ too much for the rate of one to say how long the others take.
      ...(rate > 0 && left > 0 ? [`${timeText(left / rate)} left of it at most`] : []),
      `${whole(this.#tokens)} tokens`,
      ...(this.#hits === 0 ? [] : [`${this.#hits} hits`]),
      ...(this.#throttled === 0 ? [] : [`${this.#throttled} times 429`]),
    ];
    return parts.join(' · ');
  }
}
