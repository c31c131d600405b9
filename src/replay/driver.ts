/**
 * The real engine, driven by hand: every message and every page write waits until it is told to go, and a node moves only when it is
 * turned. A turn of a node may do more than one thing; what it did early counts when it is asked for.
 */
import { ManualClock } from '../base/clock.js';
import type { EngineConfig } from '../engine/config.js';
import { InlineEngine } from '../engine/inline-engine.js';
import type { ToDecode, ToGateway, ToPrefill } from '../engine/traffic.js';
import { type Actor, listAt, type View } from '../handoff/layout.js';
import { E, EFFECT_WIDTH, EffectKind, type EventKindName, eventName, type Out } from '../handoff/messages.js';
import { TARGET } from '../handoff/prefill.js';
import type { PostedWrite } from '../kv/wire.js';
import type { EngineRequest, EngineRun, EngineSink } from './engine-types.js';

/** Turns that a node gets to do what it is asked for: more than the tokens of any answer here. */
const TURNS_MAX = 100;
/** Longer than any delay that a fault gives to a write. */
const LATE_MS = 200;
/** The clock's steps while everything rests, and after how many of them nothing is going to happen any more. */
const REST_MS = 1_000;
const RESTS_MAX = 12;
const ROUNDS_MAX = 5_000;

/** A message that is on its way. */
export interface Letter {
  readonly to: Actor;
  readonly message: ToGateway | ToPrefill | ToDecode;
}

/** A page write that was posted, and has not landed. */
export interface Posted {
  readonly life: number;
  readonly slot: number;
  readonly attempt: number;
  readonly place: number;
  readonly page: number;
}

/** Sees each event of a machine with the record behind it, before its effects are carried out. */
export type Watcher = (actor: Actor, view: View, event: Int32Array) => void;

export class Driver {
  readonly engine: InlineEngine;
  readonly clock: ManualClock = new ManualClock();
  /** In the order in which they were sent. */
  readonly letters: Letter[] = [];
  readonly posted: Posted[] = [];
  readonly #watch: Watcher;
  /** Events that a machine took and that nobody has asked for. */
  readonly #unasked = new Map<string, number>();
  #life = 1;
  /** Prefill's life that each has been told of. */
  readonly #told = { gateway: 1, decode: 1 };
  #free: PostedWrite | 'all' | null = null;

  constructor(config: EngineConfig, watch: Watcher) {
    this.#watch = watch;
    const post = (to: Actor) => (message: ToGateway | ToPrefill | ToDecode) => void this.letters.push({ to, message });
    const ports = { toGateway: post('gateway'), toPrefill: post('prefill'), toDecode: post('decode') };
    this.engine = new InlineEngine(config, this.clock, undefined, ports);
    this.#tap('gateway', this.engine.coordinator.machine);
    this.#tap('decode', this.engine.decode.machine);
    this.#beginLife();
  }

  #beginLife(): void {
    this.#tap('prefill', this.engine.prefill.machine);
    this.engine.prefill.wire.hold((write) => !this.#mayLand(write));
  }

  #mayLand({ slot, attempt, targetPage }: PostedWrite): boolean {
    const free = this.#free;
    if (free === 'all' || free === null) return free === 'all';
    return free.slot === slot && free.attempt === attempt && free.targetPage === targetPage;
  }

  #tap(actor: Actor, machine: InlineEngine['decode']['machine']): void {
    const life = this.#life;
    machine.tap = (event, out) => {
      const key = keyOf(actor, eventName(event[E.kind] ?? 0) as EventKindName, event[E.slot] ?? 0);
      this.#unasked.set(key, (this.#unasked.get(key) ?? 0) + 1);
      if (actor === 'prefill') this.#notePosts(life, machine.view, out);
      this.#watch(actor, machine.view, event);
    };
  }

  #notePosts(life: number, view: View, out: Out): void {
    for (let i = 0; i < out.length; i++) {
      const body = out.cells.subarray(i * EFFECT_WIDTH + 1, (i + 1) * EFFECT_WIDTH);
      if (out.cells[i * EFFECT_WIDTH] !== EffectKind.post) continue;
      const [slot, attempt, first] = [body[E.slot] ?? 0, body[E.attempt] ?? 0, body[E.promptPages] ?? 0];
      for (let place = first; place < first + (body[E.pages] ?? 0); place++) {
        this.posted.push({ life, slot, attempt, place, page: view.cells[listAt(view, slot, TARGET) + place] ?? 0 });
      }
    }
  }

  submit(request: EngineRequest, sink: EngineSink): EngineRun {
    return this.engine.coordinator.submit(request, sink);
  }

  /** Gives a letter to whom it is for. `keeps`: a copy stays on its way. */
  deliver(letter: Letter, keeps = false): void {
    if (!keeps) this.drop(letter);
    if (letter.to === 'gateway') this.engine.coordinator.receive(letter.message as ToGateway);
    else if (letter.to === 'prefill') this.engine.prefill.receive(letter.message as ToPrefill);
    else this.engine.decode.receive(letter.message as ToDecode);
  }

  drop(letter: Letter): void {
    const at = this.letters.indexOf(letter);
    if (at >= 0) this.letters.splice(at, 1);
  }

  /** What is no protocol (tokens, findings) goes at once: the order of events says nothing of it. */
  deliverAsides(): void {
    for (const letter of this.letters.filter(({ message }) => message.kind !== 'protocol')) this.deliver(letter);
  }

  /** Lands writes that wait, one after the other. False: some were refused, since their registration is revoked. */
  land(writes: readonly Posted[]): boolean {
    const before = this.#refused();
    for (const write of writes) {
      this.posted.splice(this.posted.indexOf(write), 1);
      this.#free = { room: 0n, slot: write.slot, attempt: write.attempt, sourcePage: 0, targetPage: write.page };
      const waiting = this.#waiting();
      this.#poll(write.life);
      // A fault may have the write come late.
      if (this.#waiting() === waiting) this.clock.advance(LATE_MS);
      if (this.#waiting() === waiting) this.#poll(write.life);
      this.#free = null;
    }
    return this.#refused() === before;
  }

  #wires(): InlineEngine['prefill']['wire'][] {
    return [...this.engine.deadWires, this.engine.prefill.wire];
  }

  #waiting(): number {
    return this.#wires().reduce((sum, { waiting }) => sum + waiting, 0);
  }

  #refused(): number {
    return this.#wires().reduce((sum, { refused }) => sum + refused, 0);
  }

  #poll(life: number): void {
    if (life === this.#life) this.engine.prefill.turn();
    else this.engine.deadWires[life - 1]?.poll(this.clock.nowMs());
  }

  restartPrefill(): void {
    this.#life = this.engine.replacePrefill();
    this.#beginLife();
  }

  /** The supervisor's word of prefill's newest life. */
  tellOfPrefill(who: 'gateway' | 'decode'): void {
    this.#told[who] = this.#life;
    if (who === 'gateway') this.engine.coordinator.peerDown('prefill', this.#life);
    else this.engine.decode.receive({ kind: 'prefill-down', incarnation: this.#life });
  }

  /** In the end everybody hears of a restart. */
  tellOfLives(): void {
    for (const who of ['decode', 'gateway'] as const) if (this.#told[who] < this.#life) this.tellOfPrefill(who);
  }

  /**
   * The next event of this kind for the slot: one that the machine took already (`early`), or one that `move` brings about. `never`: it
   * did not come.
   */
  expect(actor: Actor, event: EventKindName, slot: number, move: () => void): 'now' | 'early' | 'never' {
    const key = keyOf(actor, event, slot);
    if (this.#ask(key)) return 'early';
    for (let turns = 0; turns < TURNS_MAX; turns++) {
      move();
      this.deliverAsides();
      if (this.#ask(key)) return 'now';
    }
    return 'never';
  }

  /** What happened until now is not asked for any more. */
  forget(): void {
    this.#unasked.clear();
  }

  #ask(key: string): boolean {
    const count = this.#unasked.get(key) ?? 0;
    if (count > 0) this.#unasked.set(key, count - 1);
    return count > 0;
  }

  /** From here on everything goes as it comes, until `done` or until nothing is left that could happen. */
  settle(done: () => boolean): void {
    this.#free = 'all';
    for (let rounds = 0, rests = 0; rounds < ROUNDS_MAX && rests < RESTS_MAX && !done(); rounds++) {
      if (this.#round()) continue;
      rests++;
      this.clock.advance(REST_MS);
      this.engine.prefill.tick();
      this.engine.decode.tick();
    }
    this.#free = null;
  }

  #round(): boolean {
    const letters = [...this.letters];
    for (const letter of letters) this.deliver(letter);
    const waiting = this.#waiting();
    this.#wires().forEach((wire) => void wire.poll(this.clock.nowMs()));
    const isBusy = [this.engine.prefill.turn(), this.engine.decode.turn()].some(({ busy }) => busy);
    this.posted.length = 0;
    return isBusy || letters.length > 0 || this.#waiting() !== waiting;
  }
}

const keyOf = (actor: Actor, event: EventKindName, slot: number): string => `${actor} ${event} ${slot}`;
