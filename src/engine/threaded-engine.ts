/**
 * The engine as it is served: prefill and decode in a worker thread each, with a pool each, and a supervisor that starts them,
 * passes messages to the coordinator, and brings a node that ends back under a new incarnation.
 */
import { MessageChannel, Worker } from 'node:worker_threads';
import type { Clock } from '../base/clock.js';
import { CodedError } from '../base/errors.js';
import type { SharedMemory } from '../base/shared-memory.js';
import { RegistrationTable } from '../kv/registration.js';
import type {
  EngineDescription,
  EngineFinding,
  EnginePort,
  EngineRequest,
  EngineRun,
  EngineSink,
  EngineStats,
} from '../handoff/engine-port.js';
import type { TraceWriter } from '../handoff/trace.js';
import type { EngineConfig } from './config.js';
import { Coordinator } from './coordinator.js';
import { memoryFor, planFor, REGISTRATION_ENTRIES, type Role } from './parts.js';
import { StatsBlock } from './stats.js';
import { TraceJoin } from './tracing.js';
import type { DecodeTarget, ToDecode, ToPrefill } from './traffic.js';
import type { FromSupervisor, ToSupervisor, WorkerInit } from './worker-host.js';

/** Loading the weights takes some 200 ms; a node that is not there after this is not coming. */
const START_MS_MAX = 20_000;
/** A node that ends so often within so short a time does not stay up: it is not brought back again. */
const RESTARTS_MAX = 60;
const RESTART_WINDOW_MS = 20_000;
/** Open requests have this long to end when the engine closes; with the gateway's own bounds, below 2 s together. */
const CLOSE_MS_MAX = 300;

interface NodeHandle {
  worker: Worker;
  incarnation: number;
  isReady: boolean;
}

export interface ThreadedEngineOptions {
  readonly config: EngineConfig;
  readonly clock: Clock;
  readonly onFinding?: (finding: EngineFinding) => void;
  /** Gets a record for every event of the three machines, from their first to the end of `close`. */
  readonly trace?: TraceWriter;
}

export class ThreadedEngine implements EnginePort {
  readonly config: EngineConfig;
  readonly #clock: Clock;
  readonly #coordinator: Coordinator;
  readonly #stats = new StatsBlock();
  readonly #prefillMemory: SharedMemory;
  #decodeMemory: SharedMemory;
  #target: DecodeTarget;
  readonly #nodes: Record<Role, NodeHandle | null> = { prefill: null, decode: null };
  readonly #starting: Record<Role, ((error: Error | null) => void) | null> = { prefill: null, decode: null };
  /** Messages for a node that is being started again. */
  readonly #pending: { prefill: ToPrefill[]; decode: ToDecode[] } = { prefill: [], decode: [] };
  /** When the last restarts were, oldest first; at most RESTARTS_MAX. */
  readonly #restartsAtMs: number[] = [];
  readonly #trace: TraceJoin | null;
  #hasStarted = false;
  #isClosed = false;

  private constructor(options: ThreadedEngineOptions) {
    this.config = options.config;
    this.#clock = options.clock;
    this.#prefillMemory = memoryFor(options.config, 'prefill');
    this.#decodeMemory = memoryFor(options.config, 'decode');
    this.#target = this.#newTarget(1);
    this.#coordinator = new Coordinator({
      config: options.config,
      clock: options.clock,
      stats: this.#stats,
      ports: {
        toGateway: () => {},
        toPrefill: (message) => this.#send('prefill', message),
        toDecode: (message) => this.#send('decode', message),
      },
      ...(options.onFinding === undefined ? {} : { onFinding: options.onFinding }),
    });
    this.#trace = options.trace === undefined ? null : new TraceJoin(options.trace);
    this.#trace?.attach(this.#coordinator.machine);
  }

  /** Resolves when both nodes have their weights and pools. */
  static async start(options: ThreadedEngineOptions): Promise<ThreadedEngine> {
    const engine = new ThreadedEngine(options);
    const channel = new MessageChannel();
    try {
      await Promise.all([
        engine.#startNode('prefill', 1, 1, channel.port1),
        engine.#startNode('decode', 1, 1, channel.port2),
      ]);
    } catch (error) {
      await engine.close();
      throw error;
    }
    engine.#hasStarted = true;
    return engine;
  }

  #newTarget(incarnation: number): DecodeTarget {
    const plan = planFor(this.config, 'decode');
    return {
      incarnation,
      buffer: this.#decodeMemory.buffer,
      base: plan.poolBase,
      pages: plan.pages,
      registrations: new RegistrationTable(REGISTRATION_ENTRIES).buffer,
    };
  }

  #startNode(
    role: Role,
    incarnation: number,
    peerIncarnation: number,
    peerPort: MessageChannel['port1'],
  ): Promise<void> {
    const init: WorkerInit = {
      config: this.config,
      incarnation,
      peerIncarnation,
      memory: role === 'prefill' ? this.#prefillMemory : this.#decodeMemory,
      target: this.#target,
      stats: this.#stats.buffer,
      peerPort,
      trace: this.#trace?.share ?? null,
    };
    this.#trace?.begins(role);
    const worker = new Worker(new URL(`./${role}-worker.js`, import.meta.url), {
      workerData: init,
      transferList: [peerPort],
      name: role,
    });
    const node: NodeHandle = { worker, incarnation, isReady: false };
    this.#nodes[role] = node;
    return new Promise((resolve, reject) => {
      const timer = this.#clock.after(START_MS_MAX, () =>
        settle(
          new CodedError('engine_unavailable', `Expected ${role} to be ready within ${START_MS_MAX} ms, got nothing.`),
        ),
      );
      const settle = (error: Error | null): void => {
        timer.cancel();
        this.#starting[role] = null;
        if (error === null) resolve();
        else reject(error);
      };
      this.#starting[role] = settle;
      worker.on('message', (letter: ToSupervisor) => {
        if (letter.kind === 'trace') return this.#trace?.take(role, letter.letter);
        if (letter.kind === 'to-gateway') return this.#coordinator.receive(letter.message);
        node.isReady = true;
        this.#flush(role);
        settle(null);
      });
      worker.on('error', (error) => this.#onNodeError(role, error));
      worker.on('exit', () => this.#onNodeExit(role, node));
    });
  }

  #onNodeError(role: Role, error: unknown): void {
    const words = error instanceof Error ? error.message : 'no reason given';
    this.#starting[role]?.(new CodedError('engine_unavailable', `Expected ${role} to run, got: ${words}.`));
  }

  #send(role: Role, message: ToPrefill | ToDecode): void {
    const node = this.#nodes[role];
    if (node?.isReady)
      node.worker.postMessage({ kind: 'message', message } satisfies FromSupervisor<ToPrefill | ToDecode>);
    else (this.#pending[role] as (ToPrefill | ToDecode)[]).push(message);
  }

  #flush(role: Role): void {
    const pending = this.#pending[role].splice(0);
    for (const message of pending) this.#send(role, message);
  }

  /** A node ended that nobody asked to. It comes back with an empty pool and a new incarnation; the other node and the coordinator learn of it. */
  #onNodeExit(role: Role, node: NodeHandle): void {
    if (this.#nodes[role] === node) this.#trace?.ended(role);
    if (this.#isClosed || this.#nodes[role] !== node) return;
    this.#starting[role]?.(new CodedError('engine_unavailable', `Expected ${role} to start, got its end.`));
    this.#nodes[role] = null;
    // Whoever asked for the first start hears of its failure; later starts are tried again, within a bound.
    if (!this.#hasStarted) return;
    if (!this.#mayRestart()) return this.#coordinator.giveUp();
    const other: Role = role === 'prefill' ? 'decode' : 'prefill';
    const incarnation = node.incarnation + 1;
    const channel = new MessageChannel();
    this.#pending[role].length = 0;
    if (role === 'decode') {
      // What prefill has still to land was meant for the pool that is gone: from now on it is refused, and counted.
      new RegistrationTable(this.#target.registrations).revokeAll();
      this.#decodeMemory = memoryFor(this.config, 'decode');
      this.#target = this.#newTarget(incarnation);
    }
    this.#startNode(role, incarnation, this.#nodes[other]?.incarnation ?? 1, channel.port1).catch(() => {});
    // Order matters: the other node talks to the new one only after it knows that the old one is gone.
    if (role === 'prefill') this.#send('decode', { kind: 'prefill-down', incarnation });
    else this.#send('prefill', { kind: 'decode-down', incarnation, target: this.#target });
    this.#nodes[other]?.worker.postMessage({ kind: 'peer-port', port: channel.port2 }, [channel.port2]);
    this.#coordinator.peerDown(role, incarnation);
  }

  #mayRestart(): boolean {
    const nowMs = this.#clock.nowMs();
    this.#restartsAtMs.push(nowMs);
    if (this.#restartsAtMs.length <= RESTARTS_MAX) return true;
    return nowMs - (this.#restartsAtMs.shift() ?? nowMs) > RESTART_WINDOW_MS;
  }

  /** Which life a node is in, and whether it takes requests; null: it is being started again. */
  incarnation(role: Role): number | null {
    const node = this.#nodes[role];
    return node?.isReady ? node.incarnation : null;
  }

  /** For tests: ends a node's thread as a crash would. */
  async crash(role: Role): Promise<void> {
    await this.#nodes[role]?.worker.terminate();
  }

  describe(): EngineDescription {
    return this.#coordinator.describe();
  }

  submit(request: EngineRequest, sink: EngineSink): EngineRun {
    return this.#coordinator.submit(request, sink);
  }

  stats(): EngineStats {
    return this.#coordinator.stats();
  }

  /** Ends open requests, then the threads. Never takes longer than a bounded time. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    await new Promise<void>((resolve) => {
      const timer = this.#clock.after(CLOSE_MS_MAX, resolve);
      // A timer that is left would hold the process for as long as it runs.
      void this.#coordinator.close().then(() => {
        timer.cancel();
        resolve();
      });
    });
    this.#isClosed = true;
    this.#coordinator.giveUp();
    await Promise.all([this.#nodes.prefill?.worker.terminate(), this.#nodes.decode?.worker.terminate()]);
    this.#trace?.finish();
  }
}
