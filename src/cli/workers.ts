/**
 * Several processes behind one port. The parent serves nothing: it starts them, hands the secret of salts to them, tells what they
 * serve, starts one that died again, and ends them all.
 */
import cluster, { type Worker } from 'node:cluster';
import { randomBytes } from 'node:crypto';
import { SystemClock } from '../base/clock.js';
import { type CliIo, EXIT } from './io.js';
import type { ServeOptions } from './options.js';
import { SecretText } from './secret-text.js';
import { untilSignal } from './signals.js';
import type { StartFacts } from './start-facts.js';
import { startLines } from './start-lines.js';
import type { FromWorker, ToWorker } from './worker-line.js';

const SALT_SECRET_BYTES = 32;
/** Before a process that died is started again. */
const AGAIN_MS = 1_000;

/** Resolves with the exit code when a signal has ended all of them. */
export async function runWorkers(options: ServeOptions, io: CliIo): Promise<number> {
  const crew = new Crew(options.running.secret ?? new SecretText(randomBytes(SALT_SECRET_BYTES).toString('hex')), io);
  const ended = untilSignal(() => {
    crew.tell({ kind: 'hang-up' });
    return 'stay';
  });
  const all = await Promise.race([startAll(crew, options.running.workers), ended.then(() => null)]);
  if (all === null) return crew.kill();
  if (typeof all === 'number') {
    await crew.end('SIGTERM');
    return all;
  }
  io.out(options.output === 'json' ? `${JSON.stringify(crewJson(all))}\n` : crewLines(all));
  const signal = await ended;
  if (options.output !== 'json') io.out(`\n${signal}: open requests end, then the server does.\n`);
  return await crew.end(signal);
}

/** What they serve, or the exit code of one that could not start. What refuses the start refuses it once. */
async function startAll(crew: Crew, count: number): Promise<readonly StartFacts[] | number> {
  const first = await crew.start(0);
  if (typeof first === 'number') return first;
  const others = await Promise.all(Array.from({ length: count - 1 }, (_, i) => crew.start(i + 1)));
  const failed = others.find((each) => typeof each === 'number');
  return failed ?? [first, ...others.filter((each) => typeof each !== 'number')];
}

function crewJson(all: readonly StartFacts[]): unknown {
  const { rules: _rules, ...facts } = all[0]!;
  return { ...facts, workers: all.length, opsUrls: all.map(({ opsUrl }) => opsUrl) };
}

function crewLines(all: readonly StartFacts[]): string {
  return [
    startLines(all[0]!, { keys: null, keysFile: null }),
    `${all.length} processes share the tenants’ port and behave as one, but for what each counts for itself: limits of tenants, turns, tokens`,
    'in flight, findings and metrics. So a tenant may have as many times as much open. Their operators’ ports:',
    ...all.map(({ opsUrl }, index) => `  process ${index}           ${opsUrl}`),
    '',
  ].join('\n');
}

class Crew {
  readonly #secret: SecretText;
  readonly #io: CliIo;
  readonly #clock = new SystemClock();
  readonly #workers = new Map<number, Worker>();
  #ending: ToWorker | null = null;

  constructor(secret: SecretText, io: CliIo) {
    this.#secret = secret;
    this.#io = io;
  }

  /** What it serves, or the exit code of one that could not start. */
  start(index: number): Promise<StartFacts | number> {
    return new Promise((resolve) => {
      const worker = cluster.fork();
      let serves = false;
      this.#workers.set(index, worker);
      worker.on('message', (message: FromWorker) => {
        if (message.kind === 'ready') {
          this.#send(worker, { kind: 'task', index, secret: this.#secret.reveal() });
          // What was said before it listened is lost.
          if (this.#ending !== null) this.#send(worker, this.#ending);
        } else {
          serves = true;
          resolve(message.facts);
        }
      });
      worker.once('exit', (code: number | null) => {
        this.#workers.delete(index);
        if (serves) this.#again(index);
        else resolve(code ?? EXIT.unchecked);
      });
    });
  }

  tell(message: ToWorker): void {
    for (const worker of this.#workers.values()) this.#send(worker, message);
  }

  /** Resolves with the exit code when all have ended. */
  async end(signal: string): Promise<number> {
    this.#ending = { kind: 'end', signal };
    const workers = [...this.#workers.values()];
    const codes = workers.map(
      (worker) =>
        new Promise<number>((resolve) => worker.once('exit', (code: number | null) => resolve(code ?? EXIT.unchecked))),
    );
    this.tell(this.#ending);
    return Math.max(EXIT.clean, ...(await Promise.all(codes)));
  }

  /** Before anything is served there is nothing to wait for. */
  kill(): number {
    this.#ending = { kind: 'end', signal: 'SIGKILL' };
    for (const worker of this.#workers.values()) worker.process.kill('SIGKILL');
    return EXIT.clean;
  }

  #again(index: number): void {
    if (this.#ending !== null) return;
    this.#io.err(`process ${index} ended by itself and is started again\n`);
    this.#clock.after(AGAIN_MS, () => {
      if (this.#ending !== null) return;
      void this.start(index).then((result) => {
        if (typeof result === 'number') this.#again(index);
      });
    });
  }

  #send(worker: Worker, message: ToWorker): void {
    if (worker.isConnected()) worker.send(message);
  }
}
