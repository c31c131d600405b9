/**
 * Decode: leases pages, verifies what was written into them, and generates. Which slot may do what is decided by
 * `handoff/decode.ts`; this file compares, computes and samples when it says so.
 */
import { assert } from '../base/assert.js';
import type { SharedMemory } from '../base/shared-memory.js';
import { DecodePhase, leaseList, Verdict } from '../handoff/decode.js';
import { DS, getSlot, slotAt } from '../handoff/layout.js';
import { E, EffectKind, EventKind } from '../handoff/messages.js';
import { GUARD, guarded } from '../handoff/rules.js';
import type { PagePool } from '../kv/pool.js';
import type { LeaseIdentity } from '../kv/read-guard.js';
import type { RegistrationTable } from '../kv/registration.js';
import { IDLE_SWEEP_PAGES, type Sweep } from '../kv/sweep.js';
import { OWNER_TENANT, readTag, writeTag } from '../kv/tag.js';
import type { DecodeItem, Model } from '../model/model.js';
import { sample } from '../model/sampler.js';
import { TOKEN_EOS } from '../tokenizer/bytes.js';
import { type EngineConfig, pagesPerSlot } from './config.js';
import { DrainWatch } from './drain-watch.js';
import { decodeGuardWords, guardNamed } from './guard-words.js';
import { Machine, messageOf } from './machine.js';
import { PageChecks } from './page-checks.js';
import { PrefixCache } from './prefix-cache.js';
import { claimPage, HandleBook, newRun, pagesOf, type Run } from './runs.js';
import type { StatsBlock } from './stats.js';
import { newSweep } from './sweeping.js';
import type { NodePorts, Payload, ToDecode, Turn } from './traffic.js';

/** Tokens that decode may be ahead of a request's reader: then the request rests, and only it. */
export const STREAM_AHEAD_MAX = 512;
export interface DecodeNodeOptions {
  readonly config: EngineConfig;
  readonly incarnation: number;
  readonly prefillIncarnation: number;
  readonly memory: SharedMemory;
  readonly pool: PagePool;
  readonly model: Model;
  readonly registrations: RegistrationTable;
  readonly ports: NodePorts;
  readonly stats: StatsBlock;
  readonly nowMs: () => number;
}

type Output = Payload & { kind: 'output' };
type Completion = Payload & { kind: 'completion' };

export class DecodeNode {
  readonly machine: Machine;
  readonly checks: PageChecks;
  readonly #o: DecodeNodeOptions;
  readonly #outputs: (Output | undefined)[];
  readonly #completions: (Completion | undefined)[];
  readonly #runs: (Run | undefined)[];
  readonly #drains: DrainWatch;
  readonly #registered = new Map<number, number>();
  readonly #handles = new HandleBook();
  readonly #cache: PrefixCache;
  /** For tests and measurements: its counts, and a round at will. */
  readonly sweep: Sweep;
  #first: { readonly run: Run; readonly token: number }[] = [];
  #arriving: Completion | null = null;
  #ending: (Payload & { kind: 'output-end' }) | null = null;
  #waiting: number[] = [];
  #isDirty = true;
  #steps = 0;

  constructor(options: DecodeNodeOptions) {
    this.#o = options;
    const { config, incarnation, prefillIncarnation } = options;
    const slots = config.runningMax;
    this.#outputs = Array.from({ length: slots }, () => undefined);
    this.#completions = Array.from({ length: slots }, () => undefined);
    this.#runs = Array.from({ length: slots }, () => undefined);
    this.#drains = new DrainWatch(slots, config.drainAlarmMs);
    this.checks = new PageChecks(options.memory, options.pool, options.stats);
    this.machine = new Machine(
      'decode',
      { slots, pages: options.pool.pages, pagesPerSlot: pagesPerSlot(config), prefixes: true },
      config.rules,
      incarnation,
      prefillIncarnation,
      (effect, body) => this.#carryOut(effect, body),
    );
    const condemn = (page: number): void => this.#cache.condemn(page);
    this.sweep = newSweep(options, this.machine.view, this.checks.checksummer, condemn);
    this.#cache = new PrefixCache(this.machine, config, () => this.sweep.noteReleased());
    this.#register(prefillIncarnation);
    // Before the first request too, a pool that nobody uses is free, not empty.
    options.stats.setPages(this.machine.view);
  }

  #register(incarnation: number): void {
    const handle = this.#o.registrations.register(incarnation);
    assert(handle !== null, 'the registration table has room for another incarnation of prefill');
    this.#registered.set(incarnation, handle);
  }

  receive(message: ToDecode): void {
    this.#isDirty = true;
    switch (message.kind) {
      case 'prefill-down': {
        const event = this.machine.event(EventKind.prefillDown, 0, 0);
        event[E.from] = message.incarnation;
        this.machine.step(event);
        return;
      }
      case 'acknowledge': {
        const run = this.#runs[message.slot];
        if (run?.attempt === message.attempt) run.acknowledged = Math.max(run.acknowledged, message.tokens);
        return;
      }
      case 'protocol':
        this.#arriving = message.payload?.kind === 'completion' ? message.payload : null;
        this.machine.step(message.event);
        this.#arriving = null;
        if (message.payload?.kind === 'output') this.#keepOutput(message.event, message.payload);
    }
  }

  #phase(slot: number): number {
    return this.machine.view.cells[slotAt(this.machine.view, slot) + DS.phase] ?? 0;
  }

  #attempt(slot: number): number {
    return this.machine.view.cells[slotAt(this.machine.view, slot) + DS.attempt] ?? 0;
  }

  #keepOutput(event: Int32Array, payload: Output): void {
    const slot = event[E.slot] ?? 0;
    if (this.#attempt(slot) !== event[E.attempt] || this.#phase(slot) !== DecodePhase.waiting) return;
    this.#outputs[slot] = payload;
    if (!this.#waiting.includes(slot)) this.#waiting.push(slot);
  }

  /** Leases for who waits, then one step of everyone who decodes. */
  turn(): Turn {
    this.#admit();
    this.#emitFirst();
    const isStepped = this.#decodeStep();
    const nowMs = this.#o.nowMs();
    const isDraining = (slot: number): boolean => this.#phase(slot) === DecodePhase.draining;
    const wakeAtMs = this.#drains.look(nowMs, isDraining, (slot) => {
      this.machine.raise(EventKind.timeout, slot, this.#attempt(slot));
      this.#isDirty = true;
    });
    if (this.#isDirty) {
      this.#o.stats.setPages(this.machine.view);
      this.#o.stats.set('tagsChecked', this.checks.tagsChecked);
      this.#o.stats.setSweep('decode', this.sweep);
      this.#o.stats.set('landingsRefused', this.#o.registrations.totals().refused);
      this.#isDirty = false;
      if (this.#isIdle()) this.machine.assertHolds();
    }
    return { busy: isStepped, wakeAtMs };
  }

  #isIdle(): boolean {
    return this.#waiting.length === 0 && this.#runs.every((run) => run === undefined);
  }

  tick(): void {
    for (let slot = 0; slot < this.machine.view.shape.slots; slot++) {
      if (this.#phase(slot) !== DecodePhase.idle) this.machine.raise(EventKind.timer, slot, this.#attempt(slot));
    }
    if (!this.#isIdle()) return;
    this.sweep.idle(IDLE_SWEEP_PAGES);
    this.#isDirty = true;
  }

  #admit(): void {
    while (this.#waiting.length > 0) {
      const slot = this.#waiting[0] as number;
      if (this.#phase(slot) === DecodePhase.waiting) this.#lease(slot);
      // First come, first served: who waits for pages is not overtaken by who needs fewer.
      if (this.#phase(slot) === DecodePhase.waiting) return;
      this.#waiting.shift();
      this.#isDirty = true;
    }
  }

  #lease(slot: number): void {
    const handle = this.#outputs[slot]?.handle ?? null;
    if (handle === null) return this.#tryAdmit(slot);
    const pages = this.#handles.pagesOf(handle);
    const event = this.machine.event(EventKind.attach, slot, this.#attempt(slot));
    event[E.count] = pages.length;
    for (const [i, [page, epoch]] of pages.entries()) {
      event[E.list + 2 * i] = page;
      event[E.list + 2 * i + 1] = epoch;
    }
    this.machine.step(event);
  }

  /** Proposes what the cache has, makes room for the rest, and asks the ledger. */
  #tryAdmit(slot: number): void {
    const { view } = this.machine;
    const output = this.#outputs[slot];
    const attempt = this.#attempt(slot);
    if (output === undefined) return;
    this.#cache.propose(slot, attempt, output.salt, output.prompt);
    this.#cache.makeRoom(getSlot(view, slot, 'pages') - getSlot(view, slot, 'prefix'));
    this.machine.raise(EventKind.admit, slot, attempt);
  }

  /** One token for every request that decodes and whose reader keeps up. False: there was none. */
  #decodeStep(): boolean {
    const batch: Run[] = [];
    for (const run of this.#runs) {
      // Invariant: a run of which the first token is still to come is not stepped.
      if (run === undefined || this.#first.some((one) => one.run === run)) continue;
      if (run.produced - run.acknowledged >= STREAM_AHEAD_MAX) continue;
      this.machine.raise(EventKind.readBegin, run.slot, run.attempt, this.#compareTags(run, run.position));
      if (this.#phase(run.slot) !== DecodePhase.reading) continue;
      claimPage(this.#o.pool, run, this.#o.incarnation, this.#steps);
      batch.push(run);
    }
    if (batch.length === 0) return false;
    this.#steps++;
    const items: DecodeItem[] = batch.map((run) => ({ token: run.token, position: run.position, pages: run.pages }));
    const logits = this.#o.model.decode(items);
    this.#o.stats.add('decodeSteps', 1);
    const width = logits.length / batch.length;
    for (const [i, run] of batch.entries()) {
      // Writes land from another thread at any time: the token leaves only if the pages are still the request's own.
      this.machine.raise(EventKind.readEnd, run.slot, run.attempt, this.#compareTags(run, run.position + 1));
      if (this.#phase(run.slot) !== DecodePhase.decoding) continue;
      run.position++;
      this.#emit(run, sample(logits.subarray(i * width, (i + 1) * width), run.temperature, run.chance));
    }
    this.sweep.step(batch.length);
    this.#isDirty = true;
    return true;
  }

  #compareTags(run: Run, tokens: number): number {
    const { view } = this.machine;
    if (!guarded(view, GUARD.tag)) return Verdict.own;
    const sealed = getSlot(view, run.slot, 'attached') === 1 ? 0 : getSlot(view, run.slot, 'prefix');
    return this.#condemnIfBad(this.checks.tags(run, tokens, sealed));
  }

  /** A sealed page that did not pass must not be given to the next prompt either. */
  #condemnIfBad(verdict: number): number {
    if (verdict !== Verdict.own) this.#cache.condemn(this.checks.page);
    return verdict;
  }

  #emit(run: Run, token: number): void {
    if (token === TOKEN_EOS && !run.ignoreEos) return this.#finish(run, 'stop');
    run.token = token;
    run.produced++;
    this.#o.ports.toGateway({ kind: 'token', slot: run.slot, attempt: run.attempt, id: token });
    if (run.produced >= run.maxTokens) this.#finish(run, 'length');
  }

  #finish(run: Run, finishReason: 'stop' | 'length'): void {
    this.#handles.remember(run, this.#o.incarnation);
    this.#ending = { kind: 'output-end', finishReason, completionTokens: run.produced };
    this.#finishRun(run);
    this.#ending = null;
  }

  /** The whole pages of the prompt are sealed for the tenant; the rest goes back. */
  #finishRun(run: Run): void {
    const { view } = this.machine;
    const output = this.#outputs[run.slot];
    const event = this.machine.event(EventKind.finish, run.slot, run.attempt);
    if (output === undefined || getSlot(view, run.slot, 'attached') === 1) return this.machine.step(event);
    this.#cache.sealWith(event, output.salt, output.prompt, run.pages, getSlot(view, run.slot, 'prefix'));
  }

  /** A page now belongs to the tenant, and its tag says so; its checksum is still that of what prefill computed. */
  #seal(slot: number, page: number): void {
    if (this.#cache.onSeal(page) < 0) return;
    const tag = readTag(this.#o.pool, page);
    tag.ownerKind = OWNER_TENANT;
    tag.owner = getSlot(this.machine.view, slot, 'tenant');
    tag.attempt = 0;
    writeTag(this.#o.pool, page, tag);
    this.sweep.noteSealed(page);
  }

  #carryOut(effect: number, body: Int32Array): void {
    const slot = body[E.slot] ?? 0;
    switch (effect) {
      case EffectKind.sendGateway:
        return this.#sendGateway(body);
      case EffectKind.sendPrefill:
        return this.#sendPrefill(body);
      case EffectKind.verify:
        this.#completions[slot] = this.#arriving ?? undefined;
        return this.machine.raise(EventKind.verified, slot, this.#attempt(slot), this.#verify(slot));
      case EffectKind.startDecode:
        return this.#startRun(slot);
      case EffectKind.seal:
        return this.#seal(slot, body[E.pages] ?? 0);
      case EffectKind.pagesFreed:
        return this.sweep.noteReleased();
      case EffectKind.revoke: {
        const handle = this.#registered.get(body[E.from] ?? 0);
        if (handle === undefined) return;
        // Whoever says that prefill is down has seen its thread end: a copy that it began will never go on.
        if (!this.#o.registrations.revoke(handle)) this.#o.registrations.revokeEnded(handle);
        return;
      }
      case EffectKind.register:
        return this.#register(body[E.from] ?? 0);
      case EffectKind.guardHit:
        return this.#reportGuard(slot, body[E.code] ?? 0);
      case EffectKind.alarm:
        return this.#o.ports.toGateway({ kind: 'alarm', slot, attempt: body[E.attempt] ?? 0 });
    }
  }

  #sendGateway(body: Int32Array): void {
    if (body[E.kind] === EventKind.decodeClosed) this.#runs[body[E.slot] ?? 0] = undefined;
    this.#o.ports.toGateway({
      kind: 'protocol',
      event: messageOf(body),
      payload: this.#ending ?? this.#cachedFor(body),
    });
  }

  #cachedFor(body: Int32Array): Payload | null {
    if (body[E.kind] !== EventKind.started) return null;
    return { kind: 'cached', tokens: this.#completions[body[E.slot] ?? 0]?.cachedTokens ?? 0 };
  }

  #sendPrefill(body: Int32Array): void {
    const isLease = body[E.kind] === EventKind.lease;
    const count = isLease ? (body[E.count] ?? 0) : 0;
    const event = messageOf(body, count);
    if (isLease) leaseList(this.machine.view, body[E.slot] ?? 0, event, E.list);
    const handle = isLease ? this.#registered.get(body[E.to] ?? 0) : undefined;
    this.#o.ports.toPrefill({
      kind: 'protocol',
      event,
      payload: handle === undefined ? null : { kind: 'registration', handle },
    });
  }

  #identity(slot: number): LeaseIdentity {
    return {
      slot,
      attempt: this.#attempt(slot),
      incarnation: this.#o.incarnation,
      tenant: getSlot(this.machine.view, slot, 'tenant'),
    };
  }

  /** Tags and checksums of the prompt's pages, against the ledger and against what prefill said. */
  #verify(slot: number): number {
    const { view } = this.machine;
    const { pages, epochs } = pagesOf(view, slot);
    const prefix = getSlot(view, slot, 'prefix');
    let code: number = Verdict.own;
    if (guarded(view, GUARD.tag)) {
      const table = { pages, epochs, identity: this.#identity(slot) };
      code |= this.checks.tags(table, getSlot(view, slot, 'tokens'), prefix);
    }
    if (guarded(view, GUARD.checksum)) {
      const count = getSlot(view, slot, 'promptPages');
      code |= this.checks.checksums(pages, prefix, count, this.#completions[slot] ?? null);
    }
    return this.#condemnIfBad(code);
  }

  #startRun(slot: number): void {
    const { view } = this.machine;
    const output = this.#outputs[slot];
    if (output === undefined) return;
    const isAttached = getSlot(view, slot, 'attached') === 1;
    const run = newRun(view, slot, this.#identity(slot), output, this.#o.config.pageTokens);
    this.#runs[slot] = run;
    // Its token follows at the next turn: after `started`, which the machine sends behind this effect.
    if (!isAttached) this.#first.push({ run, token: this.#completions[slot]?.firstToken ?? 0 });
  }

  /** The token that prefill computed leaves as soon as its pages are verified. */
  #emitFirst(): void {
    const first = this.#first;
    this.#first = [];
    for (const { run, token } of first) {
      const isAlive = this.#runs[run.slot] === run && this.#phase(run.slot) === DecodePhase.decoding;
      if (isAlive) this.#emit(run, token);
    }
  }

  #reportGuard(slot: number, guard: number): void {
    this.#o.stats.addGuardHit(guard);
    const name = guardNamed(guard, 'tag');
    const words = decodeGuardWords(name, this.machine.view, slot, this.checks.words);
    this.#o.ports.toGateway({ kind: 'guard-hit', guard: name, slot, words });
  }
}
