/**
 * The whole engine in one thread, one turn at a time, in an order that the caller decides: the same nodes, machines and pages as
 * between threads. For replays and tests, where an order of events must be able to be told and repeated.
 */
import { assert } from '../base/assert.js';
import type { Clock } from '../base/clock.js';
import type { SharedMemory } from '../base/shared-memory.js';
import { PagePool } from '../kv/pool.js';
import { RegistrationTable } from '../kv/registration.js';
import type { EngineFinding } from '../handoff/engine-port.js';
import type { TraceWriter } from '../handoff/trace.js';
import type { EngineConfig } from './config.js';
import { Coordinator } from './coordinator.js';
import { DecodeNode } from './decode-node.js';
import { memoryFor, modelIn, poolIn, REGISTRATION_ENTRIES } from './parts.js';
import { PrefillNode } from './prefill-node.js';
import { StatsBlock } from './stats.js';
import type { DecodeTarget, NodePorts, ToDecode, ToGateway, ToPrefill } from './traffic.js';

interface Letter<T> {
  readonly message: T;
}

/** Turns after which `runUntil` gives up: many times what any request here takes. */
const TURNS_MAX = 1_000_000;

export class InlineEngine {
  readonly coordinator: Coordinator;
  readonly stats: StatsBlock = new StatsBlock();
  /** Decode's pages, as anybody who can reach its memory sees them: for scripts that look at tags. */
  readonly decodePool: PagePool;
  readonly config: EngineConfig;
  prefill: PrefillNode;
  decode: DecodeNode;
  readonly #clock: Clock;
  readonly #toGateway: Letter<ToGateway>[] = [];
  readonly #toPrefill: Letter<ToPrefill>[] = [];
  readonly #toDecode: Letter<ToDecode>[] = [];
  #prefillMemory: SharedMemory;
  readonly #ports: NodePorts;
  readonly #target: DecodeTarget;
  #prefillIncarnation = 1;
  #trace: TraceWriter | null = null;
  /** Messages that a script keeps back, by predicate. */
  #holdsToDecode: ((message: ToDecode) => boolean) | null = null;
  #heldToDecode: Letter<ToDecode>[] = [];
  /** Wires of prefills that died: what they posted may still land. */
  readonly #deadWires: PrefillNode['wire'][] = [];

  /** `ports`: takes all messages, and whoever gave it delivers them, or does not; then only single nodes are to be turned. */
  constructor(config: EngineConfig, clock: Clock, onFinding?: (finding: EngineFinding) => void, ports?: NodePorts) {
    this.config = config;
    this.#clock = clock;
    this.#ports = ports ?? {
      toGateway: (message) => this.#toGateway.push({ message }),
      toPrefill: (message) => this.#toPrefill.push({ message }),
      toDecode: (message) => this.#sendDecode({ message }),
    };
    const decodeMemory = memoryFor(config, 'decode');
    const decodePool = poolIn(config, 'decode', decodeMemory);
    this.decodePool = PagePool.attach(decodePool.descriptor());
    const registrations = new RegistrationTable(REGISTRATION_ENTRIES);
    this.#prefillMemory = memoryFor(config, 'prefill');
    this.#target = {
      incarnation: 1,
      buffer: decodePool.buffer,
      base: decodePool.base,
      pages: decodePool.pages,
      registrations: registrations.buffer,
    };
    const nowMs = (): number => clock.nowMs();
    this.decode = new DecodeNode({
      config,
      incarnation: 1,
      prefillIncarnation: 1,
      memory: decodeMemory,
      pool: decodePool,
      model: modelIn(config, 'decode', decodeMemory),
      registrations,
      ports: this.#ports,
      stats: this.stats,
      nowMs,
    });
    this.prefill = this.#newPrefill();
    this.coordinator = new Coordinator({
      config,
      ports: this.#ports,
      stats: this.stats,
      clock,
      ...(onFinding === undefined ? {} : { onFinding }),
    });
  }

  /** Writes the events of the three machines from now on, and of prefill's later lives. To be called before the first request. */
  trace(writer: TraceWriter): void {
    this.#trace = writer;
    for (const { machine } of [this.coordinator, this.prefill, this.decode]) writer.attach(machine);
  }

  #newPrefill(): PrefillNode {
    const prefill = new PrefillNode({
      config: this.config,
      incarnation: this.#prefillIncarnation,
      memory: this.#prefillMemory,
      pool: poolIn(this.config, 'prefill', this.#prefillMemory),
      model: modelIn(this.config, 'prefill', this.#prefillMemory),
      target: this.#target,
      ports: this.#ports,
      stats: this.stats,
      nowMs: () => this.#clock.nowMs(),
    });
    this.#trace?.attach(prefill.machine);
    return prefill;
  }

  #sendDecode(letter: Letter<ToDecode>): void {
    if (this.#holdsToDecode?.(letter.message)) this.#heldToDecode.push(letter);
    else this.#toDecode.push(letter);
  }

  /** Keeps back messages to decode until `releaseToDecode`. */
  holdToDecode(predicate: (message: ToDecode) => boolean): void {
    this.#holdsToDecode = predicate;
  }

  releaseToDecode(): void {
    this.#holdsToDecode = null;
    this.#toDecode.push(...this.#heldToDecode);
    this.#heldToDecode = [];
  }

  /** Prefill dies and lives again. What it had posted stays on the wire; everybody learns of it, in the order given. */
  restartPrefill(first: 'gateway' | 'decode' = 'gateway'): void {
    this.replacePrefill();
    this.#toDecode.push({ message: { kind: 'prefill-down', incarnation: this.#prefillIncarnation } });
    if (first === 'decode') this.#deliver();
    this.coordinator.peerDown('prefill', this.#prefillIncarnation);
  }

  /** Prefill dies and lives again, and nobody is told. Answers its new incarnation. */
  replacePrefill(): number {
    this.#prefillIncarnation++;
    this.#deadWires.push(this.prefill.wire);
    // A write on the wire carries the bytes of the life that posted it, whatever the next life computes.
    this.#prefillMemory = memoryFor(this.config, 'prefill');
    this.prefill = this.#newPrefill();
    return this.#prefillIncarnation;
  }

  /** The wires of earlier incarnations, for scripts that hold their writes. */
  get deadWires(): readonly PrefillNode['wire'][] {
    return this.#deadWires;
  }

  /** Delivers what is under way and gives each node one turn. False: nothing is left to do now. */
  turn(): boolean {
    const delivered = this.#deliver();
    for (const wire of this.#deadWires) wire.poll(this.#clock.nowMs());
    const prefill = this.prefill.turn();
    const decode = this.decode.turn();
    return delivered || prefill.busy || decode.busy || this.#hasLetters();
  }

  #hasLetters(): boolean {
    return this.#toGateway.length + this.#toPrefill.length + this.#toDecode.length > 0;
  }

  #deliver(): boolean {
    let delivered = false;
    while (this.#hasLetters()) {
      delivered = true;
      for (const { message } of this.#toGateway.splice(0)) this.coordinator.receive(message);
      for (const { message } of this.#toPrefill.splice(0)) this.prefill.receive(message);
      for (const { message } of this.#toDecode.splice(0)) this.decode.receive(message);
    }
    return delivered;
  }

  /** Turns until `done`, or until nothing is left to do. True: `done` holds. */
  runUntil(done: () => boolean): boolean {
    for (let turns = 0; turns < TURNS_MAX; turns++) {
      if (done()) return true;
      if (!this.turn()) return done();
    }
    assert(false, 'an engine in one thread comes to rest');
  }
}
