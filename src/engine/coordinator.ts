/**
 * The gateway's side of the protocol, and the engine as its callers see it: takes requests, gives each a slot and a room, runs the
 * gateway machine, and tells the caller what came of it. Who may go on, be retried or be ended is decided by `handoff/gateway.ts`.
 */
import { assert } from '../base/assert.js';
import { BoundedQueue } from '../base/bounded-queue.js';
import type { Clock, Timer } from '../base/clock.js';
import { effectiveLimit } from '../handoff/admission.js';
import type { GuardName } from '../handoff/guards.js';
import { isStreaming } from '../handoff/gateway.js';
import { GH, GS, slotAt } from '../handoff/layout.js';
import { E, EffectKind, EventKind, Result } from '../handoff/messages.js';
import type {
  EngineDescription,
  EngineEnd,
  EngineFinding,
  EnginePort,
  EngineRequest,
  EngineRun,
  EngineSink,
  EngineStats,
} from '../handoff/engine-port.js';
import { GUARD, guarded } from '../handoff/rules.js';
import { type EngineConfig, pagesFor } from './config.js';
import { drainWords, gatewayGuardWords, lengthGuardWords } from './guard-words.js';
import { failure, failureOf, lengthWords, unavailable } from './ends.js';
import { Machine, messageOf } from './machine.js';
import { newRequest, type Request, saltIndex, samplingOf } from './request.js';
import { Rooms } from './rooms.js';
import type { StatsBlock } from './stats.js';
import type { NodePorts, Payload, ToGateway } from './traffic.js';

export const ENGINE_MODEL = 'lab';
export const ENGINE_VERSION = '0.1.0';
/** Requests that wait for a slot; whoever comes then is told that there is no capacity. */
const WAITING_MAX = 1024;
/** One more attempt where a node went down before the first token. */
const RETRIES = 1;
/** Findings kept; the oldest go first. */
const FINDINGS_MAX = 256;
/** How often a node is asked again for what may have been lost. */
const TICK_MS = 1000;
/** Tokens between two acknowledgements to decode. */
const ACKNOWLEDGE_EVERY = 64;

export interface CoordinatorOptions {
  readonly config: EngineConfig;
  readonly ports: NodePorts;
  readonly stats: StatsBlock;
  readonly clock: Clock;
  readonly onFinding?: (finding: EngineFinding) => void;
}

export class Coordinator implements EnginePort {
  readonly machine: Machine;
  readonly #o: CoordinatorOptions;
  readonly #slots: (Request | undefined)[];
  readonly #waiting = new BoundedQueue<Request>(WAITING_MAX);
  readonly #findings: EngineFinding[] = [];
  readonly #rooms = new Rooms();
  #timer: Timer | null = null;
  #isClosing = false;
  /** No node will answer any more. */
  #isDown = false;
  #onIdle: (() => void)[] = [];

  constructor(options: CoordinatorOptions) {
    this.#o = options;
    const { config } = options;
    this.#slots = Array.from({ length: config.runningMax }, () => undefined);
    this.machine = new Machine('gateway', { slots: config.runningMax }, config.rules, 1, 1, (effect, body) =>
      this.#carryOut(effect, body),
    );
  }

  describe(): EngineDescription {
    const { context, prefillPool, decodePool, pageTokens, runningMax } = this.#o.config;
    return {
      model: ENGINE_MODEL,
      version: ENGINE_VERSION,
      context,
      prefillPool,
      decodePool,
      pageTokens,
      runningMax,
    };
  }

  stats(): EngineStats {
    const { config, stats } = this.#o;
    return {
      prefillPages: stats.pages('prefill', config.prefillPool / config.pageTokens),
      decodePages: stats.pages('decode', config.decodePool / config.pageTokens),
      running: this.#slots.filter((one) => one !== undefined).length,
      waiting: this.#waiting.size,
      pagesVerified: stats.get('pagesVerified'),
      tagsChecked: stats.get('tagsChecked'),
      landingsRefused: stats.get('landingsRefused') + stats.get('landingsRefusedBefore'),
      guardHits: stats.guardHits(),
      findings: this.#findings,
      ...stats.sweepAndSealed(),
    };
  }

  submit(request: EngineRequest, sink: EngineSink): EngineRun {
    const { context, decodePool } = this.#o.config;
    const tokens = request.prompt.length;
    // Output is clamped, never refused, as engines do; what the client was promised is the gateway's business.
    const maxTokens = Math.max(1, Math.min(request.maxTokens, context - tokens, decodePool - tokens + 1));
    const one = newRequest(request, sink, maxTokens, this.#rooms.take(request.room));
    const refusal = this.#refusalAtTheDoor(tokens);
    if (refusal !== null) this.#endUnstarted(one, refusal);
    else if (!this.#start(one) && !this.#waiting.push(one)) {
      this.#endUnstarted(
        one,
        failure('no_capacity', 'The engine is full. Try again later.', 'no slot and no place to wait'),
      );
    }
    return { abort: () => this.#abort(one), acknowledge: (taken) => this.#acknowledge(one, taken) };
  }

  #refusalAtTheDoor(tokens: number): EngineEnd | null {
    const { context } = this.#o.config;
    if (this.#isClosing) return failure('shutting_down', 'The server is shutting down.', 'closing');
    if (this.#isDown) return unavailable();
    if (tokens === 0)
      return failure('invalid_request', 'Expected a prompt of at least one token, got none.', 'empty prompt');
    if (tokens < context) return null;
    const words = `Expected a prompt of at most ${context - 1} tokens (set by the advertised context), got ${tokens} tokens.`;
    return { ...failure('context_length_exceeded', words, words), outcome: 'refused' };
  }

  /** Ends and releases on the next turn of the loop, so that the caller has its run first. */
  #endUnstarted(one: Request, end: EngineEnd): void {
    one.isEnded = true;
    this.#rooms.leave(one.room);
    this.#o.clock.soon(() => {
      one.sink.end(end);
      one.sink.released();
    });
  }

  #start(one: Request): boolean {
    const slot = this.#slots.indexOf(undefined);
    if (slot < 0) return false;
    one.slot = slot;
    this.#slots[slot] = one;
    const { config } = this.#o;
    const tokens = one.request.prompt.length;
    const promptPages = pagesFor(tokens, config.pageTokens);
    const event = this.machine.event(EventKind.submit, slot, 0);
    event[E.from] = RETRIES;
    event[E.room] = one.room.index;
    event[E.tokens] = tokens;
    event[E.promptPages] = promptPages;
    event[E.pages] = Math.max(promptPages, pagesFor(tokens + one.maxTokens - 1, config.pageTokens));
    event[E.tenant] = one.request.tenant;
    event[E.salt] = saltIndex(one.request.salt);
    event[E.code] = effectiveLimit(config)?.tokens ?? 0;
    this.machine.step(event);
    this.#keepTime();
    return true;
  }

  #abort(one: Request): void {
    if (one.isEnded || this.#isDown) return;
    if (one.slot < 0) {
      this.#waiting.remove(one);
      return this.#endUnstarted(one, {
        ...failure('client_closed_request', 'The request was aborted.', 'aborted'),
        outcome: 'aborted',
      });
    }
    this.machine.raise(EventKind.clientGone, one.slot, this.#attempt(one.slot));
  }

  #acknowledge(one: Request, taken: number): void {
    if (one.isEnded || one.slot < 0 || taken - one.acknowledged < ACKNOWLEDGE_EVERY) return;
    one.acknowledged = taken;
    const attempt = this.#attempt(one.slot);
    this.#o.ports.toDecode({ kind: 'acknowledge', slot: one.slot, attempt, tokens: taken });
  }

  #attempt(slot: number): number {
    return this.machine.view.cells[slotAt(this.machine.view, slot) + GS.attempt] ?? 0;
  }

  receive(message: ToGateway): void {
    if (this.#isDown) return;
    switch (message.kind) {
      case 'token':
        return this.#onToken(message.slot, message.attempt, message.id);
      case 'guard-hit':
        return this.#onGuardHit(message.slot, message.guard, message.words);
      case 'sweep':
        return this.#find('sweep', message.words);
      case 'alarm':
        return this.#find('drain', drainWords(message.slot, this.#o.config.drainAlarmMs));
      case 'protocol':
        return this.#onProtocol(message.event, message.payload);
    }
  }

  #onProtocol(event: Int32Array, payload: Payload | null): void {
    const one = this.#slots[event[E.slot] ?? 0];
    if (payload?.kind === 'output-end' && one !== undefined && event[E.attempt] === this.#attempt(one.slot)) {
      one.finishReason = payload.finishReason;
      one.decodedTokens = payload.completionTokens;
    }
    if (payload?.kind === 'cached' && one !== undefined && event[E.attempt] === this.#attempt(one.slot)) {
      one.cachedTokens = payload.tokens;
    }
    this.machine.step(event);
  }

  #onToken(slot: number, attempt: number, id: number): void {
    const one = this.#slots[slot];
    if (one === undefined || one.isEnded || !isStreaming(this.machine.view, slot, attempt)) return;
    one.completionTokens++;
    one.sink.token(id);
  }

  #onGuardHit(slot: number, guard: GuardName, words: string): void {
    const one = this.#slots[slot];
    if (one !== undefined && one.guard === null) {
      one.guard = guard;
      one.guardWords = words;
    }
    this.#find(guard, words);
  }

  #find(guard: EngineFinding['guard'], words: string): void {
    const finding: EngineFinding = { guard, words, atMs: this.#o.clock.wallMs() };
    this.#findings.push(finding);
    if (this.#findings.length > FINDINGS_MAX) this.#findings.shift();
    this.#o.onFinding?.(finding);
  }

  /** A node lives again under a new incarnation. */
  peerDown(node: 'prefill' | 'decode', incarnation: number): void {
    const event = this.machine.event(node === 'prefill' ? EventKind.prefillDown : EventKind.decodeDown, 0, 0);
    event[E.from] = incarnation;
    this.machine.step(event);
  }

  #carryOut(effect: number, body: Int32Array): void {
    const slot = body[E.slot] ?? 0;
    const one = this.#slots[slot];
    switch (effect) {
      case EffectKind.sendPrefill:
        return this.#o.ports.toPrefill({
          kind: 'protocol',
          event: messageOf(body),
          payload: this.#promptFor(body, one),
        });
      case EffectKind.sendDecode:
        return this.#o.ports.toDecode({
          kind: 'protocol',
          event: messageOf(body),
          payload: this.#outputFor(body, one),
        });
      case EffectKind.guardHit:
        this.#o.stats.addGuardHit(body[E.code] ?? 0);
        return this.#onGuardHit(slot, effectGuard(body), this.#guardWords(body, slot));
      case EffectKind.clientStarted:
        assert(one !== undefined, 'a slot that starts has a request');
        one.promptTokens = body[E.tokens] ?? 0;
        one.prefillTokens = body[E.code] ?? 0;
        return one.sink.started({
          promptTokens: one.promptTokens,
          prefillTokens: one.prefillTokens,
          cachedTokens: one.cachedTokens,
        });
      case EffectKind.clientEnd:
        assert(one !== undefined && !one.isEnded, 'a request ends once');
        one.isEnded = true;
        return one.sink.end(this.#endOf(one, body[E.code] ?? 0));
      case EffectKind.slotFree:
        return this.#free(slot);
    }
  }

  #guardWords(body: Int32Array, slot: number): string {
    const tokens = this.machine.view.cells[slotAt(this.machine.view, slot) + GS.tokens] ?? 0;
    return gatewayGuardWords(effectGuard(body), slot, tokens, effectiveLimit(this.#o.config)?.tokens ?? 0);
  }

  #promptFor(body: Int32Array, one: Request | undefined): Payload | null {
    if (body[E.kind] !== EventKind.start || one === undefined) return null;
    return { kind: 'prompt', prompt: one.request.prompt, salt: one.request.salt, sampling: samplingOf(one) };
  }

  #outputFor(body: Int32Array, one: Request | undefined): Payload | null {
    if (body[E.kind] !== EventKind.start || one === undefined) return null;
    const { prompt, salt, handle } = one.request;
    return { kind: 'output', prompt, salt, sampling: samplingOf(one), handle };
  }

  #decodeIncarnation(): number {
    const { cells, at } = this.machine.view;
    return cells[at + GH.decodeIncarnation] ?? 0;
  }

  /** An answer whose length decode does not confirm is not whole, whatever else it is. */
  #confirmed(one: Request, result: number): number {
    const isConfirmed = one.decodedTokens === one.completionTokens || !guarded(this.machine.view, GUARD.usage);
    if (result !== Result.finished || isConfirmed) return result;
    this.#o.stats.addGuardHit(GUARD.usage);
    this.#onGuardHit(one.slot, 'usage', lengthGuardWords(one.slot, one.decodedTokens, one.completionTokens));
    return Result.badUsage;
  }

  #endOf(one: Request, said: number): EngineEnd {
    const result = this.#confirmed(one, said);
    const counts = {
      promptTokens: one.promptTokens,
      prefillTokens: one.prefillTokens,
      completionTokens: one.completionTokens,
      cachedTokens: one.cachedTokens,
      guard: one.guard,
      handle: `${one.slot}.${this.#attempt(one.slot)}.${this.#decodeIncarnation()}`,
    };
    if (result === Result.finished) {
      return { ...counts, outcome: 'finished', finishReason: one.finishReason ?? 'length', error: null };
    }
    return { ...failureOf(result, lengthWords(one.request.prompt.length, this.#o.config), one.guardWords), ...counts };
  }

  #free(slot: number): void {
    const one = this.#slots[slot];
    this.#slots[slot] = undefined;
    if (one !== undefined) this.#rooms.leave(one.room);
    // Who waits has the slot before the caller hears that it is free: a request submitted from there would take it.
    const next = this.#waiting.shift();
    if (next !== undefined) this.#start(next);
    one?.sink.released();
    if (this.#slots.every((other) => other === undefined)) this.#idle();
  }

  #idle(): void {
    this.machine.assertHolds();
    this.#timer?.cancel();
    this.#timer = null;
    const waiting = this.#onIdle;
    this.#onIdle = [];
    for (const resolve of waiting) resolve();
  }

  /** While something is open, asks again once in a while: messages between threads do not get lost, nodes do. */
  #keepTime(): void {
    if (this.#timer !== null) return;
    this.#timer = this.#o.clock.after(TICK_MS, () => {
      this.#timer = null;
      for (const [slot, one] of this.#slots.entries()) {
        if (one !== undefined) this.machine.raise(EventKind.timer, slot, this.#attempt(slot));
      }
      if (this.#slots.some((one) => one !== undefined)) this.#keepTime();
    });
  }

  /** The nodes are gone for good: whatever is open ends now, and nothing is taken any more. */
  giveUp(): void {
    this.#isDown = true;
    this.#timer?.cancel();
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      this.#endUnstarted(next, unavailable());
    }
    for (const [slot, one] of this.#slots.entries()) {
      if (one === undefined) continue;
      this.#slots[slot] = undefined;
      if (!one.isEnded) {
        one.isEnded = true;
        one.sink.end(unavailable());
      }
      one.sink.released();
    }
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  /** Ends what is open; resolves when both nodes hold nothing any more. */
  close(): Promise<void> {
    this.#isClosing = true;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      this.#endUnstarted(next, failure('shutting_down', 'The server is shutting down.', 'closing'));
    }
    for (const one of this.#slots) if (one !== undefined) this.#abort(one);
    if (this.#slots.every((one) => one === undefined)) {
      this.#timer?.cancel();
      return Promise.resolve();
    }
    return new Promise((resolve) => this.#onIdle.push(resolve));
  }
}

function effectGuard(body: Int32Array): GuardName {
  return (body[E.code] ?? 0) === 1 ? 'admission' : 'usage';
}
