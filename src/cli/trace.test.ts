/**
 * Goal: `--trace FILE` writes what `verify --trace FILE` accepts, says clearly where it cannot write, and never holds up serving; and a
 * trace that is cut, of another version, empty or no trace at all is told from one that conforms. Method: the real command and the real
 * threads; files in a folder of the test's own; handles that fail.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { SystemClock } from '../base/clock.js';
import { FAULTS } from '../handoff/faults.js';
import { TRACE_VERSION } from '../handoff/trace.js';
import { parseServeOptions } from './options.js';
import { runProgram } from './program.js';
import { startServing } from './serve-run.js';
import { TraceFile } from './trace-file.js';

const MAIN = new URL('./main.js', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'cofferdam-trace-'));
const at = (name: string): string => join(folder, name);
const clock = new SystemClock();
const wait = (ms: number): Promise<void> => new Promise((resolve) => clock.after(ms, resolve));
after(() => rmSync(folder, { recursive: true }));

async function cofferdam(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ['', ''];
  const io = {
    out: (text: string): void => {
      out += text;
    },
    err: (text: string): void => {
      err += text;
    },
    variables: {},
    outIsTerminal: false,
  };
  const code = await runProgram(args, io, { faultNames: () => Promise.resolve(FAULTS) });
  return { code, out, err };
}

test('a traced engine that a signal ends leaves a whole trace that conforms, and every damage to it is told', async () => {
  const path = at('engine.jsonl');
  const child = spawn(process.execPath, [MAIN, 'engine', '--port', '0', '--output', 'json', '--trace', path]);
  let out = '';
  child.stdout.on('data', (piece: Buffer) => {
    out += piece.toString();
  });
  const code = new Promise<number | null>((resolve) => child.on('exit', resolve));
  try {
    while (!out.includes('\n')) await wait(10);
    const { url } = JSON.parse(out) as { url: string };
    const ask = async (text: string, signal?: AbortSignal): Promise<void> => {
      const body = JSON.stringify({ text, sampling_params: { temperature: 0, max_new_tokens: 40 } });
      const answer = await fetch(`${url}/generate`, {
        method: 'POST',
        body,
        ...(signal === undefined ? {} : { signal }),
      });
      await answer.text();
    };
    const leaver = new AbortController();
    const left = ask('somebody leaves '.repeat(150), leaver.signal).catch(() => {});
    await Promise.all([ask('a confidential prompt '.repeat(20)), ask('another confidential prompt '.repeat(9))]);
    leaver.abort();
    await left;
    child.kill('SIGTERM');
    assert.equal(await code, 0);
  } finally {
    child.kill('SIGKILL');
  }
  const text = readFileSync(path, 'utf8');
  assert.doesNotMatch(text, /confidential|somebody/);
  assert.match(text.split('\n')[0] ?? '', /"engine":\{"context":4096,.*"faults":\[\],"guardsOff":\[\]\}/);
  const whole = await cofferdam('verify', '--trace', path);
  assert.deepEqual([whole.code, whole.err], [0, '']);
  assert.match(whole.out, /^holds; \d{3,} steps conform\.\n$/);
  await tellsDamage(text);
});

async function tellsDamage(text: string): Promise<void> {
  const lines = text.trimEnd().split('\n');
  const middle = Math.floor(lines.length / 2);
  const version = `"version":${TRACE_VERSION}`;
  const damaged: readonly (readonly [string, string, number, RegExp])[] = [
    ['cut between two lines', `${lines.slice(0, middle).join('\n')}\n`, 3, /incomplete: the trace is cut/],
    ['cut in a line', text.slice(0, text.indexOf(lines[middle] ?? '') + 25), 3, /incomplete: the trace is cut/],
    ['of another version', text.replace(version, '"version":9'), 2, /line 1 of the trace to be of version 1, got `9`/],
    ['empty', '', 3, /incomplete: the trace is cut.* 0 steps/],
    ['garbage', '\u0000\u0001 no trace\n', 2, /line 1 of the trace to be one whole record of JSON/],
    ['another kind of JSON', '{"spans":[]}\n', 2, /line 1 of the trace to be the head/],
    ['without a line', lines.filter((_, i) => i !== middle).join('\n'), 2, /to be record/],
  ];
  for (const [name, damagedText, code, words] of damaged) {
    writeFileSync(at('damaged.jsonl'), damagedText);
    const told = await cofferdam('verify', '--trace', at('damaged.jsonl'));
    assert.equal(told.code, code, name);
    assert.match(told.out + told.err, words, name);
  }
  // A deviation counts whatever became of the rest.
  const submit = lines.findIndex((line) => line.includes('"event":"submit"'));
  const forged = lines
    .slice(0, middle)
    .map((line, i) => (i === submit ? line.replace(/"effects":.*/, '"effects":[]}') : line));
  writeFileSync(at('damaged.jsonl'), `${forged.join('\n')}\n{"n":`);
  const told = await cofferdam('verify', '--trace', at('damaged.jsonl'), '--output', 'json');
  assert.equal(told.code, 1);
  assert.equal((JSON.parse(told.out) as { deviation: { record: number } }).deviation.record, submit);
  assert.equal((await cofferdam('verify', '--trace', at('nothing.jsonl'))).code, 2);
}

test('`serve` traces too, without its tenants’ keys or names', async () => {
  const path = at('serve.jsonl');
  const world = { variables: {}, faultNames: FAULTS };
  const serving = await startServing(
    parseServeOptions({ port: '0', opsPort: '0', tenant: ['acme=key-of-acme-000000000000000000'], trace: path }, world),
  );
  const answer = await fetch(`${serving.facts.url}/v1/completions`, {
    method: 'POST',
    headers: { authorization: 'Bearer key-of-acme-000000000000000000', 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'lab', prompt: 'a confidential prompt '.repeat(9), max_tokens: 8 }),
  });
  assert.equal(answer.status, 200);
  await answer.text();
  assert.equal(await serving.close(), true);
  assert.doesNotMatch(readFileSync(path, 'utf8'), /acme|confidential|key-of/);
  assert.equal((await cofferdam('verify', '--trace', path)).code, 0);
});

test('a trace that finds no more room stops with a finding, the server serves on, and its exit code says so', async () => {
  const path = at('full.jsonl');
  const key = 'key-of-acme-000000000000000000';
  const flags = ['--port', '0', '--ops-port', '0', '--output', 'json', '--tenant', `acme=${key}`, '--trace', path];
  const child = spawn('sh', ['-c', 'ulimit -f 16; exec "$0" "$@"', process.execPath, MAIN, 'serve', ...flags]);
  let out = '';
  child.stdout.on('data', (piece: Buffer) => {
    out += piece.toString();
  });
  const code = new Promise<number | null>((resolve) => child.on('exit', resolve));
  try {
    while (!out.includes('\n')) await wait(10);
    const { url, opsUrl } = JSON.parse(out) as { url: string; opsUrl: string };
    const findings = async (): Promise<string> => (await fetch(`${opsUrl}/findings`)).text();
    while (!(await findings()).includes('engine.trace-stopped')) {
      const answer = await fetch(`${url}/v1/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'lab', prompt: 'a prompt '.repeat(9), max_tokens: 16 }),
      });
      assert.equal(answer.status, 200);
      await answer.text();
    }
    assert.match(await findings(), /EFBIG/);
    child.kill('SIGTERM');
    assert.equal(await code, 3);
  } finally {
    child.kill('SIGKILL');
  }
  const cut = await cofferdam('verify', '--trace', path);
  assert.deepEqual([cut.code, cut.err], [3, '']);
  assert.match(cut.out, /^incomplete: the trace is cut.*; \d{2,} steps conform/);
});

test('a file that cannot be written is wrong usage at the start, and nothing starts', async () => {
  const unwritable = [at('no/such/folder/t.jsonl'), folder, ...(existsSync('/dev/full') ? ['/dev/full'] : [])];
  for (const path of unwritable) {
    const { code, out, err } = await cofferdam('engine', '--port', '0', '--trace', path);
    assert.deepEqual([code, out], [2, '']);
    assert.match(
      err,
      /^error: Expected `--trace` to be a file that can be written, got .*\((?:ENOENT|EISDIR|ENOSPC)\)\n$/,
    );
  }
});

test('a disk that fills up stops the trace once, with its reason, and takes no more', async () => {
  let writes = 0;
  const stops: string[] = [];
  const handle = {
    appendFile: () =>
      ++writes < 3 ? Promise.resolve() : Promise.reject(Object.assign(new Error(), { code: 'ENOSPC' })),
    close: () => Promise.resolve(),
  };
  const file = new TraceFile(handle, {}, (why) => stops.push(why));
  for (let i = 0; i < 6; i++) {
    file.writer.record('"x":1}');
    await file.flush();
  }
  await file.close();
  assert.deepEqual([writes, stops, file.stopped], [3, ['ENOSPC'], 'ENOSPC']);
});

test('one write is under way at a time, and what waits behind a disk that stands still is bounded', async () => {
  let writes = 0;
  let goOn: () => void = () => {};
  const stops: string[] = [];
  const handle = {
    appendFile: () => {
      writes++;
      return new Promise<void>((resolve) => {
        goOn = resolve;
      });
    },
    close: () => Promise.resolve(),
  };
  const file = new TraceFile(handle, {}, (why) => stops.push(why));
  const tail = `"x":"${'-'.repeat(2 ** 20)}"}`;
  for (let i = 0; i < 20; i++) file.writer.record(tail);
  assert.deepEqual([writes, stops], [1, []]);
  for (let i = 0; i < 20; i++) file.writer.record(tail);
  assert.deepEqual([writes, stops], [1, ['the disk does not keep up']]);
  goOn();
  await file.close();
  assert.equal(writes, 1);
});
