/** One of several processes behind a port, as its parent drives it: a task at the start, and one end. */
import cluster from 'node:cluster';
import { SecretText } from './secret-text.js';
import type { StartFacts } from './start-facts.js';

export type ToWorker =
  | { readonly kind: 'task'; readonly index: number; readonly secret: string }
  | { readonly kind: 'hang-up' }
  | { readonly kind: 'end'; readonly signal: string };

export type FromWorker = { readonly kind: 'ready' } | { readonly kind: 'serving'; readonly facts: StartFacts };

export interface WorkerTask {
  readonly index: number;
  readonly secret: SecretText;
}

/** Whether this process was started by a parent that serves nothing itself. */
export function isWorker(): boolean {
  return cluster.isWorker;
}

/** The line to the parent. Signals of a terminal go to all processes at once: here only the parent's word counts. */
export class WorkerLine {
  readonly task: Promise<WorkerTask>;
  /** The name of the signal that asks for the end. */
  readonly ended: Promise<string>;
  onHangUp: () => void = () => {};

  constructor() {
    let onTask: (task: WorkerTask) => void = () => {};
    let onEnd: (signal: string) => void = () => {};
    this.task = new Promise((resolve) => {
      onTask = resolve;
    });
    this.ended = new Promise((resolve) => {
      onEnd = resolve;
    });
    process.on('message', (message: ToWorker) => {
      if (message.kind === 'task') onTask({ index: message.index, secret: new SecretText(message.secret) });
      else if (message.kind === 'end') onEnd(message.signal);
      else this.onHangUp();
    });
    // Where the parent is gone, node ends this process by itself.
    process
      .on('SIGINT', () => {})
      .on('SIGHUP', () => {})
      .on('SIGTERM', () => onEnd('SIGTERM'));
    this.#send({ kind: 'ready' });
  }

  serving(facts: StartFacts): void {
    this.#send({ kind: 'serving', facts });
  }

  /** The process may end, with its own exit code. */
  close(): void {
    cluster.worker?.disconnect();
  }

  #send(message: FromWorker): void {
    process.send?.(message);
  }
}
