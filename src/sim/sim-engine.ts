/**
 * The engine of the simulator: the coordinator, the two nodes, their machines, ledgers, pools, tags, wire and fence as they are, in
 * one thread, over the post of the simulator and the forward pass that reads back whose content it sees.
 */
import type { Clock } from '../base/clock.js';
import type { Prng } from '../base/prng.js';
import { newSharedMemory, type SharedMemory } from '../base/shared-memory.js';
import { Coordinator } from '../engine/coordinator.js';
import { DecodeNode } from '../engine/decode-node.js';
import { REGISTRATION_ENTRIES } from '../engine/parts.js';
import { PrefillNode } from '../engine/prefill-node.js';
import { StatsBlock } from '../engine/stats.js';
import type { DecodeTarget, NodePorts, ToDecode, ToGateway, ToPrefill, Turn } from '../engine/traffic.js';
import { ALL_GUARDS } from '../handoff/guards.js';
import { brokenInvariant, everyPageIsAccountedFor } from '../handoff/invariants.js';
import { pageGeometry } from '../kv/geometry.js';
import { PagePool } from '../kv/pool.js';
import { RegistrationTable } from '../kv/registration.js';
import type { PostedWrite } from '../kv/wire.js';
import { type Break, ContentModel, ROW_WORDS } from './content.js';
import type { Plan } from './plan.js';
import { CHANNEL, type Post } from './post.js';
import { SIM, type SimTrace } from './sim-trace.js';
import { Violation } from './violation.js';

/** Bytes below the pool that nobody uses. */
const POOL_BASE = 1024;
const PREFILL = 0;
const DECODE = 1;

type Wire = PrefillNode['wire'];

export class SimEngine {
  readonly coordinator: Coordinator;
  prefill: PrefillNode;
  decode: DecodeNode;
  /** Whether a node has something to do: a message came, or its last turn left work. */
  isPrefillDue = true;
  isDecodeDue = true;
  restarts = 0;
  landed = 0;
  refused = 0;
  readonly #plan: Plan;
  readonly #clock: Clock;
  readonly #chance: Prng;
  readonly #post: Post;
  readonly #trace: SimTrace;
  readonly #stats = new StatsBlock();
  readonly #incarnations = { prefill: 1, decode: 1 };
  /** The life of the other node that each node sends to: a message to an earlier one reaches nobody. */
  readonly #known = { prefill: 1, decode: 1 };
  /** Wires of prefills that died, with the memory that they read from. */
  #deadWires: { readonly wire: Wire; readonly memory: SharedMemory }[] = [];
  readonly #spares: { prefill: SharedMemory[]; decode: SharedMemory[] } = { prefill: [], decode: [] };
  #prefillMemory: SharedMemory;
  #decodeMemory: SharedMemory;
  #target: DecodeTarget;
  #registrations: RegistrationTable;
  #gatedWire: Wire | null = null;
  readonly #isLoose: boolean;
  #models: { prefill: ContentModel | null; decode: ContentModel | null } = { prefill: null, decode: null };

  constructor(plan: Plan, clock: Clock, chance: Prng, post: Post, trace: SimTrace) {
    this.#plan = plan;
    const { faults, guards } = plan.config.rules;
    this.#isLoose = faults !== 0 && guards !== ALL_GUARDS;
    this.#clock = clock;
    this.#chance = chance;
    this.#post = post;
    this.#trace = trace;
    this.#prefillMemory = this.#memory('prefill');
    this.#decodeMemory = this.#memory('decode');
    this.#registrations = new RegistrationTable(REGISTRATION_ENTRIES);
    this.#target = this.#newTarget();
    this.decode = this.#newDecode();
    this.prefill = this.#newPrefill();
    const ports = this.#ports(-1, CHANNEL['gateway-prefill'], CHANNEL['gateway-decode']);
    this.coordinator = new Coordinator({ config: plan.config, ports, stats: this.#stats, clock });
    this.#gate();
  }

  #pages(node: 'prefill' | 'decode'): number {
    const { prefillPool, decodePool, pageTokens } = this.#plan.config;
    return (node === 'prefill' ? prefillPool : decodePool) / pageTokens;
  }

  /** Zeroed: a node that comes back has a pool in which nothing was written. */
  #memory(node: 'prefill' | 'decode'): SharedMemory {
    const geometry = pageGeometry(this.#plan.config.pageTokens, 1, ROW_WORDS);
    const spare = this.#spares[node].pop();
    if (spare === undefined) return newSharedMemory(POOL_BASE + this.#pages(node) * geometry.pageBytes);
    new Uint8Array(spare.buffer).fill(0);
    return spare;
  }

  #pool(node: 'prefill' | 'decode', memory: SharedMemory): PagePool {
    const geometry = pageGeometry(this.#plan.config.pageTokens, 1, ROW_WORDS);
    return new PagePool({ memory, base: POOL_BASE, pages: this.#pages(node), geometry, node });
  }

  #newTarget(): DecodeTarget {
    return {
      incarnation: this.#incarnations.decode,
      buffer: this.#decodeMemory.buffer,
      base: POOL_BASE,
      pages: this.#pages('decode'),
      registrations: this.#registrations.buffer,
    };
  }

  #ports(toGateway: number, toPrefill: number, toDecode: number): NodePorts {
    const { prefill, decode } = this.#incarnations;
    // A node that was replaced may still be in the middle of a call; what it sends then, it never sent.
    const lives = (): boolean =>
      (toGateway !== CHANNEL['prefill-gateway'] || prefill === this.#incarnations.prefill) &&
      (toGateway !== CHANNEL['decode-gateway'] || decode === this.#incarnations.decode);
    return {
      toGateway: (message: ToGateway) => {
        if (lives()) this.#post.send(toGateway, message);
      },
      toPrefill: (message: ToPrefill) => {
        const reaches = toGateway < 0 || this.#known.prefill === this.#incarnations.prefill;
        if (reaches && lives()) this.#post.send(toPrefill, message);
      },
      toDecode: (message: ToDecode) => {
        const reaches = toGateway < 0 || this.#known.decode === this.#incarnations.decode;
        if (reaches && lives()) this.#post.send(toDecode, message);
      },
    };
  }

  #newPrefill(): PrefillNode {
    const { config } = this.#plan;
    const pool = this.#pool('prefill', this.#prefillMemory);
    const model = new ContentModel(pool, 1, () => {});
    this.#models.prefill = model;
    return new PrefillNode({
      config,
      incarnation: this.#incarnations.prefill,
      memory: this.#prefillMemory,
      pool,
      model,
      target: this.#target,
      ports: this.#ports(CHANNEL['prefill-gateway'], -1, CHANNEL['prefill-decode']),
      stats: this.#stats,
      nowMs: () => this.#clock.nowMs(),
    });
  }

  #newDecode(): DecodeNode {
    const { config } = this.#plan;
    const pool = this.#pool('decode', this.#decodeMemory);
    const model = new ContentModel(pool, config.runningMax, () => this.#landAmidst());
    this.#models.decode = model;
    return new DecodeNode({
      config,
      incarnation: this.#incarnations.decode,
      prefillIncarnation: this.#incarnations.prefill,
      memory: this.#decodeMemory,
      pool,
      model,
      registrations: this.#registrations,
      ports: this.#ports(CHANNEL['decode-gateway'], CHANNEL['decode-prefill'], -1),
      stats: this.#stats,
      nowMs: () => this.#clock.nowMs(),
    });
  }

  /** Writes that could land do so by chance, each by itself: late, and past each other. */
  #gate(): void {
    const { wire } = this.prefill;
    if (wire === this.#gatedWire) return;
    this.#gatedWire = wire;
    const { landing, straggling } = this.#plan;
    if (landing < 65_536 || straggling > 1) {
      wire.hold(
        (write) =>
          !this.#post.isCalm && this.#chance.u32() >>> 16 >= (isStraggler(write) ? landing / straggling : landing),
      );
    }
    if (this.#plan.tears > 0) wire.tearWrites(() => this.#chance.u32() >>> 16 < this.#plan.tears);
  }

  receivePrefill(message: ToPrefill): void {
    if (message.kind === 'decode-down') this.#known.decode = message.incarnation;
    this.prefill.receive(message);
    this.#gate();
    this.isPrefillDue = true;
  }

  receiveDecode(message: ToDecode): void {
    if (message.kind === 'prefill-down') this.#known.prefill = message.incarnation;
    this.decode.receive(message);
    this.isDecodeDue = true;
  }

  prefillTurn(): void {
    const { wire } = this.prefill;
    const { landed, refused } = wire;
    const turn = this.prefill.turn();
    const mayLand = !this.#post.isCalm && this.prefill.wire.waiting > 0;
    this.isPrefillDue = mayLand || isDue(turn, this.#clock);
    this.#noteTurn(PREFILL, wire.landed - landed, wire.refused - refused);
  }

  decodeTurn(): void {
    this.isDecodeDue = isDue(this.decode.turn(), this.#clock);
    this.#noteTurn(DECODE, 0, 0);
  }

  #noteTurn(node: number, landed: number, refused: number): void {
    this.landed += landed;
    this.refused += refused;
    this.#trace.record(SIM.turn, node, landed, refused);
  }

  tick(node: number): void {
    this.#trace.record(SIM.tick, node);
    if (node === PREFILL) {
      this.prefill.tick();
      this.isPrefillDue = true;
    } else {
      this.decode.tick();
      this.isDecodeDue = true;
    }
  }

  /** What a dead prefill had posted may land for as long as nobody has fenced it. */
  landDead(): void {
    if (this.#deadWires.length === 0) return;
    for (const { wire } of this.#deadWires) {
      const { landed, refused } = wire;
      wire.poll(this.#clock.nowMs());
      this.landed += wire.landed - landed;
      this.refused += wire.refused - refused;
    }
    const isOver = ({ wire }: { readonly wire: Wire }): boolean => wire.waiting === 0;
    for (const { memory } of this.#deadWires.filter(isOver)) this.#spares.prefill.push(memory);
    this.#deadWires = this.#deadWires.filter((dead) => !isOver(dead));
  }

  #landAmidst(): void {
    if (this.#post.isCalm || (this.#chance.u32() & 3) !== 0) return;
    this.landDead();
    const { wire } = this.prefill;
    const { landed } = wire;
    if (wire.poll(this.#clock.nowMs()) > 0) this.isPrefillDue = true;
    this.landed += wire.landed - landed;
  }

  restartPrefill(): void {
    const incarnation = ++this.#incarnations.prefill;
    this.restarts++;
    this.#trace.record(SIM.restart, PREFILL, incarnation);
    this.#deadWires.push({ wire: this.prefill.wire, memory: this.#prefillMemory });
    this.#prefillMemory = this.#memory('prefill');
    this.#post.cut('prefill');
    // The new life is given decode's present pool, so that it knows of no earlier one.
    this.#known.decode = this.#incarnations.decode;
    this.prefill = this.#newPrefill();
    this.#gate();
    this.isPrefillDue = true;
    this.#post.send(CHANNEL['supervisor-decode'], { kind: 'prefill-down', incarnation });
    this.#post.send(CHANNEL['supervisor-gateway'], { kind: 'down', node: 'prefill', incarnation });
  }

  restartDecode(): void {
    const incarnation = ++this.#incarnations.decode;
    this.restarts++;
    this.#trace.record(SIM.restart, DECODE, incarnation);
    this.#registrations.revokeAll();
    this.#spares.decode.push(this.#decodeMemory);
    // The old pool is kept apart until the next restart: whatever still lands there lands in nobody's pages.
    this.#decodeMemory = this.#spares.decode.length > 1 ? this.#reused() : this.#memoryBeside();
    this.#registrations = new RegistrationTable(REGISTRATION_ENTRIES);
    this.#target = this.#newTarget();
    this.#post.cut('decode');
    this.#known.prefill = this.#incarnations.prefill;
    this.decode = this.#newDecode();
    this.isDecodeDue = true;
    this.#post.send(CHANNEL['supervisor-prefill'], { kind: 'decode-down', incarnation, target: this.#target });
    this.#post.send(CHANNEL['supervisor-gateway'], { kind: 'down', node: 'decode', incarnation });
  }

  #reused(): SharedMemory {
    const memory = this.#spares.decode.shift() as SharedMemory;
    new Uint8Array(memory.buffer).fill(0);
    return memory;
  }

  #memoryBeside(): SharedMemory {
    const kept = this.#spares.decode.splice(0);
    const memory = this.#memory('decode');
    this.#spares.decode.push(...kept);
    return memory;
  }

  /** Writes that may still land, of the living and of the dead. */
  get writes(): number {
    return this.#deadWires.reduce((sum, { wire }) => sum + wire.waiting, this.prefill.wire.waiting);
  }

  /** The latest read that broke and was answered with `token`; null: none did. */
  breakBehind(token: number): Break | null {
    const { prefill, decode } = this.#models;
    const isBehind = ({ answer }: Break): boolean => answer === token;
    return decode?.breaks.findLast(isBehind) ?? prefill?.breaks.findLast(isBehind) ?? null;
  }

  guardHits(): Readonly<Record<string, number>> {
    return this.#stats.guardHits();
  }

  /** Throws where the record of one of the three does not hold: 0 the gateway's, 1 prefill's, 2 decode's. */
  check(which: number): void {
    const machine = which === 0 ? this.coordinator.machine : which === 1 ? this.prefill.machine : this.decode.machine;
    const { view } = machine;
    // With a fault let loose the records are wrong on purpose; what counts then is the harm, and that no page is lost.
    if (this.#isLoose) {
      const lost = view.shape.pages === 0 ? null : everyPageIsAccountedFor(view);
      if (lost !== null) throw new Violation('recordsHold', `everyPageIsAccountedFor: ${view.shape.actor}: ${lost}`);
      return;
    }
    const broken = brokenInvariant(view);
    if (broken !== null) throw new Violation('recordsHold', `${broken.invariant}: ${broken.words}`);
  }
}

function isDue({ busy, wakeAtMs }: Turn, clock: Clock): boolean {
  return busy || (wakeAtMs !== null && wakeAtMs <= clock.nowMs());
}

/** One write in eight, always the same one. */
function isStraggler({ slot, attempt, targetPage }: PostedWrite): boolean {
  return ((slot * 5 + attempt * 3 + targetPage) & 7) === 0;
}
