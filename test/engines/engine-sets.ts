/** Engines take minutes to start, so a scenario gets those of the one before it where it wants the same. */
import type { Processes, Started } from './processes.js';

export class EngineSets {
  readonly #processes: Processes;
  #setUp = '';
  #engines: unknown = null;
  #started: readonly Started[] = [];

  constructor(processes: Processes) {
    this.#processes = processes;
  }

  async get<T>(setUp: string, start: () => Promise<T>): Promise<T> {
    if (setUp === this.#setUp && this.#started.every(({ isOver }) => !isOver)) return this.#engines as T;
    await this.end();
    const before = [...this.#processes.running];
    const engines = await start();
    this.#setUp = setUp;
    this.#engines = engines;
    this.#started = this.#processes.running.filter((each) => !before.includes(each));
    return engines;
  }

  /** Ends everything else: gateways, routers. */
  endOthers(): Promise<void> {
    return this.#processes.stop(this.#processes.running.filter((each) => !this.#started.includes(each)));
  }

  async end(): Promise<void> {
    this.#setUp = '';
    await this.#processes.stop();
    this.#started = [];
  }
}
