import type { Clock } from '../base/clock.js';
import type { Prng } from '../base/prng.js';
import type { Answer } from './answer.js';
import { type Budget, BudgetSpent } from './budget.js';
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
  /** Milliseconds that a token costs: what a longer prompt took more than a small one, and all that it took. Null or absent: not known. */
  readonly tokenMs?: { readonly least: number; readonly most: number } | null;
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
  /** Whether an operator reads what is said and can act on it. @default false */
  readonly interactive?: boolean;
  readonly say: (line: string) => void;
  /** Hears of each hit, with the two requests as they were sent: they may be replayed, and are not recorded. */
  readonly onHit?: (hit: Hit, requests: HitRequests) => void;
}

/** A request as it was sent. */
export type Sent = Ask | PlainAsk;

export interface HitRequests {
  readonly reading: Sent;
  /** Null: not known. */
  readonly planting: Sent | null;
}

/** Requests that were planted: which request put which marker there. */
interface Planted {
  readonly request: string;
  readonly ask: Ask;
  readonly sentMs: number;
  endMs: number | null;
}

const TOO_MANY_REQUESTS = 429;
/** Attempts of one prompt, and the waits between them where the endpoint does not say how long. */
const ATTEMPTS_MAX = 7;
const WAIT_FIRST_MS = 250;
const WAIT_MAX_MS = 10_000;
/** A longer `Retry-After` ends the experiment. */
const WAIT_SAID_MAX_MS = 30_000;
const WAIT_SLICE_MS = 100;

/** The endpoint goes on saying 429, however long one waits. */
export class Throttled extends Error {
  override readonly name = 'Throttled';
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
  /** Why nothing more is sent; null: something may be. */
  #over: Error | null = null;
  #open = 0;
  readonly #idle: (() => void)[] = [];
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

  /**
   * Sends one prompt. Its answer is recorded and searched for everyone else's markers. A 429 is waited out, and what is sent again counts
   * as another request. Throws BudgetSpent, ForeignContent, Throttled.
   */
  async ask(ask: Ask): Promise<Answer> {
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#attempt(ask);
      if (answer.status !== TOO_MANY_REQUESTS || ask.returns429 === true) return answer;
      await this.#waitAfter(answer, attempt);
    }
  }

  async #attempt(ask: Ask): Promise<Answer> {
    const { client, markers } = this.options;
    await this.#begin(Math.ceil(ask.prompt.length * TOKENS_PER_CHARACTER_MAX) + ask.maxTokens);
    try {
      const sentMs = this.clock.nowMs();
      const planted = this.#plant(ask, sentMs);
      const answer = await client.ask(ask);
      for (const each of planted) each.endMs = answer.endMs;
      this.#note(ask, ask, answer, markers);
      return answer;
    } finally {
      this.#end();
    }
  }

  /** Whoever waits holds no place of the budget. */
  async #waitAfter(answer: Answer, attempt: number): Promise<void> {
    const saidMs = answer.retryAfterS === null ? null : answer.retryAfterS * 1000;
    const tooLong = saidMs !== null && saidMs > WAIT_SAID_MAX_MS;
    if (attempt >= ATTEMPTS_MAX || tooLong) {
      const words = tooLong ? `and asks to wait ${saidMs / 1000} s` : `${attempt} times in a row to one prompt`;
      this.#over ??= new Throttled(`the endpoint answers 429 ${words} (${answer.id})`);
      throw this.#over;
    }
    const least = Math.min(WAIT_MAX_MS, WAIT_FIRST_MS * 2 ** (attempt - 1));
    const endMs = this.clock.nowMs() + Math.max(saidMs ?? 0, least);
    while (this.clock.nowMs() < endMs && this.options.budget.stopped === null && this.#over === null)
      await this.sleep(Math.min(WAIT_SLICE_MS, Math.max(1, endMs - this.clock.nowMs())));
  }

  /** Sends another request than a prompt; its answer is searched too. */
  async plain(ask: PlainAsk): Promise<Answer> {
    const { client } = this.options;
    await this.#begin(1);
    try {
      const answer = await client.plain(ask);
      const sent: Ask = {
        tenant: ask.tenant ?? { name: '', key: null },
        prompt: ask.body ?? '',
        maxTokens: 0,
        stream: false,
        deadlineMs: ask.deadlineMs,
      };
      this.#note(ask, sent, answer, this.options.markers);
      return answer;
    } finally {
      this.#end();
    }
  }

  /** Nothing more is sent for this experiment; resolves when what was open has been noted, so that the record may be closed. */
  async close(): Promise<void> {
    this.#over ??= new BudgetSpent('the experiment is over');
    if (this.#open === 0) return;
    this.options.client.leaveAll();
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  async #begin(tokens: number): Promise<void> {
    if (this.#over !== null) throw this.#over;
    await this.options.budget.take(tokens);
    if (this.#over !== null) {
      this.options.budget.giveBack();
      throw this.#over;
    }
    this.#open++;
  }

  #end(): void {
    this.options.budget.giveBack();
    this.#open--;
    if (this.#open === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => void this.clock.after(delayMs, resolve));
  }

  #plant(ask: Ask, sentMs: number): Planted[] {
    const planted: Planted[] = [];
    for (const { 0: marker } of ask.prompt.matchAll(/KVC-[a-z2-7]{26}/g)) {
      const request = `q-${this.options.client.sent + 1}`;
      const known = this.#planted.get(marker);
      // The same prompt as another request is an attempt after a 429.
      if (known !== undefined && (known.ask !== ask || known.request === request)) continue;
      const entry: Planted = { request, ask, sentMs, endMs: null };
      this.#planted.set(marker, entry);
      planted.push(entry);
    }
    return planted;
  }

  #note(sent: Sent, ask: Ask, answer: Answer, markers: MarkerBook): void {
    const { experiment, journal, startMs, keepText } = this.options;
    this.#answers++;
    journal.write(requestRecord(experiment, ask, answer, startMs, keepText));
    if (answer.outcome === 'left') this.#left.push({ id: answer.id, endMs: answer.endMs });
    if (this.#left.length > LEFT_KEPT_MAX) this.#left.shift();
    for (const foreign of markers.foreign(answer, ask.prompt)) {
      const hit = this.#hit(ask, answer, foreign);
      this.hits.push(hit);
      journal.write({ record: 'hit', ...hit });
      const planting = foreign.marker === null ? undefined : this.#planted.get(foreign.marker);
      this.options.onHit?.(hit, { reading: sent, planting: planting?.ask ?? null });
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
