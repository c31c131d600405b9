/**
 * What do read guard, checksum and sweep cost? CPU inside them over the CPU of decode, at 1, 8 and 32 running requests; and, with
 * `--zero`, what zero-on-release adds.
 *
 *   npm run build && node dist/bench/guards.js [STEPS] [--running=N] [--zero]
 *
 * The engine runs in this one thread, so that a stretch of time is CPU of that stretch. The three are timed where decode calls them
 * (what reading the clock costs is taken off); decode's time is that of its whole turn, them included.
 */
import { SystemClock } from '../src/base/clock.js';
import { engineConfig } from '../src/engine/config.js';
import { InlineEngine } from '../src/engine/inline-engine.js';
import { encode } from '../src/tokenizer/bytes.js';

const STEPS_DEFAULT = 10_000;
const PROMPT_TOKENS = 512;
const OUTPUT_TOKENS = 512;
const CLOCK_CALLS = 100_000;
const clock = new SystemClock();
const print = (line: string): boolean => process.stdout.write(`${line}\n`);

interface Spent {
  decodeMs: number;
  guardMs: number;
  checksumMs: number;
  sweepMs: number;
}

/** What the two reads of the clock around an empty call say: taken off each call. */
function clockMs(): number {
  const spent = { decodeMs: 0, guardMs: 0, checksumMs: 0, sweepMs: 0 };
  const empty = { call: (): number => 0 };
  timed(empty, 'call', spent, 'guardMs', 0);
  for (let i = 0; i < CLOCK_CALLS; i++) empty.call();
  return spent.guardMs / CLOCK_CALLS;
}

/** Wraps a method so that the time inside it is added to `spent[key]`. */
function timed<T extends object, K extends keyof T>(
  target: T,
  name: K,
  spent: Spent,
  key: keyof Spent,
  offMs = CLOCK_MS,
): void {
  const method = (target[name] as (...args: unknown[]) => unknown).bind(target);
  (target as Record<K, unknown>)[name] = (...args: unknown[]): unknown => {
    const begin = clock.nowMs();
    const result = method(...args);
    spent[key] += clock.nowMs() - begin - offMs;
    return result;
  };
}

function measure(running: number, stepsMin: number, zeroOnRelease: boolean): void {
  const engine = new InlineEngine(engineConfig({ zeroOnRelease, decodePool: 65_536, prefillPool: 16_384 }), clock);
  const spent: Spent = { decodeMs: 0, guardMs: 0, checksumMs: 0, sweepMs: 0 };
  timed(engine.decode.checks, 'tags', spent, 'guardMs');
  timed(engine.decode.checks, 'checksums', spent, 'checksumMs');
  timed(engine.decode.sweep, 'step', spent, 'sweepMs');
  timed(engine.decode.sweep, 'noteReleased', spent, 'sweepMs');
  timed(engine.decode.sweep, 'noteSealed', spent, 'sweepMs');
  timed(engine.decode, 'turn', spent, 'decodeMs');
  let open = 0;
  let asked = 0;
  const stepsBefore = engine.stats.get('decodeSteps');
  const steps = (): number => engine.stats.get('decodeSteps') - stepsBefore;
  while (steps() < stepsMin) {
    for (; open < running; open++) {
      const prompt = `${asked++} `.padEnd(PROMPT_TOKENS, 'the quick brown fox ');
      const request = { tenant: 1 + (asked % 4), salt: String(asked % 4).repeat(64), prompt: encode(prompt) };
      let taken = 0;
      const run = engine.coordinator.submit(
        {
          ...request,
          maxTokens: OUTPUT_TOKENS,
          temperature: 1,
          seed: asked,
          room: null,
          handle: null,
          ignoreEos: true,
        },
        { started: () => {}, token: () => run.acknowledge(++taken), end: () => {}, released: () => void open-- },
      );
    }
    engine.turn();
  }
  report(running, steps(), spent, engine);
  void engine.coordinator.close();
  engine.runUntil(() => open === 0);
}

function report(running: number, steps: number, spent: Spent, engine: InlineEngine): void {
  const share = (ms: number): string => `${((100 * ms) / spent.decodeMs).toFixed(2)} %`.padStart(8);
  const all = spent.guardMs + spent.checksumMs + spent.sweepMs;
  const { passes, pagesSwept, findings } = engine.decode.sweep;
  print(
    `${String(running).padStart(2)} running, ${steps} steps, ${(spent.decodeMs / steps).toFixed(3)} ms a step:` +
      ` guard ${share(spent.guardMs)}, checksum ${share(spent.checksumMs)}, sweep ${share(spent.sweepMs)}, in all ${share(all)};` +
      ` ${pagesSwept} pages swept, ${passes} rounds, ${findings} findings`,
  );
}

const args = process.argv.slice(2);
const CLOCK_MS: number = clockMs();
const steps = Number(args.find((arg) => !arg.startsWith('--')) ?? STEPS_DEFAULT);
print(`reading the clock: ${(CLOCK_MS * 1e6).toFixed(0)} ns a call`);
const only = args.find((arg) => arg.startsWith('--running='));
const all = only === undefined ? [1, 8, 32] : [Number(only.slice('--running='.length))];
for (const running of all) measure(running, steps, args.includes('--zero'));
