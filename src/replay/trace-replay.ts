/** A counterexample of `verify`, driven through the real engine: its order of events, and what came of it. */
import { engineConfig } from '../engine/config.js';
import type { Counterexample, CounterexampleStep } from '../handoff/counterexample.js';
import { DecodePhase } from '../handoff/decode.js';
import { guardsAgainst, type Outcome } from '../handoff/faults.js';
import { type GuardBits, guardBits } from '../handoff/guards.js';
import { type Actor, getPage, getSlot, listAt, type View } from '../handoff/layout.js';
import { E, eventName } from '../handoff/messages.js';
import { isWritten, OWNER_TENANT, readTag } from '../kv/tag.js';
import { MarkerIndex, mergeHits } from '../markers/marker-index.js';
import { Driver, type Letter } from './driver.js';
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
  readonly #foreign = new Set<string>();
  readonly #torn = new Set<string>();
  #foreignTokens = 0;
  #sharedPages = 0;
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
    this.#driver = new Driver(config, (actor, view, event) => this.#look(actor, view, event));
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
    const slot = step.slot ?? 0;
    const { engine } = this.#driver;
    const prefill = (): void => void engine.prefill.turn();
    const decode = (): void => void engine.decode.turn();
    const until = (actor: Actor, event: Parameters<Driver['expect']>[1], move: () => void): StepFate =>
      FATES[this.#driver.expect(actor, event, slot, move)];
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
        return this.#leave(slot);
      case 'prefillAdmit':
        this.#hand('prefill', slot);
        return until('prefill', 'admit', prefill);
      case 'prefillHit':
        this.#hand('prefill', slot);
        return until('prefill', 'hit', prefill);
      case 'compute':
        return until('prefill', 'chunk', prefill);
      case 'abandon':
        return until('prefill', 'abandon', prefill);
      case 'decodeAdmit':
        this.#hand('decode', slot);
        return until('decode', 'admit', decode);
      case 'decodeHit':
        this.#hand('decode', slot);
        return until('decode', 'hit', decode);
      case 'attach':
        this.#hand('decode', slot);
        return until('decode', 'attach', decode);
      case 'verify':
        return until('decode', 'verified', decode);
      case 'readBegin':
      case 'readEnd':
      case 'finish':
        return until('decode', step.do, decode);
      case 'prefillEvict':
        return until('prefill', 'evict', prefill);
      case 'decodeEvict':
        return until('decode', 'evict', decode);
      case 'timeout':
        return until('decode', 'timeout', () => {
          decode();
          this.#driver.clock.advance(engine.config.drainAlarmMs);
        });
      case 'gatewayTimer':
        return until('gateway', 'timer', () => this.#driver.clock.advance(TIMER_MS));
      case 'prefillTimer':
        return until('prefill', 'timer', () => engine.prefill.tick());
      case 'decodeTimer':
        return until('decode', 'timer', () => engine.decode.tick());
      case 'prefillRestart':
        this.#driver.restartPrefill();
        return 'told';
      case 'gatewayLearnsPrefill':
        this.#driver.tellOfPrefill('gateway');
        return 'told';
      case 'decodeLearnsPrefill':
        this.#driver.tellOfPrefill('decode');
        return 'told';
      default:
        return 'impossible';
    }
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
      for (const { page } of writes) this.#torn.add(`${page} ${slot} ${wanted}`);
    }
    const landed = this.#driver.land(writes);
    if (how === 'tear') wire.tearWrites(null);
    return landed ? 'told' : 'stopped';
  }

  /** The truth that no guard knows: whose pages a token was computed over that leaves now, and who shares what. */
  #look(actor: Actor, view: View, event: Int32Array): void {
    if (actor !== 'decode') return;
    const slot = event[E.slot] ?? 0;
    const name = eventName(event[E.kind] ?? 0);
    if (name === 'hit') this.#sharedPages += this.#foreignShares(view, slot);
    if (name !== 'readEnd' || getSlot(view, slot, 'phase') !== DecodePhase.decoding) return;
    const foreign = this.#foreignIn(view, slot);
    if (foreign.length > 0 && slot === this.#partOfVictim()?.slot) this.#foreignTokens++;
    for (const words of foreign) this.#foreign.add(words);
  }

  #foreignShares(view: View, slot: number): number {
    const places = Array.from({ length: getSlot(view, slot, 'prefix') }, (_, place) => place);
    const tenant = getSlot(view, slot, 'tenant');
    return places.filter((place) => getPage(view, pageIn(view, slot, place), 'tenant') !== tenant).length;
  }

  #foreignIn(view: View, slot: number): string[] {
    const words: string[] = [];
    for (let place = 0; place < getSlot(view, slot, 'promptPages'); place++) {
      const page = pageIn(view, slot, place);
      const owner = this.#ownerOf(view, slot, place, page);
      if (owner !== null) words.push(`page ${page}, ${owner}`);
    }
    return words;
  }

  /** Whose content is in the page; null: the slot's own. */
  #ownerOf(view: View, slot: number, place: number, page: number): string | null {
    const attempt = getSlot(view, slot, 'attempt');
    if (this.#torn.has(`${page} ${slot} ${attempt}`)) return 'of which only the header arrived';
    const pool = this.#driver.engine.decodePool;
    if (!isWritten(pool, page)) return 'which nobody wrote to';
    const tag = readTag(pool, page);
    if (tag.ownerKind === OWNER_TENANT) {
      return tag.owner === getSlot(view, slot, 'tenant') ? null : `sealed for tenant ${tag.owner}`;
    }
    const isLeaseOwn = tag.owner === slot && tag.attempt === attempt && tag.place === place;
    if (isLeaseOwn && tag.epoch === getPage(view, page, 'epoch')) return null;
    const owner = this.#parts.findLast((part) => part.slot === tag.owner && part.attempt <= tag.attempt);
    return `written for ${isLeaseOwn ? 'an earlier lease of ' : ''}${owner?.name ?? 'nobody'}`;
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
      foreignTokens: this.#foreignTokens,
      foreignPages: [...this.#foreign],
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
    if (this.#foreignTokens > 0 || hasMarker) return this.#sharedPages > 0 && !hasMarker ? 'shared' : 'leaked';
    if (this.#sharedPages > 0) return 'shared';
    if (!isFreed) return 'hung';
    if (victim?.end?.outcome === 'finished') return 'answered';
    return victim?.end?.outcome === 'refused' ? 'refused' : 'failed-closed';
  }
}

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

const pageIn = (view: View, slot: number, place: number): number => view.cells[listAt(view, slot, 0) + place] ?? 0;

/** The request that holds the slot of the last step that has one. */
function victimOf({ steps }: Counterexample): number {
  const slot = steps.findLast((step) => step.slot !== undefined)?.slot ?? 0;
  return steps.findLast((step) => step.do === 'submit' && step.slot === slot)?.request ?? 0;
}
