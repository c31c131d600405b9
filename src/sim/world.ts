/**
 * One simulated world: what its seed says happens, step by step, until everything has come to rest. One source of chance decides
 * the order of events, another what the clients send, and the clock moves only as a step of its own; so the same seed is the same
 * world on every machine.
 */
import { AssertionFailure } from '../base/assert.js';
import { ManualClock } from '../base/clock.js';
import { Prng } from '../base/prng.js';
import { countPages } from '../handoff/ledger.js';
import { Clients, type Outcomes } from './clients.js';
import { type Plan, planOf, type SimOptions } from './plan.js';
import { CHANNEL, type Down, type Message, Post } from './post.js';
import { SimEngine } from './sim-engine.js';
import { SIM, SimTrace } from './sim-trace.js';
import { type SimInvariant, Violation } from './violation.js';
import type { ToDecode, ToGateway, ToPrefill } from '../engine/traffic.js';

export interface SimCounts extends Outcomes {
  requests: number;
  steps: number;
  lost: number;
  repeated: number;
  overtaken: number;
  landed: number;
  refusedWrites: number;
  restarts: number;
}

export interface SimResult {
  readonly seed: number;
  readonly violation: { readonly invariant: SimInvariant; readonly words: string; readonly step: number } | null;
  /** Of every event. The same for a seed and the same options, wherever it runs. */
  readonly hash: string;
  readonly events: number;
  readonly counts: SimCounts;
}

/** Steps between two looks at the records; each look is at one of the three. */
const CHECK_EVERY = 16;
const CLOCK_STEPS_MS = [1, 1, 2, 10, 50, 200] as const;
const PAUSES_MS = [1000, 5000, 31_000] as const;
/** While all comes to rest: how far the clock goes when nothing else is left to do, and how often. Many times every timer. */
const REST_STEP_MS = 500;
const REST_STEPS_MAX = 240;
/** Turns and deliveries in between: many times what the requests of one world need. */
const REST_MOVES_MAX = 400_000;

/** Runs the world of `options`. `onLine` gets the trace, line by line, each with its end. */
export function simulate(options: SimOptions, onLine: ((line: string) => void) | null = null): SimResult {
  const world = new SimWorld(options, onLine);
  return world.run();
}

class SimWorld {
  readonly #options: SimOptions;
  readonly #plan: Plan;
  readonly #clock = new ManualClock();
  readonly #chance: Prng;
  readonly #trace: SimTrace;
  readonly #post: Post;
  readonly #engine: SimEngine;
  readonly #clients: Clients;
  #step = 0;

  constructor(options: SimOptions, onLine: ((line: string) => void) | null) {
    this.#options = options;
    this.#plan = planOf(options);
    const { config } = this.#plan;
    this.#trace = new SimTrace(onLine);
    this.#trace.record(
      SIM.world,
      config.pageTokens,
      config.runningMax,
      config.prefillPool / config.pageTokens,
      config.decodePool / config.pageTokens,
    );
    const seeds = new Prng(options.seed ^ 0x51f1_5eed);
    this.#chance = seeds.fork();
    this.#post = new Post(this.#plan, seeds.fork(), this.#trace);
    this.#engine = new SimEngine(this.#plan, this.#clock, seeds.fork(), this.#post, this.#trace);
    this.#clients = new Clients(this.#plan, this.#engine.coordinator, this.#clock, seeds.fork(), this.#trace, {
      restarts: () => this.#engine.restarts,
      breakBehind: (token) => this.#engine.breakBehind(token),
    });
  }

  run(): SimResult {
    let violation: SimResult['violation'] = null;
    try {
      for (; this.#step < this.#plan.steps && this.#hasMore(); this.#step++) this.#oneStep();
      this.#comeToRest();
    } catch (thrown) {
      // An assert of the engine is an invariant that the engine holds itself to.
      if (thrown instanceof Violation)
        violation = { invariant: thrown.invariant, words: thrown.message, step: this.#step };
      else if (thrown instanceof AssertionFailure)
        violation = { invariant: 'recordsHold', words: thrown.message, step: this.#step };
      else throw thrown;
    }
    const { hash, events } = this.#trace;
    return { seed: this.#options.seed, violation, hash, events, counts: this.#counts() };
  }

  #hasMore(): boolean {
    return this.#clients.open > 0 || this.#clients.submitted < this.#plan.requests;
  }

  #oneStep(): void {
    const draw = this.#chance.u32();
    if (!this.#trouble(draw >>> 16)) this.#work(draw & 255);
    if (this.#step % CHECK_EVERY === 0) this.#engine.check((this.#step / CHECK_EVERY) % 3);
  }

  /** What seldom happens. False: nothing of it now. */
  #trouble(draw: number): boolean {
    const { prefillRestarts, decodeRestarts, pauses, aborts, stormMax } = this.#plan;
    let odds = draw;
    if (odds < prefillRestarts) {
      this.#engine.restartPrefill();
      return true;
    }
    odds -= prefillRestarts;
    if (odds < decodeRestarts && odds >= 0) {
      this.#engine.restartDecode();
      return true;
    }
    odds -= decodeRestarts;
    if (odds < pauses && odds >= 0) {
      this.#advance(this.#chance.pick(PAUSES_MS));
      return true;
    }
    odds -= pauses;
    if (odds < aborts && odds >= 0) {
      for (let i = this.#chance.between(1, stormMax); i > 0; i--) this.#clients.abort();
      return true;
    }
    return false;
  }

  /** One move of somebody who has something to do; `draw` from 0 to 255 says who is asked first. */
  #work(draw: number): void {
    if (draw < 150 && this.#deliver()) return;
    if (draw < 180 && this.#engine.isPrefillDue) return this.#engine.prefillTurn();
    if (draw < 210 && this.#engine.isDecodeDue) return this.#engine.decodeTurn();
    if (draw < 240 && this.#clients.mayComeMore) return this.#clients.submit();
    if (draw === 240) return this.#engine.tick(0);
    if (draw === 241) return this.#engine.tick(1);
    if (draw < 245) return this.#engine.landDead();
    if (draw < 249 || !this.#deliver()) this.#advance(this.#chance.pick(CLOCK_STEPS_MS));
  }

  #advance(ms: number): void {
    this.#trace.record(SIM.clock, ms);
    this.#clock.advance(ms);
    this.#engine.isPrefillDue = true;
    this.#engine.isDecodeDue = true;
  }

  #deliver(): boolean {
    const taken = this.#post.take();
    if (taken === null) return false;
    const { channel, letter } = taken;
    if (letter.kind === 'down') this.#down(letter);
    else if (TO_PREFILL.has(channel)) this.#engine.receivePrefill(letter as Message as ToPrefill);
    else if (TO_DECODE.has(channel)) this.#engine.receiveDecode(letter as Message as ToDecode);
    else this.#engine.coordinator.receive(letter as Message as ToGateway);
    return true;
  }

  #down({ node, incarnation }: Down): void {
    this.#trace.record(SIM.down, node === 'prefill' ? 0 : 1, incarnation);
    this.#engine.coordinator.peerDown(node, incarnation);
  }

  /** No more requests and no more trouble: everything that is open has to end, and every page to go back. */
  #comeToRest(): void {
    this.#post.isCalm = true;
    let rests = 0;
    for (let moves = 0; moves < REST_MOVES_MAX && rests < REST_STEPS_MAX; moves++) {
      if (this.#moveOn()) continue;
      if (this.#clients.open === 0 && this.#engine.writes === 0) break;
      rests++;
      this.#advance(REST_STEP_MS);
      this.#engine.tick(0);
      this.#engine.tick(1);
    }
    this.#trace.record(SIM.rest, this.#clients.submitted, this.#step);
    this.#checkAtRest();
  }

  #moveOn(): boolean {
    this.#engine.landDead();
    if (this.#deliver()) return true;
    if (this.#engine.isPrefillDue) {
      this.#engine.prefillTurn();
      return true;
    }
    if (!this.#engine.isDecodeDue) return false;
    this.#engine.decodeTurn();
    return true;
  }

  #checkAtRest(): void {
    const left = this.#clients.leftWords();
    if (left !== null) throw new Violation('everythingComesToRest', left);
    for (const node of ['prefill', 'decode'] as const) {
      const totals = countPages(this.#engine[node].machine.view);
      if (totals.leased + totals.draining === 0) continue;
      throw new Violation(
        'everythingComesToRest',
        `${node} keeps ${totals.leased} pages leased and ${totals.draining} draining, and nothing is open`,
      );
    }
    for (let which = 0; which < 3; which++) this.#engine.check(which);
  }

  #counts(): SimCounts {
    const { lost, repeated, overtaken } = this.#post;
    const { landed, refused, restarts } = this.#engine;
    return {
      ...this.#clients.outcomes,
      requests: this.#clients.submitted,
      steps: this.#step,
      lost,
      repeated,
      overtaken,
      landed,
      refusedWrites: refused,
      restarts,
    };
  }
}

const TO_PREFILL = new Set([CHANNEL['gateway-prefill'], CHANNEL['decode-prefill'], CHANNEL['supervisor-prefill']]);
const TO_DECODE = new Set([CHANNEL['gateway-decode'], CHANNEL['prefill-decode'], CHANNEL['supervisor-decode']]);
