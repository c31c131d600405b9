/**
 * Decode: leases pages, verifies what was written into them, and generates. Which slot may do what is decided by
 * `handoff/decode.ts`; this file compares, computes and samples when it says so.
 */
import { assert } from '../base/assert.js';
import { Prng } from '../base/prng.js';
import type { SharedMemory } from '../base/shared-memory.js';
import { DecodePhase, leaseList, Verdict } from '../handoff/decode.js';
import { GUARDS } from '../handoff/guards.js';
import { DS, getSlot, listAt, PG, pageAt, slotAt } from '../handoff/layout.js';
import { E, EffectKind, EventKind } from '../handoff/messages.js';
import { GUARD, guarded } from '../handoff/rules.js';
import { Checksummer } from '../kv/checksum.js';
import type { PagePool } from '../kv/pool.js';
import { type LeaseIdentity, ReadGuard } from '../kv/read-guard.js';
import type { RegistrationTable } from '../kv/registration.js';
import { newPageTag, OWNER_LEASE, readTag, setFilled, TAG_OWN, WRITER_DECODE, writeTag } from '../kv/tag.js';
import type { DecodeItem, Model } from '../model/model.js';
import { sample } from '../model/sampler.js';
import { TOKEN_EOS } from '../tokenizer/bytes.js';
import { type EngineConfig, pagesPerSlot } from './config.js';
import { Machine, messageOf } from './machine.js';
import type { StatsBlock } from './stats.js';
import type { NodePorts, Payload, ToDecode, Turn } from './traffic.js';

/** Tokens that decode may be ahead of a request's reader: then the request rests, and only it. */
export const STREAM_AHEAD_MAX = 512;
/** Finished leases whose pages a handle could still name; for the fault `stale-handle` alone. */
const HANDLES_MAX = 256;

/** A request that decodes. */
interface Run {
  readonly slot: number;
  readonly attempt: number;
  readonly identity: LeaseIdentity;
  /** Shape (places). Page numbers, live from the record; and the epochs that their tags must carry. */
  readonly pages: Int32Array;
  readonly epochs: Int32Array;
  readonly chance: Prng;
  readonly temperature: number;
  readonly maxTokens: number;
  /** The token to feed next, and where its KV goes. */
  token: number;
  position: number;
  produced: number;
  acknowledged: number;
}

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
  readonly guard: ReadGuard = new ReadGuard();
  readonly #o: DecodeNodeOptions;
  readonly #outputs: (Output | undefined)[];
  readonly #completions: (Completion | undefined)[];
  readonly #runs: (Run | undefined)[];
  readonly #drainingSinceMs: number[];
  readonly #registered = new Map<number, number>();
  readonly #handles = new Map<string, readonly (readonly [number, number])[]>();
  readonly #checksummer: Checksummer;
  readonly #sum = new Uint32Array(2);
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
    this.#drainingSinceMs = Array.from({ length: slots }, () => 0);
    this.#checksummer = new Checksummer(options.memory);
    this.machine = new Machine(
      'decode',
      { slots, pages: options.pool.pages, pagesPerSlot: pagesPerSlot(config), prefixes: true },
      config.rules,
      incarnation,
      prefillIncarnation,
      (effect, body) => this.#carryOut(effect, body),
    );
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
    const wakeAtMs = this.#watchDrains(nowMs);
    if (this.#isDirty) {
      this.#o.stats.setPages(this.machine.view);
      this.#o.stats.set('tagsChecked', this.guard.tagsChecked);
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
    if (handle === null) return this.machine.raise(EventKind.admit, slot, this.#attempt(slot));
    const pages = this.#handles.get(handle) ?? [];
    const event = this.machine.event(EventKind.attach, slot, this.#attempt(slot));
    event[E.count] = pages.length;
    for (const [i, [page, epoch]] of pages.entries()) {
      event[E.list + 2 * i] = page;
      event[E.list + 2 * i + 1] = epoch;
    }
    this.machine.step(event);
  }

  #watchDrains(nowMs: number): number | null {
    let wakeAtMs: number | null = null;
    for (let slot = 0; slot < this.#drainingSinceMs.length; slot++) {
      if (this.#phase(slot) !== DecodePhase.draining) {
        this.#drainingSinceMs[slot] = 0;
        continue;
      }
      const since = this.#drainingSinceMs[slot] || nowMs;
      this.#drainingSinceMs[slot] = since;
      const dueMs = since + this.#o.config.drainAlarmMs;
      if (nowMs >= dueMs) {
        this.#drainingSinceMs[slot] = nowMs;
        this.machine.raise(EventKind.timeout, slot, this.#attempt(slot));
        this.#isDirty = true;
      }
      wakeAtMs = Math.min(wakeAtMs ?? Number.POSITIVE_INFINITY, nowMs >= dueMs ? nowMs + 1 : dueMs);
    }
    return wakeAtMs;
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
      this.#claim(run);
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
    this.#isDirty = true;
    return true;
  }

  #compareTags(run: Run, tokens: number): number {
    const { view } = this.machine;
    if (!guarded(view, GUARD.tag)) return Verdict.own;
    const prefix = getSlot(view, run.slot, 'prefix');
    const verdict = this.guard.check(
      this.#o.pool,
      run.pages,
      run.epochs,
      run.pages.length,
      run.identity,
      tokens,
      getSlot(view, run.slot, 'attached') === 1 ? 0 : prefix,
    );
    if (verdict === TAG_OWN) return Verdict.own;
    this.#words = this.guard.words(this.#o.pool, verdict, run.identity);
    return Verdict.badTag;
  }

  /** What the last failed comparison found, for the finding. */
  #words = '';

  /** The page in which the next token's KV goes carries the request's tag before the step writes to it. */
  #claim(run: Run): void {
    const { pool, config, incarnation } = this.#o;
    const place = Math.floor(run.position / config.pageTokens);
    const page = run.pages[place];
    assert(page !== undefined, 'a lease has a page for every token that was admitted');
    const filled = (run.position % config.pageTokens) + 1;
    if (filled > 1) return setFilled(pool, page, filled);
    const tag = newPageTag();
    tag.ownerKind = OWNER_LEASE;
    tag.owner = run.slot;
    tag.attempt = run.attempt;
    tag.incarnation = incarnation;
    tag.epoch = run.epochs[place] ?? 0;
    tag.place = place;
    tag.filled = filled;
    tag.writer = WRITER_DECODE;
    tag.writtenAtStep = this.#steps;
    writeTag(pool, page, tag);
  }

  #emit(run: Run, token: number): void {
    if (token === TOKEN_EOS) return this.#finish(run, 'stop');
    run.token = token;
    run.produced++;
    this.#o.ports.toGateway({ kind: 'token', slot: run.slot, attempt: run.attempt, id: token });
    if (run.produced >= run.maxTokens) this.#finish(run, 'length');
  }

  #finish(run: Run, finishReason: 'stop' | 'length'): void {
    this.#remember(run);
    this.#ending = { kind: 'output-end', finishReason, completionTokens: run.produced };
    this.machine.raise(EventKind.finish, run.slot, run.attempt);
    this.#ending = null;
  }

  /** A finished request's handle, as engines give it out: it names pages that may by now be anybody's. */
  #remember(run: Run): void {
    const pages = Array.from(run.pages, (page, place) => [page, run.epochs[place] ?? 0] as const);
    this.#handles.set(`${run.slot}.${run.attempt}.${this.#o.incarnation}`, pages);
    if (this.#handles.size <= HANDLES_MAX) return;
    for (const oldest of this.#handles.keys()) {
      this.#handles.delete(oldest);
      return;
    }
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
    this.#o.ports.toGateway({ kind: 'protocol', event: messageOf(body), payload: this.#ending });
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

  #pagesOf(slot: number): { pages: Int32Array; epochs: Int32Array } {
    const { view } = this.machine;
    const list = listAt(view, slot, 0);
    const pages = (view.cells as Int32Array).slice(list, list + getSlot(view, slot, 'held'));
    return { pages, epochs: pages.map((page) => view.cells[pageAt(view, page) + PG.epoch] ?? 0) };
  }

  /** Tags and checksums of the prompt's pages, against the ledger and against what prefill said. */
  #verify(slot: number): number {
    const { view } = this.machine;
    const { pages, epochs } = this.#pagesOf(slot);
    const prefix = getSlot(view, slot, 'prefix');
    let code: number = Verdict.own;
    if (guarded(view, GUARD.tag)) {
      const identity = this.#identity(slot);
      const tokens = getSlot(view, slot, 'tokens');
      const verdict = this.guard.check(this.#o.pool, pages, epochs, pages.length, identity, tokens, prefix);
      if (verdict !== TAG_OWN) {
        code |= Verdict.badTag;
        this.#words = this.guard.words(this.#o.pool, verdict, identity);
      }
    }
    if (guarded(view, GUARD.checksum) && !this.#checksumsAgree(slot, pages, prefix)) code |= Verdict.badChecksum;
    return code;
  }

  #checksumsAgree(slot: number, pages: Int32Array, prefix: number): boolean {
    const { pool, stats } = this.#o;
    const count = getSlot(this.machine.view, slot, 'promptPages');
    const checksums = new Uint32Array(2 * count);
    for (let place = prefix; place < count; place++) {
      const page = pages[place] ?? 0;
      this.#checksummer.page(pool, page, this.#sum);
      stats.add('pagesVerified', 1);
      const tag = readTag(pool, page);
      if (tag.checksumLow !== this.#sum[0] || tag.checksumHigh !== this.#sum[1]) {
        this.#words = `Expected the payload of page ${page} at place ${place} to have the checksum in its tag, got another`;
        return false;
      }
      checksums.set(this.#sum, 2 * place);
    }
    const said = this.#completions[slot];
    this.#checksummer.combine(checksums, count, this.#sum);
    if (said !== undefined && said.low === this.#sum[0] && said.high === this.#sum[1]) return true;
    this.#words = `Expected the ${count} pages of slot ${slot} to have the checksum that prefill completed, got another`;
    return false;
  }

  #startRun(slot: number): void {
    const { view } = this.machine;
    const output = this.#outputs[slot];
    if (output === undefined) return;
    const { sampling } = output;
    const isAttached = getSlot(view, slot, 'attached') === 1;
    const tokens = getSlot(view, slot, 'tokens');
    const { pages, epochs } = this.#pagesOf(slot);
    const run: Run = {
      slot,
      attempt: this.#attempt(slot),
      identity: this.#identity(slot),
      pages,
      epochs,
      chance: new Prng(sampling.seed + 1),
      temperature: sampling.temperature,
      maxTokens: Math.min(sampling.maxTokens, pages.length * this.#o.config.pageTokens - tokens + 1),
      token: output.lastToken,
      position: isAttached ? tokens - 1 : tokens,
      produced: 0,
      acknowledged: 0,
    };
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
    const name = GUARDS[guard] ?? 'tag';
    const { view } = this.machine;
    const counts =
      name === 'count'
        ? `Expected prefill to complete ${getSlot(view, slot, 'tokens')} tokens of slot ${slot}, got ${getSlot(view, slot, 'completed')}`
        : name === 'rejection'
          ? `Expected slot ${slot} to need at most ${view.shape.pages} pages, got ${getSlot(view, slot, 'pages')}`
          : name === 'lease'
            ? `Expected slot ${slot} to name no pages but those of its own lease, got a handle`
            : this.#words;
    this.#o.ports.toGateway({ kind: 'guard-hit', guard: name, slot, words: counts });
  }
}
