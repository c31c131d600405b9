/**
 * Prefill: computes prompts chunk by chunk into its own pool and writes each page straight into decode's. What may be computed,
 * posted, completed or given up is decided by `handoff/prefill.ts`; this file does the work that it asks for.
 */
import { assert } from '../base/assert.js';
import { Prng } from '../base/prng.js';
import type { SharedMemory } from '../base/shared-memory.js';
import { Verdict } from '../handoff/decode.js';
import { getSlot, listAt, PG, PS, pageAt, slotAt } from '../handoff/layout.js';
import { E, EffectKind, EventKind } from '../handoff/messages.js';
import { PrefillPhase, SOURCE, TARGET } from '../handoff/prefill.js';
import { GUARD, guarded } from '../handoff/rules.js';
import type { PagePool } from '../kv/pool.js';
import { RegistrationTable } from '../kv/registration.js';
import { IDLE_SWEEP_PAGES, type Sweep } from '../kv/sweep.js';
import { writeTag } from '../kv/tag.js';
import type { Wire, WritePost } from '../kv/wire.js';
import type { Model } from '../model/model.js';
import { sample } from '../model/sampler.js';
import { type EngineConfig, hasFault, pagesPerSlot } from './config.js';
import { guardNamed, prefillGuardWords } from './guard-words.js';
import { Machine, messageOf } from './machine.js';
import { PageChecks } from './page-checks.js';
import { postedTag, sealedTag, type Writer } from './prefill-tags.js';
import { type Job, newJob } from './prefill-job.js';
import { wireTo } from './prefill-wire.js';
import { PrefixCache } from './prefix-cache.js';
import type { StatsBlock } from './stats.js';
import { newSweep } from './sweeping.js';
import type { DecodeTarget, NodePorts, Payload, ToPrefill, Turn } from './traffic.js';

/** What a rejected request is swapped for by the fault `rejected-stays-alive`: one token that means nothing. */
export const PLACEHOLDER_TOKEN = 0;
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
  #registrationTable: RegistrationTable;
  readonly #o: PrefillNodeOptions;
  readonly #jobs: (Job | undefined)[];
  /** By slot, of the newest lease: it may come before the start does. */
  readonly #registrations = new Map<number, number>();
  readonly #checks: PageChecks;
  readonly #cache: PrefixCache;
  readonly sweep: Sweep;
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
    this.machine = new Machine(
      'prefill',
      { slots: config.runningMax, pages: options.pool.pages, pagesPerSlot: pagesPerSlot(config), prefixes: true },
      config.rules,
      incarnation,
      target.incarnation,
      (effect, body) => this.#carryOut(effect, body),
    );
    this.#checks = new PageChecks(options.memory, options.pool, options.stats);
    const condemn = (page: number): void => this.#cache.condemn(page);
    this.sweep = newSweep(options, this.machine.view, this.#checks.checksummer, condemn);
    this.#cache = new PrefixCache(this.machine, config, () => this.sweep.noteReleased());
    this.#registrationTable = new RegistrationTable(target.registrations);
    this.#wire = this.#connect(target);
    // Before the first request too, a pool that nobody uses is free, not empty.
    options.stats.setPages(this.machine.view);
  }

  /** For scripts that look at its pages. */
  get pool(): PagePool {
    return this.#o.pool;
  }

  /** For faults and scripts: writes can be held back and torn here. */
  get wire(): Wire {
    return this.#wire;
  }

  #connect(target: DecodeTarget): Wire {
    this.#registrationTable = new RegistrationTable(target.registrations);
    const onSettled = (slot: number, attempt: number): void => void this.#settled.push({ slot, attempt });
    return wireTo(target, this.#registrationTable, this.#o.pool, this.#o.config, onSettled);
  }

  receive(message: ToPrefill): void {
    if (message.kind === 'decode-down') {
      // Writes for the old pool can only be refused: its table is gone. Let them settle, then use the new one.
      this.#unposted = [];
      this.#wire.release();
      this.#settleWrites(Number.POSITIVE_INFINITY);
      const event = this.machine.event(EventKind.decodeDown, 0, 0);
      event[E.from] = message.incarnation;
      this.machine.step(event);
      // The table goes with its pool; what it counted does not.
      this.#o.stats.add('landingsRefusedBefore', this.#registrationTable.totals().refused);
      this.#o.stats.set('landingsRefused', 0);
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
    this.#jobs[slot] = newJob(attempt, payload, this.#registrations.get(slot) ?? 0, this.#o.config.pageTokens);
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
      this.#o.stats.setSweep('prefill', this.sweep);
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
    if (this.#computing.length > 0) return;
    this.sweep.idle(IDLE_SWEEP_PAGES);
    this.#isDirty = true;
  }

  #admit(): void {
    const still: number[] = [];
    let isBlocked = false;
    for (const slot of this.#waiting) {
      if (this.#phase(slot) === PrefillPhase.waiting && !isBlocked) this.#tryAdmit(slot);
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

  /** Proposes what the cache has, makes room for the rest, and asks the ledger. */
  #tryAdmit(slot: number): void {
    const { view } = this.machine;
    const job = this.#jobs[slot];
    const attempt = this.#attempt(slot);
    if (job === undefined || job.attempt !== attempt || getSlot(view, slot, 'peer') === 0) return;
    const isWhole = getSlot(view, slot, 'tokens') === job.prompt.length;
    if (isWhole) this.#cache.propose(slot, attempt, job.salt, job.prompt);
    this.#cache.makeRoom(getSlot(view, slot, 'promptPages') - getSlot(view, slot, 'prefix'));
    this.machine.raise(EventKind.admit, slot, attempt);
    job.cachedTokens = getSlot(view, slot, 'prefix') * this.#o.config.pageTokens;
    job.computed = job.cachedTokens;
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
    const prompt = tokens === job.prompt.length ? job.prompt : Int32Array.of(PLACEHOLDER_TOKEN);
    const start = job.computed;
    const end = Math.min(tokens, start + config.chunkTokens);
    const { pages, epochs } = this.#sourceOf(slot);
    const isFirst = start === job.cachedTokens;
    if (!this.#prefixIsOwn(slot, pages, epochs, isFirst)) return;
    const logits = model.prefill(prompt.subarray(start, end), start, pages, true);
    assert(logits !== null, 'a chunk gives logits');
    if (!this.#prefixIsOwn(slot, pages, epochs, false)) return;
    job.firstToken = sample(logits, job.sampling.temperature, new Prng(job.sampling.seed));
    job.computed = end;
    this.#steps++;
    this.#o.stats.add('tokensPrefilled', end - start);
    this.sweep.step(end - start);
    const event = this.machine.event(EventKind.chunk, slot, job.attempt);
    // Places that decode shares with others are not posted, so they count as done from the start.
    const done = end === tokens ? getSlot(view, slot, 'promptPages') : Math.floor(end / config.pageTokens);
    event[E.pages] = Math.max(0, done - getSlot(view, slot, 'posted'));
    event[E.tokens] = end;
    this.machine.step(event);
    if (this.#phase(slot) !== PrefillPhase.computing) return;
    // The fault's trigger: a prefill that fails after its first chunk.
    if (hasFault(config.rules, 'silent-abort')) this.machine.raise(EventKind.abandon, slot, job.attempt);
    if (this.#phase(slot) === PrefillPhase.computing) this.#computing.push(slot);
  }

  /** The slot's pages, live, and the epochs of those that are shared. */
  #sourceOf(slot: number): { pages: Int32Array; epochs: Int32Array } {
    const { view } = this.machine;
    const list = listAt(view, slot, SOURCE);
    const pages = view.cells.subarray(list, list + getSlot(view, slot, 'held')) as Int32Array;
    const shared = pages.subarray(0, getSlot(view, slot, 'prefix'));
    return { pages, epochs: Int32Array.from(shared, (page) => view.cells[pageAt(view, page) + PG.epoch] ?? 0) };
  }

  /**
   * Whether the sealed pages that this prompt shares still carry the tenant's tag, before a chunk reads them and after; and, before
   * the first one, whether their payload is what was sealed. If not, the request ends here.
   */
  #prefixIsOwn(slot: number, pages: Int32Array, epochs: Int32Array, isFirst: boolean): boolean {
    const { view } = this.machine;
    const prefix = epochs.length;
    if (prefix === 0) return true;
    const attempt = this.#attempt(slot);
    const identity = { slot, attempt, incarnation: this.#o.incarnation, tenant: getSlot(view, slot, 'tenant') };
    const table = { pages: pages.subarray(0, prefix), epochs, identity };
    const tokens = prefix * this.#o.config.pageTokens;
    const isTagged = !guarded(view, GUARD.tag) || this.#checks.tags(table, tokens, prefix) === Verdict.own;
    const isCompared = isFirst && guarded(view, GUARD.checksum);
    const isWhole = !isTagged || !isCompared || this.#checks.sealed(pages, prefix) === Verdict.own;
    if (isTagged && isWhole) return true;
    this.#cache.condemn(this.#checks.page);
    this.#reportGuard(slot, isTagged ? GUARD.checksum : GUARD.tag);
    this.machine.raise(EventKind.abandon, slot, attempt);
    return false;
  }

  #settleWrites(nowMs: number): void {
    this.#wire.poll(nowMs);
    const settled = this.#settled;
    if (settled.length === 0) return;
    this.#settled = [];
    for (const { slot, attempt } of settled) {
      const event = this.machine.event(EventKind.settled, slot, attempt);
      event[E.pages] = 1;
      this.#settle(slot, event);
    }
    this.#isDirty = true;
  }

  /** With the last of a prompt's writes its pages here are done with: the whole ones are sealed for the tenant. */
  #settle(slot: number, event: Int32Array): void {
    const { view } = this.machine;
    const job = this.#jobs[slot];
    const isLast = getSlot(view, slot, 'settled') + 1 === getSlot(view, slot, 'promptPages');
    const isWhole = job?.attempt === event[E.attempt] && getSlot(view, slot, 'tokens') === job?.prompt.length;
    if (!isLast || !isWhole || job === undefined || this.#phase(slot) !== PrefillPhase.flushing) {
      return this.machine.step(event);
    }
    const pages = this.#sourceOf(slot).pages.slice();
    this.#cache.sealWith(event, job.salt, job.prompt, pages, getSlot(view, slot, 'prefix'));
  }

  /** A page now belongs to the tenant: its tag says so, with the checksum of what was computed into it. */
  #seal(slot: number, page: number): void {
    const place = this.#cache.onSeal(page);
    const job = this.#jobs[slot];
    if (place < 0 || job === undefined) return;
    const { view } = this.machine;
    const tag = sealedTag(view, slot, page, place, this.#o.config.pageTokens, this.#writer());
    // Not that of the posted page: a place that decode had already was not posted, and what was is no part of this one's story.
    this.#checks.checksummer.page(this.#o.pool, page, this.#sum);
    tag.checksumLow = this.#sum[0] ?? 0;
    tag.checksumHigh = this.#sum[1] ?? 0;
    writeTag(this.#o.pool, page, tag);
    this.sweep.noteSealed(page);
  }

  #writer(): Writer {
    return { incarnation: this.#o.incarnation, step: this.#steps };
  }

  #hash(job: Job, page: number, place: number): void {
    this.#checks.checksummer.page(this.#o.pool, page, this.#sum);
    job.checksums.set(this.#sum, 2 * place);
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
      case EffectKind.seal:
        return this.#seal(slot, body[E.pages] ?? 0);
      case EffectKind.guardHit:
        return this.#reportGuard(slot, body[E.code] ?? 0);
      case EffectKind.pagesFreed:
        this.#isDirty = true;
        return this.sweep.noteReleased();
    }
  }

  #reportGuard(slot: number, guard: number): void {
    this.#o.stats.addGuardHit(guard);
    const name = guardNamed(guard, 'rejection');
    const words = prefillGuardWords(name, this.machine.view, slot, this.#checks.words, this.#o.config.prefillPool);
    this.#o.ports.toGateway({ kind: 'guard-hit', guard: name, slot, words });
  }

  #payloadFor(body: Int32Array): Payload | null {
    if (body[E.kind] !== EventKind.complete) return null;
    const slot = body[E.slot] ?? 0;
    const job = this.#jobs[slot];
    if (job === undefined) return null;
    this.#checks.checksummer.combine(job.checksums, getSlot(this.machine.view, slot, 'posted'), this.#sum);
    const { firstToken, cachedTokens } = job;
    return { kind: 'completion', firstToken, low: this.#sum[0] ?? 0, high: this.#sum[1] ?? 0, cachedTokens };
  }

  /** Tags the pages of places [first, first + count) and puts them on the wire. */
  #post(slot: number, first: number, count: number): void {
    const { view } = this.machine;
    const { config, pool } = this.#o;
    const job = this.#jobs[slot];
    assert(job !== undefined, 'a slot that posts has a prompt');
    this.#wire.useRegistration(job.registration);
    const tokens = getSlot(view, slot, 'tokens');
    for (let place = first; place < first + count; place++) {
      const sourcePage = view.cells[listAt(view, slot, SOURCE) + place] ?? 0;
      const filled = Math.min(config.pageTokens, tokens - place * config.pageTokens);
      // What lies behind the last token is somebody's old keys and values: it must not travel.
      pool.zeroTail(sourcePage, filled);
      this.#hash(job, sourcePage, place);
      const tag = postedTag(view, slot, place, filled, this.#writer());
      tag.checksumLow = job.checksums[2 * place] ?? 0;
      tag.checksumHigh = job.checksums[2 * place + 1] ?? 0;
      const targetPage = view.cells[listAt(view, slot, TARGET) + place] ?? 0;
      const write: WritePost = { room: 0n, slot, attempt: job.attempt, sourcePage, targetPage, tag };
      if (this.#unposted.length > 0 || !this.#wire.post(write, this.#o.nowMs())) this.#unposted.push(write);
    }
  }
}
