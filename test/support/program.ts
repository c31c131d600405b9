/** The real program in a process of its own: started with free ports, talked to over HTTP, ended by a signal. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { SystemClock, sleep } from '../../src/base/clock.js';

const MAIN = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url));
/** Two cores that somebody else may be using too. */
const START_MS_MAX = 20_000;
/** A program that has not ended by then is killed, and its test fails on the time. */
const END_MS_MAX = 10_000;

const clock = new SystemClock();

export type EndSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

export interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly out: string;
  readonly err: string;
  readonly tookMs: number;
}

export interface Program {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  out(): string;
  err(): string;
}

/** Starts `cofferdam args…`. Standard input is empty, so nothing is a terminal. */
export function startProgram(args: readonly string[], variables: Readonly<Record<string, string>> = {}): Program {
  const startMs = clock.nowMs();
  const child = spawn(process.execPath, [MAIN, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...variables },
  });
  let out = '';
  let err = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text;
  });
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, out, err, tookMs: clock.nowMs() - startMs }));
  });
  return { child, ended, out: () => out, err: () => err };
}

/** Runs `cofferdam args…` to its end. */
export async function runCommand(
  args: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const program = startProgram(args, variables);
  const timer = clock.after(START_MS_MAX, () => program.child.kill('SIGKILL'));
  const ended = await program.ended;
  timer.cancel();
  return ended;
}

/** The facts as `--output json` prints them. */
export interface ServeFacts {
  readonly url: string;
  readonly opsUrl: string;
  readonly advertised: number;
  readonly prefillPool: number;
  readonly decodePool: number;
  readonly effectiveLimit: number;
  readonly limitedBy: string;
  readonly tenants: readonly { readonly name: string; readonly keyFingerprint: string }[];
}

export interface Served extends Program {
  readonly facts: ServeFacts;
  /** Fresh keys by tenant; empty where the tenants were named. */
  readonly keys: ReadonlyMap<string, string>;
  readonly keysPath: string | null;
  readonly readyMs: number;
  post(path: string, key: string, body: unknown, signal?: AbortSignal): Promise<Response>;
  /** Sends the signal and waits for the end; `tookMs` counts from the signal. */
  stop(signal?: EndSignal): Promise<Ended>;
}

/** `cofferdam serve --output json` on free ports, once it is ready. */
export async function startServe(
  flags: readonly string[] = [],
  variables: Readonly<Record<string, string>> = {},
): Promise<Served> {
  const startMs = clock.nowMs();
  const program = startProgram(['serve', '--port', '0', '--ops-port', '0', '--output', 'json', ...flags], variables);
  const named = flags.includes('--tenant');
  // Where keys are fresh, the line that names their file follows on standard error.
  await untilSaid(program, () => program.out().includes('\n') && (named || keysPathIn(program.err()) !== null));
  const readyMs = clock.nowMs() - startMs;
  const facts = JSON.parse(program.out().split('\n', 1)[0] ?? '') as ServeFacts;
  const keysPath = keysPathIn(program.err());
  return {
    ...program,
    facts,
    keys: keysPath === null ? new Map() : readKeys(keysPath),
    keysPath,
    readyMs,
    post: (path, key, body, signal) =>
      fetch(facts.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
        body: typeof body === 'string' ? body : JSON.stringify(body),
        ...(signal === undefined ? {} : { signal }),
      }),
    stop: (signal = 'SIGTERM') => stopProgram(program, signal),
  };
}

/** Waits until `said` holds; rejects with all that was printed when the program ends first or takes too long. */
export async function untilSaid(program: Program, said: () => boolean): Promise<void> {
  const endMs = clock.nowMs() + START_MS_MAX;
  while (!said()) {
    const over = program.child.exitCode !== null || program.child.signalCode !== null || clock.nowMs() > endMs;
    if (over) {
      program.child.kill('SIGKILL');
      const { code, out, err } = await program.ended;
      throw new Error(`Expected the program to be ready, got exit code ${code}.\n${out}\n${err}`);
    }
    await sleep(clock, 2);
  }
}

export async function stopProgram(program: Program, signal: EndSignal): Promise<Ended> {
  const sentMs = clock.nowMs();
  program.child.kill(signal);
  const timer = clock.after(END_MS_MAX, () => program.child.kill('SIGKILL'));
  const ended = await program.ended;
  timer.cancel();
  return { ...ended, tookMs: clock.nowMs() - sentMs };
}

export function keysPathIn(text: string): string | null {
  return /(\/\S*cofferdam-keys-\S+)/.exec(text)?.[1] ?? null;
}

export function readKeys(path: string): Map<string, string> {
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  return new Map(lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]));
}

/** The samples of a page of metrics by name and labels as they are written, buckets left out. */
export async function readMetrics(opsUrl: string): Promise<Map<string, number>> {
  const text = await (await fetch(`${opsUrl}/metrics`)).text();
  const samples = new Map<string, number>();
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#') || line.includes('_bucket{')) continue;
    const at = line.lastIndexOf(' ');
    samples.set(line.slice(0, at), Number(line.slice(at + 1)));
  }
  return samples;
}

const STATES = ['running', 'waiting', 'leased', 'draining'];

/** What is still held for anybody, as sentences; empty when the gateway and both pools hold nothing. */
export async function heldThings(opsUrl: string): Promise<string[]> {
  const held: string[] = [];
  for (const [name, value] of await readMetrics(opsUrl)) {
    const state = /state="(\w+)"/.exec(name)?.[1] ?? '';
    if (/^cofferdam_(tenant_requests|tenant_tokens|pages)\{/.test(name) && STATES.includes(state) && value !== 0) {
      held.push(`${name} ${value}`);
    }
  }
  return held;
}

/** Waits until nothing is held; the sentences of what still was after `msMax`. */
export async function heldAfter(opsUrl: string, msMax: number): Promise<string[]> {
  const endMs = clock.nowMs() + msMax;
  for (;;) {
    const held = await heldThings(opsUrl);
    if (held.length === 0 || clock.nowMs() > endMs) return held;
    await sleep(clock, 20);
  }
}
