/** Child processes of the test run: their output is kept up to a bound, their time is bounded, and none outlives the run. */
import { type ChildProcess, spawn } from 'node:child_process';
import { SystemClock } from '../src/base/clock.js';

/** Characters of output kept of one child (the last ones): enough for every failure text seen, small beside the heap. */
export const CHILD_OUTPUT_CHARACTERS_MAX = 400_000;

export interface ChildResult {
  readonly output: string;
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly signal: string | null;
  readonly timedOut: boolean;
  readonly tookMs: number;
}

const clock = new SystemClock();
const alive = new Set<ChildProcess>();

/** Each child leads a process group of its own, so that what it started goes with it. */
function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(process.platform === 'win32' ? child.pid : -child.pid, 'SIGKILL');
  } catch {
    // The group is gone already: that is what was wanted.
  }
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => {
    for (const child of alive) killGroup(child);
    process.kill(process.pid, signal);
  });
}

/** Runs `node args…`; never rejects. */
export function runNode(args: readonly string[], timeoutMs: number): Promise<ChildResult> {
  const startMs = clock.nowMs();
  const { NODE_TEST_CONTEXT: _nested, ...env } = process.env;
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: process.platform !== 'win32',
    env,
  });
  alive.add(child);
  let output = '';
  let timedOut = false;
  const keep = (text: string): void => {
    output = (output + text).slice(-CHILD_OUTPUT_CHARACTERS_MAX);
  };
  child.stdout.setEncoding('utf8').on('data', keep);
  child.stderr.setEncoding('utf8').on('data', keep);
  const timer = clock.after(timeoutMs, () => {
    timedOut = true;
    killGroup(child);
  });
  return new Promise((resolve) => {
    const settle = (code: number | null, signal: string | null): void => {
      timer.cancel();
      alive.delete(child);
      resolve({ output, code, signal, timedOut, tookMs: clock.nowMs() - startMs });
    };
    // A grandchild that keeps the pipes open would hold `close` back for ever: it goes with its leader.
    child.on('exit', () => killGroup(child));
    child.on('close', settle);
    child.on('error', (error) => {
      keep(String(error));
      settle(1, null);
    });
  });
}
