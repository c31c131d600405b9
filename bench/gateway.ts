/**
 * What does the gateway cost? CPU per request, per streamed chunk and per refusal, and the latency that it adds, against a bare
 * node:http relay that parses the body. Behind both stands the same canned engine; client, engine, relay and gateway are
 * processes of their own, the sides alternate, and every figure is a median of rounds.
 *
 *   npm run build && node dist/bench/gateway.js [ROUNDS]
 */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { SystemClock } from '../src/base/clock.js';
import { Client, type Load, PASS, REFUSAL, STREAM, STREAM_PIECES } from './gateway-load.js';

const ROUNDS = Number(process.argv[2] ?? 7);
const REQUESTS = 2000;
const TOGETHER = 16;
const STREAMS = 32;
const LATENCY_REQUESTS = 1500;
const LATENCY_PER_SECOND = 500;
const US_PER_MS = 1000;
const clock = new SystemClock();
const print = (line: string): boolean => process.stdout.write(`${line}\n`);

class Side {
  readonly #child: ChildProcess;
  readonly client: Client;

  private constructor(
    child: ChildProcess,
    readonly url: string,
  ) {
    this.#child = child;
    this.client = new Client(clock, url);
  }

  static start(role: string, engineUrl: string = ''): Promise<Side> {
    const child = fork(fileURLToPath(new URL('gateway-side.js', import.meta.url)), [role, engineUrl]);
    return new Promise((resolve, reject) => {
      child.once('message', (message: { url: string }) => resolve(new Side(child, message.url)));
      child.once('exit', (code) => reject(new Error(`The ${role} ended with ${code} before it listened.`)));
    });
  }

  cpuUs(): Promise<number> {
    return new Promise((resolve) => {
      this.#child.once('message', (message: { cpuUs: number }) => resolve(message.cpuUs));
      this.#child.send('cpu');
    });
  }

  /** CPU microseconds of this side's process for `work`. */
  async spent(work: () => Promise<unknown>): Promise<number> {
    const before = await this.cpuUs();
    await work();
    return (await this.cpuUs()) - before;
  }

  end(): void {
    this.client.close();
    this.#child.disconnect();
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}

function quantile(values: readonly number[], q: number): number {
  return values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * q))]!;
}

/** Medians of `ROUNDS` measurements of both, in turn; the first of each warms up and is not counted. */
async function alternate(first: () => Promise<number>, second: () => Promise<number>): Promise<[number, number]> {
  const [a, b]: [number[], number[]] = [[], []];
  await first();
  await second();
  for (let round = 0; round < ROUNDS; round++) {
    // Which goes first changes too: what one leaves behind in the caches must not always meet the same other.
    if (round % 2 === 0) a.push(await first());
    b.push(await second());
    if (round % 2 === 1) a.push(await first());
  }
  return [median(a), median(b)];
}

function ratioLine(what: string, [bare, ours]: [number, number], wanted: string): void {
  print(
    `${what.padEnd(46)} ${bare.toFixed(1).padStart(7)} ${ours.toFixed(1).padStart(7)} ${(ours / bare).toFixed(2).padStart(6)}x  ${wanted}`,
  );
}

const engine = await Side.start('engine');
const relay = await Side.start('relay', engine.url);
const gateway = await Side.start('gateway', engine.url);

const perRequest = (side: Side, load: Load) => async (): Promise<number> =>
  (await side.spent(() => side.client.closedLoop(load, REQUESTS, TOGETHER))) / REQUESTS;
const perChunk = (side: Side) => async (): Promise<number> =>
  (await side.spent(() => side.client.closedLoop(STREAM, STREAMS * 2, STREAMS))) / (STREAMS * 2 * STREAM_PIECES);

print(`medians of ${ROUNDS} rounds, node ${process.version}; CPU microseconds`);
print(`${''.padEnd(46)} ${'relay'.padStart(7)} ${'ours'.padStart(7)}`);
ratioLine(
  'a request, 4 KB prompt, answer whole',
  await alternate(perRequest(relay, PASS), perRequest(gateway, PASS)),
  'at most 3x, 150',
);
ratioLine('a streamed chunk', await alternate(perChunk(relay), perChunk(gateway)), 'at most 1.4x');
const [passed, refused] = await alternate(perRequest(gateway, PASS), perRequest(gateway, REFUSAL));
print(
  `a refusal costs ${refused.toFixed(1)}, a pass ${passed.toFixed(1)}: ${(refused / passed).toFixed(2)}x (below 1 wanted)`,
);
await latencyAdded();
for (const side of [gateway, relay, engine]) side.end();

async function latencyAdded(): Promise<void> {
  const added: { p50: number[]; p99: number[] } = { p50: [], p99: [] };
  const measure = (side: Side): Promise<number[]> => side.client.openLoop(PASS, LATENCY_REQUESTS, LATENCY_PER_SECOND);
  await measure(relay);
  await measure(gateway);
  for (let round = 0; round < ROUNDS; round++) {
    const bare = await measure(relay);
    const ours = await measure(gateway);
    added.p50.push(quantile(ours, 0.5) - quantile(bare, 0.5));
    added.p99.push(quantile(ours, 0.99) - quantile(bare, 0.99));
  }
  const [p50, p99] = [median(added.p50), median(added.p99)];
  print(
    `at ${LATENCY_PER_SECOND} requests/s the gateway adds ${p50.toFixed(2)} ms p50 (0.5 wanted), ${p99.toFixed(2)} ms p99 (3 wanted)`,
  );
  print(`p99 added in each round: ${added.p99.map((ms) => Math.round(ms * US_PER_MS) / US_PER_MS).join(', ')} ms`);
}
