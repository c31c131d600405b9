/** A counterexample of `verify`, driven through the real engine: its order of events, and what came of it. */
import { engineConfig } from '../engine/config.js';
import type { Counterexample, CounterexampleStep } from '../handoff/counterexample.js';
import { guardsAgainst, type Outcome } from '../handoff/faults.js';
import { type GuardBits, guardBits } from '../handoff/guards.js';
import { type Actor, getSlot } from '../handoff/layout.js';
import { E, type EventKindName, eventName } from '../handoff/messages.js';
import { MarkerIndex, mergeHits } from '../markers/marker-index.js';
import { Driver, type Letter } from './driver.js';
import { ReadWatch } from './read-watch.js';
import { Cast, type Part } from './trace-cast.js';

/**
 * `told`: it happened as it is told. `early`: it had happened already, in one turn with what came before. `impossible`: the engine was
 * not in a state in which it could. `stopped`: it was tried, and refused.
 */
export type StepFate = 'told' | 'early' | 'impossible' | 'stopped';

export interface DrivenStep {
  readonly n: number;
  readonly words: string;
  readonly fate: StepFate;
}

export interface DrivenResult {
  readonly fault: string;
  readonly invariant: string;
  readonly guards: GuardBits;
  readonly steps: readonly DrivenStep[];
  readonly outcome: Outcome;
  /** Who the counterexample is about. */
  readonly victim: string;
  /** Tokens that left for the victim although a page that was read for them was not its own, and whose these pages were. */
  readonly foreignTokens: number;
  readonly foreignPages: readonly string[];
  /** Characters in a row of another tenant's marker in the victim's answer, and whose. */
  readonly markerCharacters: number;
  readonly markerOwner: string | null;
  /** Pages of decode that nobody gives back any more. */
  readonly lostPages: number;
  /** What ended the victim's request, where an error did. */
  readonly error: string | null;
  readonly guardNotes: readonly string[];
  /** A guard of the engine is on that stops the fault. */
  readonly isStopped: boolean;
  /** Stopped: no harm. Otherwise: the harm that the counterexample tells of. */
  readonly isAsExpected: boolean;
}

export interface DriveOptions {
  readonly guards: GuardBits;
  readonly seed: number;
}

/** Steps of the model that the engine has no counterpart for, with the reason. */
const UNDRIVEN: Readonly<Partial<Record<CounterexampleStep['do'], string>>> = {
  decodeRestart: 'the engine in one thread has one decode for its life',
  gatewayLearnsDecode: 'the engine in one thread has one decode for its life',
  prefillLearnsDecode: 'the engine in one thread has one decode for its life',
};

/** The first step that cannot be driven, in words; null: all can. */
export function undriven({ steps }: Counterexample): string | null {
  for (const step of steps) {
    const reason = UNDRIVEN[step.do];
    if (reason !== undefined) return `step ${step.n} (${step.words}): ${reason}`;
  }
  return null;
}

export function driveCounterexample(found: Counterexample, options: DriveOptions): DrivenResult {
  return new Stage(found, options).play();
}

class Stage {
  readonly #found: Counterexample;
  readonly #guards: GuardBits;
  readonly #cast: Cast;
  readonly #driver: Driver;
  readonly #parts: Part[] = [];
  /** By slot: attempts that were made before the counterexample begins. */
  readonly #attemptsBefore: number[];
  readonly #victim: number;
  readonly #reads: ReadWatch;
  #handle: string | null = null;
  /** Starts that prefill has before it is told so, by slot and attempt. */
  readonly #early = new Set<string>();
  /** Deliveries that wait for what makes a node act on them: a turn acts on all that was delivered. */
  #later: { readonly actor: Actor; readonly slot: number; readonly letter: Letter; readonly keeps: boolean }[] = [];

  constructor(found: Counterexample, { guards, seed }: DriveOptions) {
    this.#found = found;
    this.#guards = guards;
    this.#victim = victimOf(found);
    this.#cast = new Cast(found, this.#victim, seed);
    this.#attemptsBefore = Array.from({ length: found.world.slots }, () => 0);
    const config = engineConfig({ ...this.#cast.sizes, faults: [found.fault], guards });
    this.#driver = new Driver(config, (actor, view, event) => this.#reads.look(actor, view, event));
    this.#reads = new ReadWatch(this.#driver.engine.decodePool, this.#parts, () => this.#partOfVictim());
  }

  play(): DrivenResult {
    this.#fillPages();
    const steps = this.#found.steps.map((step) => ({ n: step.n, words: step.words, fate: this.#take(step) }));
    for (const { letter } of this.#later.splice(0)) this.#driver.letters.unshift(letter);
    const isOver = (): boolean => this.#parts.every(({ isReleased }) => isReleased);
    this.#driver.settle(isOver);
    this.#driver.tellOfLives();
    this.#driver.settle(isOver);
    return this.#judge(steps);
  }

  /** Somebody was there before: pages that nobody wrote to since hold what is theirs. */
  #fillPages(): void {
    const earlier = this.#cast.earlier();
    if (earlier === null) return;
    this.#enter(earlier);
    this.#driver.settle(() => earlier.isReleased);
    this.#attemptsBefore[earlier.slot] = earlier.attempt;
    this.#handle = earlier.end?.handle ?? null;
    this.#driver.forget();
  }

  #enter(part: Part): void {
    const { machine } = this.#driver.engine.coordinator;
    const attempts = (): number[] => this.#attemptsBefore.map((_, slot) => getSlot(machine.view, slot, 'attempt'));
    const before = attempts();
    part.run = this.#driver.submit(part.request, part.sink);
    part.slot = attempts().findIndex((attempt, slot) => attempt !== before[slot]);
    part.attempt = attempts()[part.slot] ?? 0;
    this.#parts.push(part);
  }

  #take(step: CounterexampleStep): StepFate {
    const { engine } = this.#driver;
    switch (step.do) {
      case 'submit':
        return this.#submit(step);
      case 'deliver':
      case 'repeat':
      case 'lose':
        return this.#message(step);
      case 'land':
      case 'tear':
        return this.#land(step);
      case 'clientGone':
        return this.#leave(step.slot ?? 0);
      case 'prefillRestart':
        this.#driver.restartPrefill();
        return 'told';
      case 'gatewayLearnsPrefill':
      case 'decodeLearnsPrefill':
        this.#driver.tellOfPrefill(step.do === 'gatewayLearnsPrefill' ? 'gateway' : 'decode');
        return 'told';
      case 'timeout':
        return this.#until(step, () => {
          engine.decode.turn();
          this.#driver.clock.advance(engine.config.drainAlarmMs);
        });
      case 'gatewayTimer':
        return this.#until(step, () => this.#driver.clock.advance(TIMER_MS));
      case 'prefillTimer':
        return this.#until(step, () => engine.prefill.tick());
      case 'decodeTimer':
        return this.#until(step, () => engine.decode.tick());
      default:
        return this.#until(step, () => this.#turn(LOCAL[step.do]?.[0]));
    }
  }

  #turn(actor: Actor | undefined): void {
    if (actor === 'prefill') this.#driver.engine.prefill.turn();
    if (actor === 'decode') this.#driver.engine.decode.turn();
  }

  /** Has a machine move until it took the event that the step is about. */
  #until(step: CounterexampleStep, move: () => void): StepFate {
    const local = LOCAL[step.do];
    if (local === undefined) return 'impossible';
    const [actor, event] = local;
    const slot = step.slot ?? 0;
    if (STARTS.has(event)) this.#hand(actor, slot);
    return FATES[this.#driver.expect(actor, event, slot, move)];
  }

  #submit({ request = 0 }: CounterexampleStep): StepFate {
    const takesHandle = this.#found.steps.some((step) => step.do === 'attach') && request === this.#victim;
    this.#enter(this.#cast.part(request, takesHandle ? this.#handle : null));
    return (this.#parts.at(-1)?.attempt ?? 0) > 0 && this.#parts.at(-1)?.end === null ? 'told' : 'stopped';
  }

  #leave(slot: number): StepFate {
    const part = this.#partIn(slot);
    if (part === undefined || part.end !== null) return 'impossible';
    part.run?.abort();
    return 'told';
  }

  #partIn(slot: number): Part | undefined {
    return this.#parts.findLast((part) => part.slot === slot);
  }

  #message(step: CounterexampleStep): StepFate {
    const isStartOfPrefill = step.to === 'prefill' && step.event === 'start';
    if (isStartOfPrefill && this.#early.delete(`${step.slot} ${step.attempt}`)) return 'early';
    const letter = this.#find(step) ?? this.#findLater(step);
    if (letter === null) return 'impossible';
    if (step.do === 'lose') this.#driver.drop(letter);
    else this.#give(step, letter, step.do === 'repeat');
    this.#driver.deliverAsides();
    return 'told';
  }

  /** A start or a lease is handed over when the node is to act on it, or when another message of the slot comes. */
  #give(step: CounterexampleStep, letter: Letter, keeps: boolean): void {
    const [actor, slot] = [letter.to, step.slot ?? 0];
    const waits = (actor === 'decode' && step.event === 'start') || (actor === 'prefill' && step.event === 'lease');
    if (!waits) {
      this.#hand(actor, slot);
      return this.#driver.deliver(letter, keeps);
    }
    if (!keeps) this.#driver.drop(letter);
    this.#later.push({ actor, slot, letter, keeps });
  }

  #hand(actor: Actor, slot: number): void {
    const mine = this.#later.filter((one) => one.actor === actor && one.slot === slot);
    this.#later = this.#later.filter((one) => !mine.includes(one));
    for (const { letter } of mine) {
      this.#driver.deliver(letter, true);
      if (actor === 'prefill') this.#handStartOf(letter);
    }
  }

  /** A lease stands for a start that is late, but only the start has the prompt: here it comes at the latest behind the lease. */
  #handStartOf({ message }: Letter): void {
    if (message.kind !== 'protocol') return;
    const { event } = message;
    const step = { to: 'prefill', event: 'start', slot: event[E.slot] ?? 0, life: 0 } as const;
    const attempt = (event[E.attempt] ?? 0) - (this.#attemptsBefore[step.slot] ?? 0);
    const start = this.#find({ ...step, attempt });
    if (start === null) return;
    this.#driver.deliver(start);
    this.#early.add(`${step.slot} ${attempt}`);
  }

  #find({ to, event, slot = 0, attempt = 0, life = 0 }: Omit<CounterexampleStep, 'n' | 'do' | 'words'>): Letter | null {
    const wanted = attempt + (this.#attemptsBefore[slot] ?? 0);
    const isIt = ({ to: whom, message }: Letter): boolean =>
      whom === to &&
      message.kind === 'protocol' &&
      eventName(message.event[E.kind] ?? 0) === event &&
      message.event[E.slot] === slot &&
      message.event[E.attempt] === wanted &&
      message.event[E.from] === life;
    return this.#driver.letters.find((letter) => isIt(letter)) ?? null;
  }

  /** What the checker does at once may take the engine a turn, and a write that it posted before it gave up. */
  #findLater(step: CounterexampleStep): Letter | null {
    const { slot = 0, life = 0 } = step;
    if (step.to !== 'decode' || step.event === 'start' || step.event === 'abort') return null;
    for (const write of this.#driver.posted.filter((one) => one.slot === slot && one.life === life)) {
      this.#driver.land([write]);
    }
    this.#driver.engine.prefill.turn();
    return this.#find(step);
  }

  #land({ do: how, slot = 0, attempt = 0, place = 0, life = 1 }: CounterexampleStep): StepFate {
    const wanted = attempt + (this.#attemptsBefore[slot] ?? 0);
    const { scale } = this.#cast;
    const writes = this.#driver.posted.filter(
      (one) =>
        one.life === life && one.slot === slot && one.attempt === wanted && Math.floor(one.place / scale) === place,
    );
    if (writes.length === 0) return 'impossible';
    const { wire } = this.#driver.engine.prefill;
    if (how === 'tear') {
      wire.tearWrites(() => true);
      for (const { page } of writes) this.#reads.noteTorn(page, slot, wanted);
    }
    const landed = this.#driver.land(writes);
    if (how === 'tear') wire.tearWrites(null);
    return landed ? 'told' : 'stopped';
  }

  #partOfVictim(): Part | undefined {
    const name = String.fromCharCode(65 + this.#victim);
    return this.#parts.find((part) => part.name === name);
  }

  #judge(steps: readonly DrivenStep[]): DrivenResult {
    const { fault, invariant } = this.#found;
    const victim = this.#partOfVictim();
    const hits = mergeHits(new MarkerIndex(this.#cast.markers).scanText(victim?.text ?? ''));
    const foreignHits = hits.filter(({ marker }) => marker.text !== victim?.marker?.text);
    const longest = foreignHits.reduce((best, hit) => (hit.length > (best?.length ?? 0) ? hit : best), foreignHits[0]);
    const stats = this.#driver.engine.coordinator.stats();
    const lostPages = stats.decodePages.leased + stats.decodePages.draining;
    const isFreed = this.#parts.every(({ isReleased }) => isReleased);
    const outcome = this.#outcome(victim, longest !== undefined, isFreed);
    // The guard `policy` is the HTTP gateway's, which has no part in this.
    const isStopped = (this.#guards & guardsAgainst([fault]) & ~guardBits(['policy'])) !== 0;
    return {
      fault,
      invariant,
      guards: this.#guards,
      steps,
      outcome,
      victim: victim?.name ?? '?',
      foreignTokens: this.#reads.foreignTokens,
      foreignPages: this.#reads.foreignPages,
      markerCharacters: longest?.length ?? 0,
      markerOwner:
        this.#parts.find(({ marker }) => marker !== null && marker.text === longest?.marker.text)?.name ?? null,
      lostPages: isFreed ? 0 : lostPages,
      error: victim?.end?.error?.message ?? null,
      guardNotes: stats.findings.map(({ guard, words }) => `${guard}: ${words}`),
      isStopped,
      isAsExpected: isStopped ? !HARM.has(outcome) : (HARM_OF[invariant] ?? ['leaked']).includes(outcome),
    };
  }

  #outcome(victim: Part | undefined, hasMarker: boolean, isFreed: boolean): Outcome {
    const { foreignTokens, sharedPages } = this.#reads;
    const isFinished = victim?.end?.outcome === 'finished';
    // Tokens that the gateway kept back were read by nobody.
    if (hasMarker || (foreignTokens > 0 && victim !== undefined && victim.tokens.length > 0)) {
      return sharedPages > 0 && !hasMarker ? 'shared' : 'leaked';
    }
    if (sharedPages > 0 && isFinished) return 'shared';
    if (!isFreed) return 'hung';
    if (isFinished) return 'answered';
    return victim?.end?.outcome === 'refused' ? 'refused' : 'failed-closed';
  }
}

/** Steps of one machine alone: which, and the event that it takes. */
const LOCAL: Readonly<Partial<Record<CounterexampleStep['do'], readonly [Actor, EventKindName]>>> = {
  prefillAdmit: ['prefill', 'admit'],
  prefillHit: ['prefill', 'hit'],
  compute: ['prefill', 'chunk'],
  abandon: ['prefill', 'abandon'],
  prefillEvict: ['prefill', 'evict'],
  decodeAdmit: ['decode', 'admit'],
  decodeHit: ['decode', 'hit'],
  attach: ['decode', 'attach'],
  verify: ['decode', 'verified'],
  readBegin: ['decode', 'readBegin'],
  readEnd: ['decode', 'readEnd'],
  finish: ['decode', 'finish'],
  decodeEvict: ['decode', 'evict'],
  timeout: ['decode', 'timeout'],
  gatewayTimer: ['gateway', 'timer'],
  prefillTimer: ['prefill', 'timer'],
  decodeTimer: ['decode', 'timer'],
};
/** What a node does with a start or a lease that it has. */
const STARTS: ReadonlySet<EventKindName> = new Set<EventKindName>(['admit', 'hit', 'attach']);
/** The harm that a broken invariant is, as the engine shows it. */
const HARM_OF: Readonly<Record<string, readonly Outcome[]>> = {
  noForeignRead: ['leaked'],
  // What is shared may also be told.
  prefixesStayInsideOneTenant: ['shared', 'leaked'],
  everythingCanSettle: ['hung'],
};
const HARM: ReadonlySet<Outcome> = new Set(['leaked', 'shared', 'hung']);
const FATES = { now: 'told', early: 'early', never: 'impossible' } as const;
/** At least the time after which the coordinator asks again. */
const TIMER_MS = 1_000;

/** The request that holds the slot of the last step that has one. */
function victimOf({ steps }: Counterexample): number {
  const slot = steps.findLast((step) => step.slot !== undefined)?.slot ?? 0;
  return steps.findLast((step) => step.do === 'submit' && step.slot === slot)?.request ?? 0;
}
