/** Engines and gateways as processes of their own groups: started, waited for, ended. Only what was started here is ended. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { type Clock, sleep } from '../../src/base/clock.js';
import { CouldNotRun } from './could-not-run.js';

/** A busy machine takes seven minutes to start an engine of two or three Python processes. */
const READY_MS_MAX = 15 * 60_000;
const END_MS_MAX = 20_000;
const POLL_MS = 500;
const TAIL_CHARACTERS = 800;

export interface Start {
  /** Of its log file: letters, digits, dashes. */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly variables?: Readonly<Record<string, string>>;
  /** Ready when this URL answers 200, or when this text is in its log. */
  readonly ready: { readonly url: string } | { readonly text: string };
}

export class Started {
  readonly name: string;
  readonly log: string;
  readonly child: ChildProcess;

  constructor(name: string, log: string, child: ChildProcess) {
    this.name = name;
    this.log = log;
    this.child = child;
  }

  get isOver(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** What it printed since it was started, both outputs together. */
  said(): string {
    return readFileSync(this.log, 'utf8');
  }
}

export class Processes {
  readonly #clock: Clock;
  readonly #logs: string;
  readonly #say: (text: string) => void;
  #running: Started[] = [];

  /** Logs go to files in the folder `logs`. */
  constructor(clock: Clock, logs: string, say: (text: string) => void) {
    this.#clock = clock;
    this.#logs = logs;
    this.#say = say;
  }

  /** Starts and does not wait. */
  start({ name, command, args, variables = {} }: Omit<Start, 'ready'>): Started {
    const log = `${this.#logs}/${name}.log`;
    const out = openSync(log, 'w');
    const child = spawn('nice', ['-n', '5', command, ...args], {
      stdio: ['ignore', out, out],
      detached: true,
      env: { ...process.env, ...variables },
    });
    closeSync(out);
    const started = new Started(name, log, child);
    child.on('error', () => undefined);
    this.#running.push(started);
    return started;
  }

  /** Starts all at once and waits until all are ready. Throws `CouldNotRun` when one ends or takes too long. */
  async startAll(starts: readonly Start[]): Promise<Started[]> {
    const beginMs = this.#clock.nowMs();
    this.#say(`starting ${starts.map(({ name }) => name).join(', ')}`);
    const started = starts.map((start) => this.start(start));
    await Promise.all(starts.map(({ ready }, i) => this.#untilReady(started[i]!, ready)));
    this.#say(`ready after ${Math.round((this.#clock.nowMs() - beginMs) / 1000)} s`);
    return started;
  }

  async #untilReady(started: Started, ready: Start['ready']): Promise<void> {
    const endMs = this.#clock.nowMs() + READY_MS_MAX;
    for (;;) {
      if ('text' in ready ? started.said().includes(ready.text) : await isOk(ready.url)) return;
      if (started.isOver || this.#clock.nowMs() > endMs) {
        const why = started.isOver ? 'ended while it started' : 'was not ready in time';
        throw new CouldNotRun(`${started.name} ${why}: ${started.said().trim().slice(-TAIL_CHARACTERS)}`);
      }
      await sleep(this.#clock, POLL_MS);
    }
  }

  /** What runs now. */
  get running(): readonly Started[] {
    return this.#running;
  }

  /** Ends each with its whole group: SIGTERM, and after a while SIGKILL. */
  async stop(started: readonly Started[] = this.#running): Promise<void> {
    const ending = [...started];
    for (const each of ending) signal(each, 'SIGTERM');
    const endMs = this.#clock.nowMs() + END_MS_MAX;
    while (ending.some((each) => !each.isOver) && this.#clock.nowMs() < endMs) await sleep(this.#clock, POLL_MS / 5);
    for (const each of ending) signal(each, 'SIGKILL');
    this.#running = this.#running.filter((each) => !ending.includes(each));
  }

  /** At once, when the whole run is ended by a signal. */
  kill(): void {
    for (const each of this.#running) signal(each, 'SIGKILL');
  }
}

/** To the group, so that an engine's own children end with it; a group that is gone is fine. */
function signal({ child }: Started, name: 'SIGTERM' | 'SIGKILL'): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, name);
  } catch {
    // Over already.
  }
}

async function isOk(url: string): Promise<boolean> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(5_000) });
    await answer.arrayBuffer();
    return answer.status === 200;
  } catch {
    return false;
  }
}

/** Ports of the loopback that nobody listens at now. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((resolve, reject) => {
          server.on('error', reject);
          server.listen(0, '127.0.0.1', () => {
            const address = server.address();
            if (address === null || typeof address === 'string') reject(new Error('no port was given'));
            else resolve(address.port);
          });
        }),
    ),
  );
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
