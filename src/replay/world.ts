/**
 * The stage of a replay: the whole engine in one thread, and the real gateway with two tenants in front of it, over HTTP. The
 * engine moves only when the script says so, on a clock that moves only when the engine rests, so that an order of events is told
 * and not timed, and the same seed gives the same replay.
 */
import { assert } from '../base/assert.js';
import { type Clock, ManualClock, SystemClock } from '../base/clock.js';
import { type EngineOptions, engineConfig } from '../engine/config.js';
import { InlineEngine } from '../engine/inline-engine.js';
import type { GatewayFinding } from '../gateway/findings.js';
import { Gateway, type GatewayOptions } from '../gateway/server.js';
import { keyDigest, TenantRegistry } from '../gateway/tenants.js';
import { DecodePhase } from '../handoff/decode.js';
import type { FaultName } from '../handoff/faults.js';
import { type GuardBits, type GuardName, GUARDS } from '../handoff/guards.js';
import { getSlot } from '../handoff/layout.js';
import { Call, type CallOptions, type TenantName, TENANTS } from './call.js';
import { type EngineDoor, watchedDoor } from './door.js';
import type { EngineRequest } from './engine-types.js';
import { PageWatch } from './page-watch.js';
import { Prompts } from './prompts.js';

/** Puts an engine behind the contract of all engines; the caller wires it, as it does for serving. */
export type UpstreamMaker = (engine: EngineDoor, clock: Clock) => GatewayOptions['upstreams'][number];

export interface WorldOptions {
  /** Null: no fault; what a quiet engine answers. */
  readonly fault: FaultName | null;
  readonly guards: GuardBits;
  readonly seed: number;
  readonly sizes: EngineOptions;
  readonly upstream: UpstreamMaker;
}

/** Small, so that a replay takes a second: a request of each tenant fills a good part of a pool. */
const SIZES: EngineOptions = { context: 2048, prefillPool: 2048, decodePool: 3072, runningMax: 8 };
/** How far the clock goes at a time while the engine rests. */
const REST_STEP_MS = 10;
/** An engine that rests for so long within one `run` has forgotten what is open. Many times every delay in it but its alarms. */
export const REST_MS_MAX = 5_000;
/** Turns of one `run`: many times what any request here takes. */
const TURNS_MAX = 200_000;
/** Milliseconds of real time that the network may take for what happens within one machine. */
const NETWORK_MS_MAX = 20_000;

export class World {
  readonly engine: InlineEngine;
  readonly gateway: Gateway;
  readonly prompts: Prompts;
  readonly pages: PageWatch;
  readonly guards: GuardBits;
  readonly gatewayFindings: GatewayFinding[] = [];
  /** What happened, in sentences. */
  readonly story: string[] = [];
  readonly calls: Call[] = [];
  readonly #clock = new ManualClock();
  readonly #real = new SystemClock();
  readonly #keys: Readonly<Record<TenantName, string>>;
  #port = 0;

  private constructor(options: WorldOptions) {
    const { fault, guards, seed } = options;
    this.guards = guards;
    this.prompts = new Prompts(seed);
    this.#keys = { acme: `acme-key-of-replay-${seed}`, globex: `globex-key-of-replay-${seed}` };
    const faults = fault === null ? [] : [fault];
    this.engine = new InlineEngine(engineConfig({ ...SIZES, ...options.sizes, faults, guards, seed }), this.#clock);
    this.pages = new PageWatch(this.engine, this.calls);
    const door = watchedDoor(this.engine.coordinator, (request) => this.#callOf(request));
    this.gateway = new Gateway({
      upstreams: [options.upstream(door, this.#clock)],
      tenants: new TenantRegistry(
        TENANTS.map((name) => ({ name, keys: [{ sha256: keyDigest(this.#keys[name]) }] })),
        `salts of replay ${seed}`,
      ),
      clock: this.#clock,
      findings: { raise: (finding) => this.gatewayFindings.push(finding) },
      guards,
      faults,
      stats: () => this.engine.coordinator.stats(),
      temperatureDefault: 0,
      // A script says which requests there are; the gateway sends none of its own.
      sentinels: false,
      // Clients of the incidents leave in the middle of a transfer.
      shield: { requestsMax: 0 },
    });
  }

  static async open(options: WorldOptions): Promise<World> {
    const world = new World(options);
    world.#port = (await world.gateway.listen({ host: '127.0.0.1', port: 0 })).port;
    return world;
  }

  tell(sentence: string): void {
    this.story.push(sentence);
  }

  /** Sends a request, and comes back when the engine has it, or has it wait, or the gateway has answered. */
  async send(tenant: TenantName, prompt: string, options: CallOptions): Promise<Call> {
    const waiting = this.gateway.room.waiting;
    const call = new Call(tenant, prompt, { port: this.#port, key: this.#keys[tenant] }, options);
    this.calls.push(call);
    const isThere = (): boolean => call.isSubmitted || call.answer !== null || this.gateway.room.waiting > waiting;
    await this.#network(isThere, 'a request reaches the gateway');
    return call;
  }

  /** The client of `call` closes its connection, and the gateway has seen it. */
  async leave(call: Call): Promise<void> {
    const { open } = this.gateway;
    call.leave();
    await this.#network(() => this.gateway.open < open, 'the gateway sees a client leave');
  }

  /**
   * Turns of the engine until `done`; time passes only while it rests. False: it has rested for REST_MS_MAX and `done` does
   * not hold.
   */
  run(done: () => boolean): boolean {
    let restedMs = 0;
    for (let turns = 0; turns < TURNS_MAX; turns++) {
      if (done()) return true;
      // Time passes only here, so all that passes is rest: asking again once a second, as the engine does, is no progress.
      if (!this.engine.turn()) {
        if (restedMs >= REST_MS_MAX) return done();
        restedMs += REST_STEP_MS;
        this.#clock.advance(REST_STEP_MS);
      }
      this.pages.look();
    }
    assert(false, 'a replay comes to rest');
  }

  /** Turns until the engine has ended `call`, then its answer. False: it hangs. */
  async finish(call: Call): Promise<boolean> {
    if (call.answer !== null) return true;
    if (!this.run(() => call.end !== null)) return false;
    await this.#network(() => call.answer !== null || call.hasLeft, 'an answer reaches its client');
    return true;
  }

  /** Turns until nothing of `call` is left in the engine. */
  settle(call: Call): boolean {
    return this.run(() => call.isReleased);
  }

  /** In which phase decode has the request; `idle` while it does not know it. */
  decodePhase(call: Call): number {
    if (call.slot === null) return DecodePhase.idle;
    const { view } = this.engine.decode.machine;
    return getSlot(view, call.slot, 'attempt') === 0 ? DecodePhase.idle : getSlot(view, call.slot, 'phase');
  }

  isOn(guard: GuardName): boolean {
    return ((this.guards >> GUARDS.indexOf(guard)) & 1) === 1;
  }

  async close(): Promise<void> {
    for (const call of this.calls) if (call.answer === null) call.leave();
    let isClosed = false;
    const closing = this.gateway.close().then(() => {
      isClosed = true;
    });
    await this.#network(() => isClosed, 'the gateway closes', REST_STEP_MS);
    await closing;
  }

  /** Lets the network move, and nothing of the engine, until `done`. */
  async #network(done: () => boolean, words: string, stepMs = 0): Promise<void> {
    const endMs = this.#real.nowMs() + NETWORK_MS_MAX;
    while (!done()) {
      assert(this.#real.nowMs() < endMs, `the network took longer than ${NETWORK_MS_MAX} ms until ${words}`);
      await new Promise<void>((resolve) => this.#real.soon(resolve));
      this.#clock.advance(stepMs);
    }
  }

  #callOf(request: EngineRequest): Call | null {
    const tenant = TENANTS[request.tenant - 1];
    const prompt = String.fromCharCode(...request.prompt);
    return this.calls.find((call) => !call.isSubmitted && call.tenant === tenant && call.prompt === prompt) ?? null;
  }
}
