import { CodedError } from '../base/errors.js';
import { type GuardName, guardBit } from '../handoff/guards.js';
import type { UpstreamRequest } from '../upstream/upstream.js';
import { childTraceparent, freshId, readHeader } from '../wire/index.js';
import type { LadderContext } from './context.js';
import { type Engine, engineOut } from './engine.js';
import { affinityKey, type Candidate, chooseEngine } from './engines.js';
import type { Exchange } from './exchange.js';
import { internalFinding } from './findings.js';
import { emptyPrompt, judgeLength, lengthError, type LengthVerdict, widestRefusal } from './length.js';
import type { ParsedRequest } from './policy.js';
import { Relay } from './relay.js';
import type { Settling } from './settlement.js';
import { Tally } from './tally.js';
import type { TenantAccount, Ticket } from './waiting.js';

/** Tokens of output where nothing bounds them: no `max_tokens`, the guard `admission` off, and a context that is full. */
const UNBOUNDED_OUTPUT_TOKENS = 16;

/** One engine as far as this request is concerned. */
interface Place extends Candidate {
  readonly engine: Engine;
  readonly tally: Tally;
  readonly verdict: Exclude<LengthVerdict, { kind: 'refused' }>;
}

/**
 * One request from its policy to its dispatch: counted, admitted to one of the engines that serve its model, and waiting there for
 * its turn. As long as it has not left it moves on when its engine goes out of service; once it has left, nothing is sent again.
 */
export class Placing {
  readonly #context: LadderContext;
  readonly #exchange: Exchange;
  readonly #account: TenantAccount;
  readonly #parsed: ParsedRequest;
  readonly #settling: Settling;
  /** By what counts: engines that count alike share one. A CodedError: it can't be counted there. */
  readonly #tallies = new Map<string | Engine, Tally | CodedError>();
  #key: Buffer | null = null;
  /** Milliseconds on the clock when it first waited for a turn. */
  #waitingSinceMs: number | null = null;
  #wasAdmitted = false;

  constructor(
    context: LadderContext,
    exchange: Exchange,
    account: TenantAccount,
    parsed: ParsedRequest,
    settling: Settling,
  ) {
    this.#context = context;
    this.#exchange = exchange;
    this.#account = account;
    this.#parsed = parsed;
    this.#settling = settling;
  }

  /** Comes back when it waits, has left or was refused. Rejects with what it is to be refused with. */
  async place(): Promise<void> {
    for (;;) {
      const place = this.#choose();
      if (place instanceof CodedError) {
        // Returned, not thrown: a throw costs 20 us, and a refusal must cost less than an answer.
        this.#exchange.refuse(place);
        return;
      }
      const { verdict, tally } = place;
      if (verdict.kind === 'admitted') {
        this.#admit(place, verdict);
        return;
      }
      await this.#makeExact(tally);
      if (this.#exchange.settled) return;
    }
  }

  #on(guard: GuardName): boolean {
    return (this.#context.guards & guardBit(guard)) !== 0;
  }

  /** The engine it goes to, or is to be counted exactly for; or why there is none. */
  #choose(): Place | CodedError {
    const { engines } = this.#context;
    const ofModel = engines.filter((engine) => engine.serves(this.#parsed.model));
    // Without the guard `policy` a request may name a model that nobody has.
    const serving = (ofModel.length > 0 ? ofModel : engines).filter((engine) => engine.isServing);
    if (serving.length === 0) return engineOut();
    const places: Place[] = [];
    const refusals: Extract<LengthVerdict, { kind: 'refused' }>[] = [];
    let uncounted: CodedError | null = null;
    for (const engine of serving) {
      const tally = this.#tallyOf(engine);
      if (tally instanceof CodedError) {
        uncounted = tally;
        continue;
      }
      if (tally.isExact && tally.most < 1) return emptyPrompt(this.#parsed);
      const verdict = this.#judge(engine, tally);
      if (verdict.kind === 'refused') refusals.push(verdict);
      else places.push(this.#placeAt(engine, tally, verdict));
    }
    if (places.length > 0) return chooseEngine(places, () => this.#affinityKey());
    return refusals.length > 0 ? this.#refusal(widestRefusal(refusals)) : uncounted!;
  }

  #refusal(refused: Extract<LengthVerdict, { kind: 'refused' }>): CodedError {
    const { metrics } = this.#context;
    metrics.guardHit('admission');
    if (refused.why.kind !== 'unknown') metrics.decided(refused.tier);
    this.#settling.counted(refused.counted);
    return lengthError(refused, this.#parsed);
  }

  #tallyOf(engine: Engine): Tally | CodedError {
    const by = engine.upstream.describe().counting ?? engine;
    let tally = this.#tallies.get(by);
    if (tally === undefined) {
      try {
        tally = new Tally(engine.upstream.count(this.#parsed.prompt));
      } catch (thrown) {
        if (!(thrown instanceof CodedError)) throw thrown;
        tally = thrown;
      }
      this.#tallies.set(by, tally);
    }
    return tally;
  }

  async #makeExact(tally: Tally): Promise<void> {
    try {
      await tally.makeExact();
    } catch (thrown) {
      if (!(thrown instanceof CodedError)) throw thrown;
      for (const [by, each] of this.#tallies) if (each === tally) this.#tallies.set(by, thrown);
    }
  }

  #judge(engine: Engine, tally: Tally): LengthVerdict {
    const capacity = engine.upstream.capacity();
    const { maxTokens } = this.#parsed;
    if (this.#on('admission')) return judgeLength(tally, maxTokens, capacity);
    if (!tally.isExact) return { kind: 'undecided' };
    const left = (capacity.context ?? 0) - tally.most;
    const granted = maxTokens ?? (left >= 1 ? left : UNBOUNDED_OUTPUT_TOKENS);
    return { kind: 'admitted', maxTokens: granted, isClamped: false, tier: 'exact' };
  }

  #placeAt(engine: Engine, tally: Tally, verdict: Place['verdict']): Place {
    const wanted = verdict.kind === 'admitted' ? verdict.maxTokens : (this.#parsed.maxTokens ?? 1);
    return {
      engine,
      tally,
      verdict,
      name: engine.name,
      loadTokens: engine.room.loadTokens,
      poolTokens: engine.upstream.capacity().decodePool,
      wouldWait: engine.room.wouldWait(this.#account, this.#tokensOf(tally, wanted)),
    };
  }

  /** The last token's KV is never stored. Without admission a request may exceed the pool, and the engine is to see it. */
  #tokensOf(tally: Tally, maxTokens: number): number {
    return this.#on('admission') ? tally.most + maxTokens - 1 : 0;
  }

  #affinityKey(): Buffer {
    this.#key ??= affinityKey(this.#account.tenant.salt, this.#parsed.prompt);
    return this.#key;
  }

  #admit({ engine, tally }: Place, verdict: Extract<LengthVerdict, { kind: 'admitted' }>): void {
    const { metrics, clock } = this.#context;
    const { maxTokens, isClamped, tier } = verdict;
    if (!this.#wasAdmitted) {
      const over = this.#takeOfLimits(tally.most + maxTokens);
      if (over !== null) {
        this.#exchange.refuse(over);
        return;
      }
      this.#wasAdmitted = true;
      metrics.admitted(isClamped);
      metrics.decided(tier);
    }
    this.#settling.admitted(engine.name, tally, maxTokens, engine.upstream.capacity());
    this.#waitingSinceMs ??= clock.nowMs();
    const exchange = this.#exchange;
    const ticket = engine.room.enter(
      this.#account,
      this.#tokensOf(tally, maxTokens),
      {
        granted: (granted) => this.#dispatch(granted, engine, tally, maxTokens),
        refused: (error) => {
          exchange.onInterrupt = null;
          exchange.refuse(error);
        },
        displaced: () => this.#placeAgain(),
      },
      clock.nowMs() - this.#waitingSinceMs,
    );
    if (ticket.phase !== 'waiting') return;
    exchange.onInterrupt = (why) => {
      ticket.cancel();
      if (why !== 'gone') exchange.refuse(why);
    };
    engine.watchHealth();
  }

  /** The tenant's own limits come before anything shared. What it takes and does not use goes back when it is settled. */
  #takeOfLimits(tokens: number): CodedError | null {
    const meter = this.#context.meters.get(this.#account.tenant)!;
    const over = meter.admit(this.#account, tokens);
    if (over === null) this.#settling.onUsed = (used) => meter.giveBack(tokens - Math.min(tokens, used));
    return over;
  }

  /** It has not left, and its engine takes no requests any more. */
  #placeAgain(): void {
    this.#exchange.onInterrupt = null;
    this.place().catch((thrown: unknown) => {
      if (!(thrown instanceof CodedError)) this.#context.findings.raise(internalFinding(thrown));
      this.#exchange.refuse(thrown);
    });
  }

  #dispatch(ticket: Ticket, engine: Engine, tally: Tally, maxTokens: number): void {
    if (!engine.isServing) {
      ticket.ended();
      ticket.released();
      this.#placeAgain();
      return;
    }
    this.#exchange.holder = engine;
    engine.watch.passes(this.#parsed.prompt.kind);
    const relay = new Relay(engine.relay, this.#exchange, this.#account, this.#parsed, tally, this.#settling);
    relay.dispatch(ticket, engine.upstream, this.#request(tally.most, maxTokens));
  }

  #request(promptTokens: number, maxTokens: number): UpstreamRequest {
    const { prompt, temperature, seed, params, engineFields, stream } = this.#parsed;
    const { tenant } = this.#account;
    return {
      id: freshId(),
      traceparent: childTraceparent(readHeader(this.#exchange.request, 'traceparent')),
      prompt,
      promptTokens,
      maxTokens,
      temperature,
      seed: seed ?? Number.parseInt(this.#exchange.id.slice(0, 8), 16),
      tenant: tenant.number,
      salt: this.#on('salt') ? tenant.salt : '',
      params,
      engineFields,
      streamed: stream,
    };
  }
}
