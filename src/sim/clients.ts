/**
 * The clients of a simulated world and the gateway in front of the engine: admission, the waiting room with its accounts, and what
 * each client may be answered. The token stream is compared with the right answer as it arrives.
 */
import type { Clock } from '../base/clock.js';
import { CodedError } from '../base/errors.js';
import type { Prng } from '../base/prng.js';
import { type Ticket, WaitingRoom } from '../gateway/waiting.js';
import { decideAdmission } from '../handoff/admission.js';
import type { EngineEnd, EnginePort, EngineRun } from '../handoff/engine-port.js';
import { faultBit } from '../handoff/faults.js';
import { guardBit } from '../handoff/guards.js';
import { TOKEN_EOS } from '../tokenizer/bytes.js';
import { type Break, RightAnswer } from './content.js';
import { type Content, ownerWords, Prompts } from './prompts.js';
import type { Plan } from './plan.js';
import { SIM, type SimTrace } from './sim-trace.js';
import { Violation } from './violation.js';

const ASKS_TOO_MUCH = 1500;
/** Rooms that clients name themselves, so that several do at once. */
const ROOMS = 3;
/** Handles of the past that somebody may send again. */
const HANDLES_KEPT = 8;

const OUTCOME = { finished: 1, refused: 2, failed: 3, aborted: 4 } as const;

/** How many requests ended in which way. */
export interface Outcomes {
  finished: number;
  refused: number;
  failed: number;
  aborted: number;
  /** At the gateway: too long, or no place to wait. */
  turnedAway: number;
  cachedTokens: number;
  /** Wrong inside their own tenant, or cut short; counted where a fault is on, else a violation. */
  spoiled: number;
}

interface Open {
  readonly id: number;
  readonly content: Content;
  readonly right: RightAnswer;
  readonly maxTokens: number;
  readonly ignoreEos: boolean;
  readonly restarts: number;
  ticket: Ticket | null;
  run: EngineRun | null;
  tokens: number;
  isStarted: boolean;
  isSpoiled: boolean;
  hasEnded: boolean;
  isOver: boolean;
  at: number;
}

/** What the clients are told of the engine behind the gateway. */
interface Sees {
  /** Restarts of either node so far. */
  readonly restarts: () => number;
  /** The read over foreign content that was answered with the token. */
  readonly breakBehind: (token: number) => Break | null;
}

export class Clients {
  readonly outcomes: Outcomes = {
    finished: 0,
    refused: 0,
    failed: 0,
    aborted: 0,
    turnedAway: 0,
    cachedTokens: 0,
    spoiled: 0,
  };
  submitted = 0;
  readonly room: WaitingRoom;
  readonly #plan: Plan;
  readonly #engine: EnginePort;
  readonly #chance: Prng;
  readonly #trace: SimTrace;
  readonly #prompts: Prompts;
  readonly #open: Open[] = [];
  readonly #handles: string[] = [];
  readonly #sees: Sees;
  readonly #isFaulty: boolean;
  /** The weak hash of `prefix-hash-collision` with the guard that keeps pages inside one tenant: what is wrong is wrong inside it. */
  readonly #isWithinTenant: boolean;

  constructor(plan: Plan, engine: EnginePort, clock: Clock, chance: Prng, trace: SimTrace, sees: Sees) {
    this.#plan = plan;
    this.#engine = engine;
    this.#chance = chance;
    this.#trace = trace;
    this.#sees = sees;
    const { faults, guards } = plan.config.rules;
    this.#isFaulty = faults !== 0;
    this.#isWithinTenant = faults === faultBit('prefix-hash-collision') && (guards & guardBit('salt')) !== 0;
    this.#prompts = new Prompts(plan, chance);
    const { context, decodePool, pageTokens, runningMax } = plan.config;
    const size = {
      runningMax,
      poolTokens: decodePool,
      pageTokens,
      requestTokensMax: Math.min(context - 1, decodePool),
    };
    this.room = new WaitingRoom({ clock, size: () => size, tenants: plan.tenants });
  }

  get open(): number {
    return this.#open.length;
  }

  get mayComeMore(): boolean {
    return this.submitted < this.#plan.requests && this.#open.length < this.#plan.openMax;
  }

  /** One request of a tenant, as the gateway's ladder would pass it on. */
  submit(): void {
    const id = this.submitted++;
    const content = this.#prompts.draw(id);
    const maxAsked = this.#draw(ASKS_TOO_MUCH)
      ? this.#plan.config.context
      : this.#chance.between(1, this.#plan.outputTokensMax);
    const { length } = content.prompt;
    this.#trace.record(SIM.submit, id, content.tenant.number, length, maxAsked);
    const isAdmitting = this.#isOn('admission');
    const verdict = isAdmitting ? decideAdmission(length, maxAsked, this.#plan.config) : null;
    if (verdict !== null && verdict.kind !== 'admitted') return this.#turnAway(id, 1);
    const { context, decodePool } = this.#plan.config;
    // Unadmitted, a request is clamped by the engine alone.
    const clamped = Math.max(1, Math.min(maxAsked, context - length, decodePool - length + 1));
    const maxTokens = verdict === null ? clamped : verdict.maxTokens;
    this.#prompts.remember(content);
    this.#enter(this.#newOpen(id, content, maxTokens), isAdmitting ? length + maxTokens - 1 : 0);
  }

  #isOn(guard: 'admission' | 'salt'): boolean {
    return (this.#plan.config.rules.guards & guardBit(guard)) !== 0;
  }

  #draw(of65536: number): boolean {
    return this.#chance.u32() >>> 16 < of65536;
  }

  #newOpen(id: number, content: Content, maxTokens: number): Open {
    return {
      id,
      content,
      maxTokens,
      right: new RightAnswer(content.prompt),
      ignoreEos: this.#draw(32_768),
      restarts: this.#sees.restarts(),
      ticket: null,
      run: null,
      tokens: 0,
      isStarted: false,
      isSpoiled: false,
      hasEnded: false,
      isOver: false,
      at: -1,
    };
  }

  #enter(one: Open, tokens: number): void {
    one.at = this.#open.length;
    this.#open.push(one);
    try {
      const ticket = this.room.enter(one.content.tenant.account, tokens, {
        granted: (granted) => this.#dispatch(one, granted),
        refused: () => this.#refused(one),
      });
      one.ticket ??= ticket;
    } catch (thrown) {
      if (!(thrown instanceof CodedError)) throw thrown;
      this.#refused(one);
    }
  }

  #refused(one: Open): void {
    this.#close(one);
    this.#turnAway(one.id, 2);
  }

  #turnAway(id: number, code: number): void {
    this.outcomes.turnedAway++;
    this.#trace.record(SIM.verdict, id, code);
  }

  #dispatch(one: Open, ticket: Ticket): void {
    one.ticket = ticket;
    const { tenant, prompt } = one.content;
    const hasHandle = this.#draw(this.#plan.handles) && this.#handles.length > 0;
    const room = this.#draw(this.#plan.rooms) ? this.#chance.below(ROOMS) : ROOMS + one.id;
    one.run = this.#engine.submit(
      {
        tenant: tenant.number,
        salt: this.#isOn('salt') ? tenant.salt : '',
        prompt,
        maxTokens: one.maxTokens,
        temperature: 0,
        seed: 0,
        room: BigInt(room),
        handle: hasHandle ? this.#chance.pick(this.#handles) : null,
        ignoreEos: one.ignoreEos,
      },
      {
        started: (counts) =>
          this.#started(one, counts?.promptTokens ?? 0, counts?.prefillTokens ?? 0, counts?.cachedTokens ?? 0),
        token: (id) => this.#token(one, id),
        end: (end) => this.#ended(one, end),
        released: () => this.#released(one),
      },
    );
  }

  #started(one: Open, promptTokens: number, prefillTokens: number, cachedTokens: number): void {
    this.#trace.record(SIM.started, one.id, promptTokens, prefillTokens, cachedTokens);
    if (one.isStarted || one.hasEnded)
      throw new Violation('everyRequestSettlesOnce', `request ${one.id} started twice`);
    one.isStarted = true;
    this.outcomes.cachedTokens += cachedTokens;
    // Pages of another prompt of the same tenant are no other tenant's; the answer over them is compared all the same.
    const mayShare = this.#isWithinTenant ? promptTokens : this.#prompts.mayShare(one.content);
    // A second attempt may find what the first one sealed.
    if (cachedTokens > mayShare && one.restarts === this.#sees.restarts()) {
      throw new Violation(
        'noForeignPrefix',
        `request ${one.id} of tenant ${one.content.tenant.number} was given ${cachedTokens} tokens of kept pages; prompts of its own tenant began like it for ${mayShare}`,
      );
    }
  }

  /** A token that leaves has to be the one that follows from the request's own content. */
  #token(one: Open, token: number): void {
    one.tokens++;
    this.#trace.record(SIM.token, one.id, token, one.tokens);
    if (!one.isStarted || one.hasEnded) {
      throw new Violation('everyRequestSettlesOnce', `request ${one.id} got a token before its start or after its end`);
    }
    if (!one.isSpoiled && token !== one.right.next) this.#wrong(one, this.#wrongToken(one, token));
    one.right.feed(token);
    one.run?.acknowledge(one.tokens);
  }

  /** Whose content it follows from, as far as what was read tells. */
  #wrongToken(one: Open, token: number): Violation {
    const found = this.#sees.breakBehind(token);
    const whose =
      found === null ? '' : `; page ${found.page}, read at place ${found.place}, holds ${ownerWords(found.token)}`;
    return new Violation(
      this.#isWithinTenant ? 'answersAreRight' : 'noForeignRead',
      `token ${one.tokens} of request ${one.id} of tenant ${one.content.tenant.number} does not follow from its own content${whose}`,
    );
  }

  /**
   * With a fault on, an answer that is wrong inside its own tenant, or cut short, is counted and the world goes on: what is looked
   * for is harm to another.
   */
  #wrong(one: Open, violation: Violation): void {
    if (violation.invariant !== 'answersAreRight' || !this.#isFaulty) throw violation;
    if (!one.isSpoiled) this.outcomes.spoiled++;
    one.isSpoiled = true;
  }

  #ended(one: Open, end: EngineEnd): void {
    const { id, content, right } = one;
    this.#trace.record(SIM.end, id, OUTCOME[end.outcome], one.tokens);
    if (one.hasEnded) throw new Violation('everyRequestSettlesOnce', `request ${id} ended twice`);
    one.hasEnded = true;
    this.outcomes[end.outcome]++;
    one.ticket?.ended();
    if (end.outcome !== 'finished') return;
    if (end.promptTokens !== content.prompt.length || end.prefillTokens !== content.prompt.length) {
      throw new Violation(
        'countsAreTheGateways',
        `request ${id} has ${content.prompt.length} tokens; decode counted ${end.promptTokens}, prefill ${end.prefillTokens}`,
      );
    }
    if (one.isSpoiled) return;
    const isStopped = right.next === TOKEN_EOS && !one.ignoreEos;
    if (!isStopped && one.tokens !== one.maxTokens) {
      this.#wrong(
        one,
        new Violation(
          'answersAreRight',
          `request ${id} ended as finished after ${one.tokens} of ${one.maxTokens} tokens`,
        ),
      );
    }
    if (end.handle === '') return;
    this.#handles.push(end.handle);
    if (this.#handles.length > HANDLES_KEPT) this.#handles.shift();
  }

  #released(one: Open): void {
    this.#trace.record(SIM.released, one.id);
    if (!one.hasEnded || one.isOver) {
      throw new Violation('everyRequestSettlesOnce', `request ${one.id} was released before its end, or twice`);
    }
    one.ticket?.released();
    this.#close(one);
  }

  #close(one: Open): void {
    one.isOver = true;
    const last = this.#open.pop();
    if (last === undefined || last === one) return;
    this.#open[one.at] = last;
    last.at = one.at;
  }

  /** Some client leaves, whether its request waits, runs or is nearly over. */
  abort(): void {
    if (this.#open.length === 0) return;
    const one = this.#chance.pick(this.#open);
    this.#trace.record(SIM.abort, one.id);
    if (one.run !== null) return one.run.abort();
    if (one.ticket?.phase !== 'waiting') return;
    one.ticket.cancel();
    this.outcomes.aborted++;
    this.#close(one);
  }

  /** When all has come to rest: what is still open, and what the accounts hold. */
  leftWords(): string | null {
    const first = this.#open[0];
    if (first !== undefined) {
      const rest =
        first.run === null ? 'waits for its turn' : first.hasEnded ? 'has ended and holds pages' : 'has no end';
      return `${this.#open.length} requests are not settled; request ${first.id} ${rest}`;
    }
    const { running, waiting, heldTokens } = this.room;
    if (running + waiting + heldTokens > 0) {
      return `nothing is open, and the gateway counts ${running} running, ${waiting} waiting, ${heldTokens} tokens held`;
    }
    const { finished, refused, failed, aborted, turnedAway } = this.outcomes;
    const settled = finished + refused + failed + aborted + turnedAway;
    return settled === this.submitted ? null : `${this.submitted} requests came, ${settled} were settled`;
  }
}
