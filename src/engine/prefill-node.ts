/**
 * Prefill: computes prompts chunk by chunk into its own pool and writes each page straight into decode's. What may be computed,
 * posted, completed or given up is decided by `handoff/prefill.ts`; this file does the work that it asks for.
 */
import { assert } from '../base/assert.js';
import { Prng } from '../base/prng.js';
import type { SharedMemory } from '../base/shared-memory.js';
import { GUARDS } from '../handoff/guards.js';
import { getSlot, listAt, PS, slotAt } from '../handoff/layout.js';
import { E, EffectKind, EventKind } from '../handoff/messages.js';
import { EPOCH, PrefillPhase, SOURCE, TARGET } from '../handoff/prefill.js';
import { Checksummer } from '../kv/checksum.js';
import { PagePool } from '../kv/pool.js';
import { RegistrationTable } from '../kv/registration.js';
import { newPageTag, OWNER_LEASE } from '../kv/tag.js';
import { Wire, type WritePost } from '../kv/wire.js';
import type { Model } from '../model/model.js';
import { sample } from '../model/sampler.js';
import { type EngineConfig, hasFault, pagesFor, pagesPerSlot } from './config.js';
import { Machine, messageOf } from './machine.js';
import type { StatsBlock } from './stats.js';
import type { DecodeTarget, NodePorts, Payload, Sampling, ToPrefill, Turn } from './traffic.js';

/** What a rejected request is swapped for by the fault `rejected-stays-alive`: one token that means nothing. */
export const PLACEHOLDER_TOKEN = 0;
/** How late and how mixed up writes land where a fault needs them late. */
const LATE_WRITES_MS = { min: 30, max: 90 } as const;

interface Job {
  readonly attempt: number;
  readonly prompt: Int32Array;
  readonly sampling: Sampling;
  registration: number;
  firstToken: number;
  /** Low and high of each posted page: shape (places, 2). */
  readonly checksums: Uint32Array;
}

export interface PrefillNodeOptions {
  readonly config: EngineConfig;
  readonly incarnation: number;
  readonly memory: SharedMemory;
  readonly pool: PagePool;
  readonly model: Model;
  readonly target: DecodeTarget;
  readonly ports: NodePorts;
  readonly stats: StatsBlock;
  readonly nowMs: () => number;
}

export class PrefillNode {
  readonly machine: Machine;
  #wire: Wire;
  readonly #o: PrefillNodeOptions;
  readonly #jobs: (Job | undefined)[];
  /** By slot, of the newest lease: it may come before the start does. */
  readonly #registrations = new Map<number, number>();
  readonly #checksummer: Checksummer;
  readonly #sum = new Uint32Array(2);
  /** Slots that wait for a lease or for pages, first come first served; and those that compute, in turn. */
  #waiting: number[] = [];
  #computing: number[] = [];
  /** Writes that found the wire full. Bounded by the pool's pages: each needs a source page of its own. */
  #unposted: WritePost[] = [];
  #settled: { slot: number; attempt: number }[] = [];
  #isDirty = true;
  #steps = 0;

  constructor(options: PrefillNodeOptions) {
    this.#o = options;
    const { config, incarnation, target } = options;
    this.#jobs = Array.from({ length: config.runningMax }, () => undefined);
    this.#checksummer = new Checksummer(options.memory);
    this.machine = new Machine(
      'prefill',
      { slots: config.runningMax, pages: options.pool.pages, pagesPerSlot: pagesPerSlot(config), prefixes: true },
      config.rules,
      incarnation,
      target.incarnation,
      (effect, body) => this.#carryOut(effect, body),
    );
    this.#wire = this.#connect(target);
    // Before the first request too, a pool that nobody uses is free, not empty.
    options.stats.setPages(this.machine.view);
  }

  /** For faults and scripts: writes can be held back and torn here. */
  get wire(): Wire {
    return this.#wire;
  }

  #connect(target: DecodeTarget): Wire {
    const { config, pool } = this.#o;
    const isLate = hasFault(config.rules, 'reuse-before-drain') || hasFault(config.rules, 'unfenced-restart');
    const { min, max } = LATE_WRITES_MS;
    return new Wire({
      source: pool,
      target: PagePool.attach({
        buffer: target.buffer,
        base: target.base,
        pages: target.pages,
        geometry: pool.geometry,
        node: 'decode',
      }),
      registrations: new RegistrationTable(target.registrations),
      handle: 0,
      delay: isLate ? { seed: config.seed, minMs: min, maxMs: max } : null,
      reorder: isLate ? { seed: config.seed + 1 } : null,
      onSettled: (slot, attempt) => this.#settled.push({ slot, attempt }),
    });
  }

  receive(message: ToPrefill): void {
    if (message.kind === 'decode-down') {
      // Writes for the old pool can only be refused: its table is gone. Let them settle, then use the new one.
      this.#unposted = [];
      const event = this.machine.event(EventKind.decodeDown, 0, 0);
      event[E.from] = message.incarnation;
      this.#wire.release();
      this.#settleWrites(Number.POSITIVE_INFINITY);
      this.machine.step(event);
      this.#wire = this.#connect(message.target);
      return;
    }
    const { event, payload } = message;
    this.machine.step(event);
    const slot = event[E.slot] ?? 0;
    const attempt = event[E.attempt] ?? 0;
    if (payload?.kind === 'prompt') this.#keepPrompt(slot, attempt, payload);
    if (payload?.kind === 'registration') this.#keepRegistration(slot, attempt, payload.handle);
    this.#isDirty = true;
  }

  #keepPrompt(slot: number, attempt: number, payload: Payload & { kind: 'prompt' }): void {
    if (this.#attempt(slot) !== attempt || this.#phase(slot) === PrefillPhase.idle) return;
    if (!this.#waiting.includes(slot) && this.#phase(slot) === PrefillPhase.waiting) this.#waiting.push(slot);
    // A start that is repeated must not replace a job that is under way.
    if (this.#jobs[slot]?.attempt === attempt && this.#phase(slot) !== PrefillPhase.waiting) return;
    this.#jobs[slot] = {
      attempt,
      prompt: payload.prompt,
      sampling: payload.sampling,
      registration: this.#registrations.get(slot) ?? 0,
      firstToken: 0,
      checksums: new Uint32Array(2 * pagesFor(payload.prompt.length, this.#o.config.pageTokens)),
    };
  }

  #keepRegistration(slot: number, attempt: number, handle: number): void {
    if (this.#attempt(slot) !== attempt) return;
    this.#registrations.set(slot, handle);
    const job = this.#jobs[slot];
    if (job !== undefined && job.attempt === attempt) job.registration = handle;
  }

  #phase(slot: number): number {
    return this.machine.view.cells[slotAt(this.machine.view, slot) + PS.phase] ?? 0;
  }

  #attempt(slot: number): number {
    return this.machine.view.cells[slotAt(this.machine.view, slot) + PS.attempt] ?? 0;
  }

  /** Lands what is due, lets the next prompt in, computes one chunk. */
  turn(): Turn {
    const nowMs = this.#o.nowMs();
    this.#postAgain(nowMs);
    this.#settleWrites(nowMs);
    this.#admit();
    const slot = this.#nextComputing();
    if (slot !== undefined) this.#compute(slot);
    this.#settleWrites(this.#o.nowMs());
    if (this.#isDirty) {
      this.#o.stats.setPages(this.machine.view);
      this.#isDirty = false;
    }
    const busy = this.#computing.length > 0 || this.#unposted.length > 0;
    if (!busy && this.#wire.waiting === 0 && this.#waiting.length === 0) this.machine.assertHolds();
    return { busy, wakeAtMs: this.#wire.nextDueMs() };
  }

  /** Asks again where a message may have been lost. */
  tick(): void {
    for (let slot = 0; slot < this.machine.view.shape.slots; slot++) {
      if (this.#phase(slot) !== PrefillPhase.idle) this.machine.raise(EventKind.timer, slot, this.#attempt(slot));
    }
  }

  #admit(): void {
    const still: number[] = [];
    let isBlocked = false;
    for (const slot of this.#waiting) {
      if (this.#phase(slot) === PrefillPhase.waiting && !isBlocked) {
        this.machine.raise(EventKind.admit, slot, this.#attempt(slot));
      }
      if (this.#phase(slot) === PrefillPhase.computing) this.#computing.push(slot);
      else if (this.#phase(slot) === PrefillPhase.waiting) {
        still.push(slot);
        // A prompt with a lease that waits for pages is not overtaken; one without a lease blocks nobody.
        if (getSlot(this.machine.view, slot, 'peer') !== 0) isBlocked = true;
      }
      if (this.#phase(slot) === PrefillPhase.computing) this.#isDirty = true;
    }
    this.#waiting = still;
  }

  #nextComputing(): number | undefined {
    while (this.#computing.length > 0) {
      const slot = this.#computing.shift() as number;
      if (this.#phase(slot) === PrefillPhase.computing && this.#jobs[slot]?.attempt === this.#attempt(slot))
        return slot;
    }
    return undefined;
  }

  /** One chunk of one prompt, into the slot's own pages. */
  #compute(slot: number): void {
    const { view } = this.machine;
    const { config, model } = this.#o;
    const job = this.#jobs[slot];
    assert(job !== undefined, 'a slot that computes has a prompt');
    const tokens = getSlot(view, slot, 'tokens');
    const posted = getSlot(view, slot, 'posted');
    const prompt = tokens === job.prompt.length ? job.prompt : Int32Array.of(PLACEHOLDER_TOKEN);
    const start = posted * config.pageTokens;
    const end = Math.min(tokens, start + config.chunkTokens);
    const list = listAt(view, slot, SOURCE);
    const pages = view.cells.subarray(list, list + getSlot(view, slot, 'held')) as Int32Array;
    const logits = model.prefill(prompt.subarray(start, end), start, pages, true);
    assert(logits !== null, 'a chunk gives logits');
    job.firstToken = sample(logits, job.sampling.temperature, new Prng(job.sampling.seed));
    this.#steps++;
    this.#o.stats.add('tokensPrefilled', end - start);
    const event = this.machine.event(EventKind.chunk, slot, job.attempt);
    event[E.pages] = pagesFor(end - start, config.pageTokens);
    event[E.tokens] = end;
    this.machine.step(event);
    if (this.#phase(slot) !== PrefillPhase.computing) return;
    // The fault's trigger: a prefill that fails after its first chunk.
    if (hasFault(config.rules, 'silent-abort')) this.machine.raise(EventKind.abandon, slot, job.attempt);
    if (this.#phase(slot) === PrefillPhase.computing) this.#computing.push(slot);
  }

  #settleWrites(nowMs: number): void {
    this.#wire.poll(nowMs);
    const settled = this.#settled;
    if (settled.length === 0) return;
    this.#settled = [];
    for (const { slot, attempt } of settled) {
      const event = this.machine.event(EventKind.settled, slot, attempt);
      event[E.pages] = 1;
      this.machine.step(event);
    }
    this.#isDirty = true;
  }

  #postAgain(nowMs: number): void {
    while (this.#unposted.length > 0) {
      const write = this.#unposted[0] as WritePost;
      if (!this.#wire.post(write, nowMs)) return;
      this.#unposted.shift();
    }
  }

  #carryOut(effect: number, body: Int32Array): void {
    const slot = body[E.slot] ?? 0;
    switch (effect) {
      case EffectKind.sendGateway:
        return this.#o.ports.toGateway({ kind: 'protocol', event: messageOf(body), payload: null });
      case EffectKind.sendDecode:
        return this.#o.ports.toDecode({ kind: 'protocol', event: messageOf(body), payload: this.#payloadFor(body) });
      case EffectKind.post:
        return this.#post(slot, body[E.promptPages] ?? 0, body[E.pages] ?? 0);
      case EffectKind.guardHit:
        this.#o.stats.addGuardHit(body[E.code] ?? 0);
        return this.#o.ports.toGateway({
          kind: 'guard-hit',
          guard: GUARDS[body[E.code] ?? 0] ?? 'rejection',
          slot,
          words: `prefill stopped slot ${slot}: its prompt of ${getSlot(this.machine.view, slot, 'tokens')} tokens does not fit the pool of ${this.#o.config.prefillPool}`,
        });
      case EffectKind.pagesFreed:
        this.#isDirty = true;
        return;
    }
  }

  #payloadFor(body: Int32Array): Payload | null {
    if (body[E.kind] !== EventKind.complete) return null;
    const slot = body[E.slot] ?? 0;
    const job = this.#jobs[slot];
    if (job === undefined) return null;
    this.#checksummer.combine(job.checksums, getSlot(this.machine.view, slot, 'posted'), this.#sum);
    return { kind: 'completion', firstToken: job.firstToken, low: this.#sum[0] ?? 0, high: this.#sum[1] ?? 0 };
  }

  /** Tags the pages of places [first, first + count) and puts them on the wire. */
  #post(slot: number, first: number, count: number): void {
    const { view } = this.machine;
    const { config, pool, incarnation } = this.#o;
    const job = this.#jobs[slot];
    assert(job !== undefined, 'a slot that posts has a prompt');
    this.#wire.useRegistration(job.registration);
    const tokens = getSlot(view, slot, 'tokens');
    for (let place = first; place < first + count; place++) {
      const sourcePage = view.cells[listAt(view, slot, SOURCE) + place] ?? 0;
      const filled = Math.min(config.pageTokens, tokens - place * config.pageTokens);
      // What lies behind the last token is somebody's old keys and values: it must not travel.
      pool.zeroTail(sourcePage, filled);
      this.#checksummer.page(pool, sourcePage, this.#sum);
      job.checksums[2 * place] = this.#sum[0] ?? 0;
      job.checksums[2 * place + 1] = this.#sum[1] ?? 0;
      const tag = newPageTag();
      tag.ownerKind = OWNER_LEASE;
      tag.owner = slot;
      tag.attempt = job.attempt;
      tag.incarnation = getSlot(view, slot, 'peer');
      tag.epoch = view.cells[listAt(view, slot, EPOCH) + place] ?? 0;
      tag.place = place;
      tag.filled = filled;
      tag.checksumLow = this.#sum[0] ?? 0;
      tag.checksumHigh = this.#sum[1] ?? 0;
      tag.writer = incarnation;
      tag.writtenAtStep = this.#steps;
      const targetPage = view.cells[listAt(view, slot, TARGET) + place] ?? 0;
      const write: WritePost = { room: 0n, slot, attempt: job.attempt, sourcePage, targetPage, tag };
      if (this.#unposted.length > 0 || !this.#wire.post(write, this.#o.nowMs())) this.#unposted.push(write);
    }
  }
}
