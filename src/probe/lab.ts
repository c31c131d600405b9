import type { Clock } from '../base/clock.js';
import type { Prng } from '../base/prng.js';
import type { Answer } from './answer.js';
import type { Budget } from './budget.js';
import type { Ask, PlainAsk, ProbeClient } from './client.js';
import type { Hit } from './result.js';
import { type Journal, requestRecord } from './journal.js';
import type { Ruler } from './ruler.js';
import type { MarkerBook } from './scan.js';
import type { ProbeTarget, ProbeTenant } from './target.js';

/** What was learned before the first experiment. Tokens; null: not known. */
export interface Knowledge {
  /** The context that the endpoint tells its clients, and where it stood. */
  readonly advertised: number | null;
  readonly advertisedFrom: string | null;
  /** White box: the smallest KV pool of the engines that were named, and the largest prompt that they take. */
  readonly pool: number | null;
  readonly acceptLimit: number | null;
  readonly engine: string | null;
  readonly engineVersion: string | null;
  /** Null: the endpoint does not say how many tokens it read, or no filler counts evenly. */
  readonly ruler: Ruler | null;
  /** Of text full of codes; null: not known. */
  readonly codeCharactersPerToken: number | null;
  /** Whether streams are answered as streams. */
  readonly streams: boolean;
  /** Milliseconds of one small request. */
  readonly smallMs: number | null;
  /** Kinds of engine that `--engine` named, by name of the node. */
  readonly nodes: readonly string[];
}

export interface LabOptions {
  readonly experiment: string;
  readonly target: ProbeTarget;
  readonly knowledge: Knowledge;
  readonly client: ProbeClient;
  readonly budget: Budget;
  readonly journal: Journal;
  readonly markers: MarkerBook;
  readonly clock: Clock;
  /** The experiment's own, from the run's seed. */
  readonly chance: Prng;
  readonly startMs: number;
  readonly keepText: boolean;
  /** The upper bound of the leak rate above which a run has no power. */
  readonly bound: number;
  readonly allowDestructive: boolean;
  readonly say: (line: string) => void;
}

/** Requests that were planted: which request put which marker there. */
interface Planted {
  readonly request: string;
  readonly sentMs: number;
  endMs: number | null;
}

const LEFT_BEFORE_MS = 5_000;
const LEFT_KEPT_MAX = 64;
/** Tokens of a prompt are not known before they are counted; a character is at most one. */
const TOKENS_PER_CHARACTER_MAX = 1;

/** A run ends at once: an answer held what is neither ours nor the model's. */
export class ForeignContent extends Error {
  override readonly name = 'ForeignContent';
}

/** What an experiment works with: it sends through here, so that everything is bounded, recorded and searched. */
export class Lab {
  readonly options: LabOptions;
  readonly hits: Hit[] = [];
  #answers = 0;
  readonly #planted = new Map<string, Planted>();
  readonly #left: { readonly id: string; readonly endMs: number }[] = [];

  constructor(options: LabOptions) {
    this.options = options;
  }

  get target(): ProbeTarget {
    return this.options.target;
  }

  get knowledge(): Knowledge {
    return this.options.knowledge;
  }

  get chance(): Prng {
    return this.options.chance;
  }

  get clock(): Clock {
    return this.options.clock;
  }

  /** Answers that were looked at so far. */
  get answers(): number {
    return this.#answers;
  }

  tenant(index: number): ProbeTenant {
    return this.target.tenants[index % this.target.tenants.length]!;
  }

  /** A marker of the tenant, never used before. */
  marker(tenant: ProbeTenant): string {
    return this.options.markers.fresh(tenant.name).text;
  }

  /** Sends one prompt. Its answer is recorded and searched for everyone else's markers. Throws BudgetSpent, ForeignContent. */
  async ask(ask: Ask): Promise<Answer> {
    const { budget, client, markers } = this.options;
    await budget.take(Math.ceil(ask.prompt.length * TOKENS_PER_CHARACTER_MAX) + ask.maxTokens);
    try {
      const sentMs = this.clock.nowMs();
      const planted = this.#plant(ask, sentMs);
      const answer = await client.ask(ask);
      for (const each of planted) each.endMs = answer.endMs;
      this.#note(ask, answer, markers);
      return answer;
    } finally {
      budget.giveBack();
    }
  }

  /** Sends another request than a prompt; its answer is searched too. */
  async plain(ask: PlainAsk): Promise<Answer> {
    const { budget, client } = this.options;
    await budget.take(1);
    try {
      const answer = await client.plain(ask);
      const sent: Ask = {
        tenant: ask.tenant ?? { name: '', key: null },
        prompt: ask.body ?? '',
        maxTokens: 0,
        stream: false,
        deadlineMs: ask.deadlineMs,
      };
      this.#note(sent, answer, this.options.markers);
      return answer;
    } finally {
      budget.giveBack();
    }
  }

  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => void this.clock.after(delayMs, resolve));
  }

  #plant(ask: Ask, sentMs: number): Planted[] {
    const planted: Planted[] = [];
    for (const { 0: marker } of ask.prompt.matchAll(/KVC-[a-z2-7]{26}/g)) {
      if (this.#planted.has(marker)) continue;
      const entry: Planted = { request: `q-${this.options.client.sent + 1}`, sentMs, endMs: null };
      this.#planted.set(marker, entry);
      planted.push(entry);
    }
    return planted;
  }

  #note(ask: Ask, answer: Answer, markers: MarkerBook): void {
    const { experiment, journal, startMs, keepText } = this.options;
    this.#answers++;
    journal.write(requestRecord(experiment, ask, answer, startMs, keepText));
    if (answer.outcome === 'left') this.#left.push({ id: answer.id, endMs: answer.endMs });
    if (this.#left.length > LEFT_KEPT_MAX) this.#left.shift();
    for (const foreign of markers.foreign(answer, ask.prompt)) {
      const hit = this.#hit(ask, answer, foreign);
      this.hits.push(hit);
      journal.write({ record: 'hit', ...hit });
      if (foreign.owner === null) {
        throw new ForeignContent(
          `The answer ${answer.id} held a marker that this run never made, so nothing more is sent.`,
        );
      }
    }
  }

  #hit(ask: Ask, answer: Answer, foreign: ReturnType<MarkerBook['foreign']>[number]): Hit {
    const planted = foreign.marker === null ? undefined : this.#planted.get(foreign.marker);
    const { startMs } = this.options;
    const endMs = planted?.endMs ?? answer.endMs;
    return {
      experiment: this.options.experiment,
      request: answer.id,
      tenant: answer.tenant,
      ...foreign,
      planted: planted?.request ?? null,
      sentMs: Math.round(answer.sentMs - startMs),
      endMs: Math.round(answer.endMs - startMs),
      promptCharacters: ask.prompt.length,
      promptTokens: answer.usage?.promptTokens ?? null,
      overlapMs:
        planted === undefined
          ? null
          : Math.round(Math.max(0, Math.min(endMs, answer.endMs) - Math.max(planted.sentMs, answer.sentMs))),
      leftBefore: this.#left.filter((each) => answer.endMs - each.endMs < LEFT_BEFORE_MS).map((each) => each.id),
    };
  }
}
