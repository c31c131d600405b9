/** Goal: the "without Cofferdam" side is what today's balancers do. Method: nodes of a few lines that note what they were sent. */
import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { SystemClock } from '../../src/base/clock.js';
import { ask, completion, inWords } from './ask.js';
import { CouldNotRun } from './could-not-run.js';
import { parseOptions } from './options.js';
import { Processes } from './processes.js';
import { SCENARIOS } from './scenarios.js';
import { startSplitter, withRoom } from './splitter.js';

interface Node {
  readonly url: string;
  readonly bodies: string[];
  close(): void;
}

async function startNode(status: number, answer: (body: string) => unknown): Promise<Node> {
  const bodies: string[] = [];
  const server: Server = createServer((asked, said) => {
    let body = '';
    asked.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    asked.on('end', () => {
      if (asked.method === 'POST') bodies.push(body);
      said.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer(body)));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  assert.ok(address !== null && typeof address !== 'string');
  return { url: `http://127.0.0.1:${address.port}`, bodies, close: () => server.close() };
}

const text = (words: string, promptTokens: number) => ({
  choices: [{ text: words, finish_reason: 'length' }],
  usage: { prompt_tokens: promptTokens },
});

test('both legs of a pair get the same body and room, and decode answers whatever prefill said', async () => {
  const prefill = await startNode(400, () => ({ error: { message: 'too long' } }));
  const decode = await startNode(200, () => text('of other pages', 3000));
  const pairing = { kind: 'sglang', prefill: [{ url: prefill.url, bootstrapPort: 8998 }], decode: decode.url } as const;
  const splitter = await startSplitter(pairing);
  const body = completion('long', 8, { bootstrap_room: 1, bootstrap_host: '2.2.2.2' });
  const said = await ask({ url: splitter.url, body, deadlineMs: 10_000 });
  assert.equal(inWords(said), '200, prompt_tokens 3000');
  assert.equal(said.text, 'of other pages');
  assert.equal(prefill.bodies.length, 1);
  assert.deepEqual(prefill.bodies, decode.bodies);
  const [, room] = /"bootstrap_host":"127\.0\.0\.1","bootstrap_port":8998,"bootstrap_room":(\d+)}$/.exec(
    decode.bodies[0]!,
  )!;
  assert.ok(BigInt(room!) < 2n ** 63n && room !== '1');
  await splitter.close();
  prefill.close();
  decode.close();
});

test('a room above what a number of JavaScript holds is written digit for digit', () => {
  const written = withRoom(Buffer.from('{"a":1}'), 'h', 2, 9046351419888738945n).toString();
  assert.equal(written, '{"a":1,"bootstrap_host":"h","bootstrap_port":2,"bootstrap_room":9046351419888738945}');
});

test("over NIXL decode gets what prefill's answer names, and a client's own parameters pass", async () => {
  const prefill = await startNode(200, () => ({ ...text('', 5), kv_transfer_params: { remote_block_ids: [7] } }));
  const decode = await startNode(200, () => text('answer', 5));
  const splitter = await startSplitter({ kind: 'nixl', prefill: prefill.url, decode: decode.url });
  await ask({ url: splitter.url, body: completion('p', 8, { stream: true }), deadlineMs: 10_000 });
  await ask({
    url: splitter.url,
    body: completion('p', 8, { kv_transfer_params: { remote_block_ids: [9] } }),
    deadlineMs: 10_000,
  });
  const first = JSON.parse(prefill.bodies[0]!) as Record<string, unknown>;
  assert.deepEqual([first.stream, first.max_tokens, prefill.bodies.length], [false, 1, 1]);
  const params = decode.bodies.map((each) => (JSON.parse(each) as Record<string, unknown>).kv_transfer_params);
  assert.deepEqual(params, [{ remote_block_ids: [7] }, { remote_block_ids: [9] }]);
  await splitter.close();
  prefill.close();
  decode.close();
});

test('a node that never answers is silence, not a hang of ours', async () => {
  const silent = createServer(() => undefined);
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const address = silent.address();
  assert.ok(address !== null && typeof address !== 'string');
  const url = `http://127.0.0.1:${address.port}`;
  const said = await ask({ url, body: completion('p', 1), deadlineMs: 50 });
  assert.deepEqual([said.status, said.end], [0, 'silent']);
  silent.closeAllConnections();
  silent.close();
});

test('an engine that ends while it starts could not run, with the end of what it said', async () => {
  const processes = new Processes(
    new SystemClock(),
    mkdtempSync(join(tmpdir(), 'cofferdam-engines-')),
    () => undefined,
  );
  const dying = {
    name: `cofferdam-engines-test-${process.pid}`,
    command: process.execPath,
    args: ['-e', 'console.error("no such pool"); process.exitCode = 4'],
    ready: { text: 'never said' },
  };
  await assert.rejects(processes.startAll([dying]), (thrown) => {
    assert.ok(thrown instanceof CouldNotRun);
    assert.match(thrown.message, /ended while it started: no such pool/);
    return true;
  });
});

test('the command line names what it wants', () => {
  const parsed = (...args: string[]) => parseOptions(args, SCENARIOS);
  assert.equal(parsed('--help').kind, 'help');
  const whole = parsed();
  assert.ok(whole.kind === 'run' && whole.options.names.length === SCENARIOS.length);
  const one = parsed('sglang-pd', '--side', 'direct', '--output', 'json', '--folder', 'engines');
  assert.deepEqual(one.kind === 'run' && { ...one.options }, {
    names: ['sglang-pd'],
    sides: ['direct'],
    folder: 'engines',
    output: 'json',
    seed: 9000,
  });
  for (const wrong of [['sglang'], ['--side', 'x'], ['--output', 'x'], ['--seed', 'x'], ['--nothing']]) {
    assert.equal(parsed(...wrong).kind, 'wrong', wrong.join(' '));
  }
});
