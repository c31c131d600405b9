/** Long prompts are counted on threads of their own, one at a time each, so that the event loop goes on. */
import { Worker } from 'node:worker_threads';
import { BoundedQueue } from '../base/bounded-queue.js';
import { CodedError } from '../base/errors.js';
import type { CountAnswer, CountRequest } from './counting-messages.js';
import { type Uncountable, uncountable } from './prompt.js';
import type { TokenizerPlan } from './text-tokenizer.js';

export interface CountingPoolOptions {
  readonly plan: TokenizerPlan;
  /** Threads at most; each is started when it is first needed. */
  readonly threads: number;
  /** Texts that may wait for a thread. */
  readonly waitingMax: number;
  /** UTF-16 code units that all waiting texts may have together. */
  readonly waitingUnitsMax: number;
}

interface Job extends CountRequest {
  readonly resolve: (count: number | Uncountable) => void;
  readonly reject: (error: Error) => void;
}

export class CountingPool {
  readonly #options: CountingPoolOptions;
  readonly #waiting: BoundedQueue<Job>;
  #waitingUnits = 0;
  readonly #idle: Worker[] = [];
  readonly #running = new Map<Worker, Job>();
  #closed = false;

  constructor(options: CountingPoolOptions) {
    this.#options = options;
    this.#waiting = new BoundedQueue(options.waitingMax);
  }

  /** Rejects with `CodedError` `no_capacity` where too much waits, `shutting_down` once closed, `internal_error` where a thread died. */
  count(request: CountRequest): Promise<number | Uncountable> {
    return new Promise((resolve, reject) => {
      if (this.#closed) {
        reject(new CodedError('shutting_down', 'Expected a count while serving, got one at the end.'));
        return;
      }
      const job: Job = { ...request, resolve, reject };
      const worker = this.#idle.pop() ?? this.#start();
      if (worker !== null) this.#give(worker, job);
      else if (!this.#wait(job)) {
        reject(
          new CodedError('no_capacity', 'Expected room to count the prompt, got too many that wait; try again.', {
            retryAfterS: 1,
          }),
        );
      }
    });
  }

  /** Ends the threads; what runs and waits is rejected. */
  async close(): Promise<void> {
    this.#closed = true;
    const workers = [...this.#idle, ...this.#running.keys()];
    for (let job = this.#next(); job !== undefined; job = this.#next()) this.#fail(job, 'shutting_down');
    await Promise.all(workers.map((worker) => worker.terminate()));
  }

  #wait(job: Job): boolean {
    if (this.#waitingUnits + job.text.length > this.#options.waitingUnitsMax || !this.#waiting.push(job)) return false;
    this.#waitingUnits += job.text.length;
    return true;
  }

  #next(): Job | undefined {
    const job = this.#waiting.shift();
    this.#waitingUnits -= job?.text.length ?? 0;
    return job;
  }

  #start(): Worker | null {
    if (this.#running.size + this.#idle.length >= this.#options.threads) return null;
    const worker = new Worker(new URL('./counting-worker.js', import.meta.url), { workerData: this.#options.plan });
    worker.on('message', (answer: CountAnswer) => this.#answered(worker, answer));
    worker.on('error', () => this.#died(worker));
    worker.on('exit', () => this.#died(worker));
    return worker;
  }

  #give(worker: Worker, job: Job): void {
    this.#running.set(worker, job);
    // An idle thread does not keep the process alive, a counting one does.
    worker.ref();
    worker.postMessage({ text: job.text, isWhole: job.isWhole } satisfies CountRequest);
  }

  #answered(worker: Worker, answer: CountAnswer): void {
    const job = this.#running.get(worker);
    this.#running.delete(worker);
    const next = this.#next();
    if (next !== undefined) this.#give(worker, next);
    else {
      worker.unref();
      this.#idle.push(worker);
    }
    job?.resolve('count' in answer ? answer.count : uncountable(answer.why));
  }

  #died(worker: Worker): void {
    const job = this.#running.get(worker);
    this.#running.delete(worker);
    const at = this.#idle.indexOf(worker);
    if (at >= 0) this.#idle.splice(at, 1);
    if (job !== undefined) this.#fail(job, this.#closed ? 'shutting_down' : 'internal_error');
    const next = this.#closed || this.#waiting.size === 0 ? null : this.#start();
    if (next !== null) this.#give(next, this.#next()!);
  }

  #fail(job: Job, code: 'shutting_down' | 'internal_error'): void {
    job.reject(new CodedError(code, 'Expected the prompt to be counted, got a counting thread that ended.'));
  }
}
