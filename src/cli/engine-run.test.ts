/** Goal: `cofferdam engine` starts, says what it is, and ends on a signal. Method: the real command as a process of its own. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { SystemClock } from '../base/clock.js';

const MAIN = new URL('./main.js', import.meta.url).pathname;
const clock = new SystemClock();

interface Run {
  readonly child: ChildProcess;
  readonly out: () => string;
  readonly err: () => string;
  readonly code: Promise<number | null>;
}

function run(...args: string[]): Run {
  const child = spawn(process.execPath, [MAIN, 'engine', ...args]);
  let [out, err] = ['', ''];
  child.stdout.on('data', (piece: Buffer) => {
    out += piece.toString();
  });
  child.stderr.on('data', (piece: Buffer) => {
    err += piece.toString();
  });
  const code = new Promise<number | null>((resolve) => child.on('exit', resolve));
  return { child, out: () => out, err: () => err, code };
}

async function shows({ out, err, child }: Run, words: string): Promise<void> {
  while (!out().includes(words)) {
    assert.equal(child.exitCode, null, err());
    await new Promise<void>((resolve) => clock.after(10, resolve));
  }
}

test('a pair starts with a fault, says so on every line and in every answer, and ends within two seconds', async () => {
  const started = run(
    '--prefill-port',
    '0',
    '--decode-port',
    '0',
    '--context',
    '1024',
    '--fault',
    'rejected-stays-alive',
  );
  try {
    await shows(started, 'Ctrl-C');
    assert.match(started.err(), /^warning: /);
    const lines = started.out().trimEnd().split('\n');
    for (const line of lines) assert.match(line, /^\[FAULT rejected-stays-alive; GUARDS OFF /);
    assert.match(started.out(), /advertised context {2}1024 tokens[\s\S]*prefill pool {8}512 tokens/);
    const urls = [...started.out().matchAll(/http:\/\/\S+/g)].map(([url]) => url);
    assert.equal(urls.length, 2);
    for (const url of urls) {
      const answer = await fetch(`${url}/server_info`);
      assert.equal(answer.headers.get('x-cofferdam-fault'), 'rejected-stays-alive');
      assert.match(answer.headers.get('x-cofferdam-guards-off') ?? '', /rejection/);
      const notFound = await fetch(`${url}/nothing`);
      assert.equal(notFound.headers.get('x-cofferdam-fault'), 'rejected-stays-alive');
    }
    // A request of which only one leg came must not hold the end up.
    const alone = fetch(`${urls[0]}/generate`, {
      method: 'POST',
      body: JSON.stringify({ text: 'alone', bootstrap_room: 1 }),
    });
    await new Promise<void>((resolve) => clock.after(50, resolve));
    const begunMs = clock.nowMs();
    started.child.kill('SIGINT');
    assert.equal((await alone).status, 503);
    assert.equal(await started.code, 0);
    assert.ok(clock.nowMs() - begunMs < 2000);
  } finally {
    started.child.kill('SIGKILL');
  }
});

test('a single node gives its facts as one line of JSON', async () => {
  const started = run('--port', '0', '--output', 'json', '--decode-pool', '2048');
  try {
    await shows(started, '\n');
    const facts = JSON.parse(started.out()) as Record<string, unknown>;
    assert.deepEqual([facts.advertised, facts.effectiveLimit, facts.limitedBy], [4096, 2048, 'decode pool']);
    assert.deepEqual([facts.faults, facts.guardsOff], [[], []]);
    assert.equal((await fetch(`${String(facts.url)}/health`)).status, 200);
    started.child.kill('SIGTERM');
    assert.equal(await started.code, 0);
    assert.equal(started.out().trimEnd().split('\n').length, 1);
  } finally {
    started.child.kill('SIGKILL');
  }
});

test('a port in use, and guards off beyond loopback, are refused with one clear line', async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  const { port } = taken.address() as { port: number };
  const busy = run('--port', String(port));
  assert.equal(await busy.code, 2);
  assert.match(busy.err(), new RegExp(`port \`${port}\` on \`127.0.0.1\` to be free`));
  taken.close();
  for (const args of [
    ['--guards', 'off'],
    ['--guard-off', 'tag'],
    ['--fault', 'count-unchecked'],
  ]) {
    const open = run('--host', '0.0.0.0', '--port', '0', ...args);
    assert.equal(await open.code, 2);
    assert.match(open.err(), /loopback/);
  }
});
