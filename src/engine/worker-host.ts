/** What both worker threads share: a port to the supervisor, a port to the other node, turns until there is no work. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { assert } from '../base/assert.js';
import { type Clock, SystemClock, type Timer } from '../base/clock.js';
import type { SharedMemory } from '../base/shared-memory.js';
import type { EngineConfig } from './config.js';
import { traceInto, type TraceLetter, type TraceShare } from './tracing.js';
import type { Tapped } from '../handoff/trace.js';
import type { DecodeTarget, NodePorts, ToDecode, ToGateway, ToPrefill, Turn } from './traffic.js';

export interface WorkerInit {
  readonly config: EngineConfig;
  readonly incarnation: number;
  /** Of the other node. */
  readonly peerIncarnation: number;
  readonly memory: SharedMemory;
  readonly target: DecodeTarget;
  readonly stats: SharedArrayBuffer;
  /** To the other node. */
  readonly peerPort: MessagePort;
  /** Null: nothing is traced. */
  readonly trace: TraceShare | null;
}

export type FromSupervisor<Inbound> =
  | { readonly kind: 'message'; readonly message: Inbound }
  | { readonly kind: 'peer-port'; readonly port: MessagePort };

export type ToSupervisor =
  | { readonly kind: 'ready' }
  | { readonly kind: 'to-gateway'; readonly message: ToGateway }
  | { readonly kind: 'trace'; readonly letter: TraceLetter };

export interface Node<Inbound> {
  readonly machine: Tapped;
  receive(message: Inbound): void;
  turn(): Turn;
  tick(): void;
}

/** How often a node asks again for what may have been lost, while it holds something. */
const TICK_MS = 1000;

/** Runs a node in this worker thread until the supervisor ends the thread. */
export function runWorker<Inbound extends ToPrefill | ToDecode>(
  make: (init: WorkerInit, ports: NodePorts, clock: Clock) => Node<Inbound>,
): void {
  assert(parentPort !== null, 'a worker entry runs in a worker thread');
  const supervisor = parentPort;
  const init = workerData as WorkerInit;
  const clock = new SystemClock();
  let peer = init.peerPort;
  const toPeer = (message: ToPrefill | ToDecode): void => peer.postMessage(message);
  const node = make(
    init,
    {
      toGateway: (message) => supervisor.postMessage({ kind: 'to-gateway', message } satisfies ToSupervisor),
      toPrefill: toPeer,
      toDecode: toPeer,
    },
    clock,
  );
  if (init.trace !== null) {
    const post = (letter: TraceLetter): void =>
      supervisor.postMessage({ kind: 'trace', letter } satisfies ToSupervisor);
    traceInto(node.machine, init.trace, post);
  }
  let isScheduled = false;
  let wake: Timer | null = null;

  const schedule = (): void => {
    if (isScheduled) return;
    isScheduled = true;
    clock.soon(turn);
  };
  const turn = (): void => {
    isScheduled = false;
    const { busy, wakeAtMs } = node.turn();
    wake?.cancel();
    wake = null;
    if (busy) schedule();
    else if (wakeAtMs !== null) wake = clock.after(Math.max(0, wakeAtMs - clock.nowMs()), schedule);
  };
  const take = (message: Inbound): void => {
    node.receive(message);
    schedule();
  };
  const listen = (port: MessagePort): void => {
    peer = port;
    port.on('message', take);
  };
  const tick = (): void => {
    node.tick();
    schedule();
    clock.after(TICK_MS, tick);
  };

  listen(init.peerPort);
  supervisor.on('message', (letter: FromSupervisor<Inbound>) => {
    if (letter.kind === 'peer-port') listen(letter.port);
    else take(letter.message);
  });
  clock.after(TICK_MS, tick);
  supervisor.postMessage({ kind: 'ready' } satisfies ToSupervisor);
}
