/** Stops an engine's scheduler while it sends, and lets it go on: the moment at which a client that leaves does harm. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PYTHON_FOLDER } from './folder.js';
import type { Started } from './processes.js';
import { CouldNotRun } from './could-not-run.js';

const SCHEDULER = 'sglang::scheduler';

/** The process of a node that holds its pages and sends them. */
export function schedulerOf({ child }: Started): number {
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      // After the name in brackets: state, parent, group.
      const group = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[2]);
      if (group === child.pid && readFileSync(`/proc/${name}/cmdline`, 'utf8').startsWith(SCHEDULER))
        return Number(name);
    } catch {
      // Over since it was listed.
    }
  }
  throw new CouldNotRun('the scheduler of a node was not found among its processes');
}

/** `stopped`: in the middle; `missed`: all was sent before; `quiet`: nothing was. */
export type Stopped = 'stopped' | 'missed' | 'quiet';

export interface Watch {
  /** Resolves once it watches. */
  readonly ready: Promise<void>;
  readonly result: Promise<Stopped>;
  end(): void;
}

/** Sends SIGSTOP to `pid` once between `fromBytes` and `untilBytes` have gone out over its connections. */
export function stopInTransfer(pid: number, fromBytes: number, untilBytes: number, seconds: number): Watch {
  const script = join(PYTHON_FOLDER, 'stop_in_transfer.py');
  const args = [script, ...[pid, fromBytes, untilBytes, seconds].map(String)];
  const child: ChildProcess = spawn('python3', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  let isWatching: () => void = () => {};
  const ready = new Promise<void>((resolve) => {
    isWatching = resolve;
  });
  child.stdout?.setEncoding('utf8').on('data', (part: string) => {
    text += part;
    if (text.includes('watching')) isWatching();
  });
  const result = new Promise<Stopped>((resolve) => {
    child.on('error', () => resolve('quiet'));
    child.on('close', () => {
      isWatching();
      resolve(text.includes('stopped') ? 'stopped' : text.includes('missed') ? 'missed' : 'quiet');
    });
  });
  return { ready, result, end: () => child.kill() };
}

export function letGoOn(pid: number): void {
  process.kill(pid, 'SIGCONT');
}
