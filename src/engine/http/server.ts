/** The embedded engine over HTTP: one listener as a single node, or two as the prefill and the decode node of a pair. */
import type { Clock } from '../../base/clock.js';
import { faultsOf } from '../../handoff/faults.js';
import { standingHeaders } from '../../handoff/guards.js';
import { encode } from '../../tokenizer/bytes.js';
import type { EnginePort, EngineRun } from '../../handoff/engine-port.js';
import { type EngineConfig, hasFault } from '../config.js';
import { CLOSE_DESTROY_MS, CLOSE_GRACE_MS, HEALTH_MS_MAX } from './bounds.js';
import { EngineCounters } from './counters.js';
import type { Leg, LegRole } from './leg.js';
import { EngineNode } from './node.js';
import { type PairRole, Pairing } from './pairing.js';
import { Session } from './session.js';

export interface EngineServerOptions {
  readonly engine: EnginePort;
  readonly config: EngineConfig;
  readonly clock: Clock;
  /** Seconds that the engine took to start; it is told in `/server_info`. @default 0 */
  readonly startupS?: number;
  /** How long a leg waits for its partner. @default PARTNER_MS_MAX */
  readonly partnerMsMax?: number;
  /** How long a reader may take nothing of its stream. @default STALL_MS_MAX */
  readonly stallMsMax?: number;
}

export type EnginePorts =
  | { readonly kind: 'single'; readonly port: number }
  | { readonly kind: 'pair'; readonly prefillPort: number; readonly decodePort: number };

export interface EngineUrl {
  readonly role: LegRole;
  readonly url: string;
}

const HEALTH_TEXT = 'ping';

export class EngineServer {
  readonly counters: EngineCounters = new EngineCounters();
  readonly #o: EngineServerOptions;
  readonly #pairing: Pairing;
  readonly #nodes: EngineNode[] = [];
  #selfTest: Promise<string | null> | null = null;
  #closing: Promise<void> | null = null;

  constructor(options: EngineServerOptions) {
    this.#o = options;
    const { clock, config, partnerMsMax } = options;
    this.#pairing = new Pairing({
      clock,
      sharesRooms: hasFault(config.rules, 'room-collision'),
      ...(partnerMsMax === undefined ? {} : { partnerMsMax }),
      join: (prefill, decode, released) => this.#submit(prefill, decode, released),
      onFailed: () => this.counters.aborted++,
    });
  }

  /** Open HTTP requests, and legs that wait for their partner. */
  get open(): number {
    return this.#nodes.reduce((sum, node) => sum + node.open, 0);
  }

  get waitingLegs(): number {
    return this.#pairing.waiting;
  }

  /** Rooms whose request is in the engine. */
  get liveRooms(): number {
    return this.#pairing.live;
  }

  /** Rejects with CodedError `usage` when a port can't be had; then nothing listens. */
  async listen(host: string, ports: EnginePorts): Promise<readonly EngineUrl[]> {
    const wanted: readonly (readonly [LegRole, number])[] =
      ports.kind === 'single'
        ? [['single', ports.port]]
        : [
            ['prefill', ports.prefillPort],
            ['decode', ports.decodePort],
          ];
    const urls: EngineUrl[] = [];
    for (const [role, port] of wanted) {
      const node = this.#newNode(role);
      try {
        urls.push({ role, url: await node.listen(host, port) });
      } catch (thrown) {
        await this.close();
        throw thrown;
      }
      this.#nodes.push(node);
    }
    return urls;
  }

  /** Open requests finish or fail; the engine itself is closed by whoever started it. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#pairing.close();
    await Promise.all(this.#nodes.map((node) => node.close(CLOSE_GRACE_MS, CLOSE_DESTROY_MS)));
  }

  #newNode(role: LegRole): EngineNode {
    const { engine, config, clock, startupS, stallMsMax } = this.#o;
    return new EngineNode({
      role,
      config,
      clock,
      startupS: startupS ?? 0,
      standingHeaders: standingHeaders(config.rules.guards, faultsOf(config.rules.faults)),
      counters: this.counters,
      stats: () => engine.stats(),
      queues: () => ({
        bootstrap: role === 'single' ? 0 : this.#pairing.waitingOf(role),
        waiting: engine.stats().waiting ?? 0,
      }),
      take: (leg) => this.#take(role, leg),
      refused: (room, failure) => this.#pairing.failed(role as PairRole, room, failure),
      selfTest: () => this.#testOnce(),
      ...(stallMsMax === undefined ? {} : { stallMsMax }),
    });
  }

  #take(role: LegRole, leg: Leg): void {
    if (role === 'single') this.#submit(null, leg);
    else this.#pairing.arrive(role, leg);
  }

  #submit(prefill: Leg | null, output: Leg, onReleased?: () => void): void {
    const { engine, clock } = this.#o;
    const release = onReleased === undefined ? {} : { onReleased };
    const session = new Session({ engine, clock, counters: this.counters, prefill, output, ...release });
    session.open();
  }

  /** One token for all who ask meanwhile. */
  #testOnce(): Promise<string | null> {
    this.#selfTest ??= this.#test().finally(() => {
      this.#selfTest = null;
    });
    return this.#selfTest;
  }

  #test(): Promise<string | null> {
    const { engine, clock } = this.#o;
    return new Promise((resolve) => {
      let run: EngineRun | null = null;
      const timer = clock.after(HEALTH_MS_MAX, () => {
        run?.abort();
        resolve('the engine did not answer in time');
      });
      run = engine.submit(
        {
          tenant: 1,
          salt: '',
          prompt: encode(HEALTH_TEXT),
          maxTokens: 1,
          temperature: 0,
          seed: 0,
          room: null,
          handle: null,
        },
        {
          started() {},
          token() {},
          end: ({ outcome }) => {
            timer.cancel();
            resolve(outcome === 'finished' ? null : `the engine ended a self-test as ${outcome}`);
          },
          released() {},
        },
      );
    });
  }
}
