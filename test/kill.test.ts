/**
 * Goal: what `kill -9` leaves behind is nothing that the next start trips over. Method: the real program on a file of configuration
 * with a keys file and a trace, killed under load with streams open; started again on the same ports, files and trace.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { SystemClock, sleep } from '../src/base/clock.js';
import { heldAfter, keysPathIn, startProgram, startServe, stopProgram, untilSaid } from './support/program.js';

const clock = new SystemClock();
const PROMPT = 'The word of the day is cofferdam. Today the word of the day is ';
const STREAMS = 6;
const TRACE_BYTES_MIN = 4096;
const WAIT_MS_MAX = 10_000;

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}

describe('after kill -9 of the whole process', () => {
  let folder = '';
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'cofferdam-kill-'));
  });
  after(() => rmSync(folder, { recursive: true }));

  test('the next start on the same ports, configuration and trace is clean and answers', async () => {
    const [port, opsPort] = [await freePort(), await freePort()];
    const config = join(folder, 'cofferdam.yaml');
    const trace = join(folder, 'run.trace');
    writeFileSync(join(folder, 'acme.key'), 'acme-key-1\n');
    writeFileSync(
      config,
      `listen: {port: ${port}}\noperators: {port: ${opsPort}}\noutput: json\ntenants: [{name: acme, keys: [file:acme.key]}]\n`,
    );
    const start = async () => {
      const program = startProgram(['serve', '--config', config, '--trace', trace]);
      await untilSaid(program, () => program.out().includes('\n'));
      return program;
    };
    const ask = (more: object): Promise<Response> =>
      fetch(`http://127.0.0.1:${port}/v1/completions`, {
        method: 'POST',
        headers: { authorization: 'Bearer acme-key-1' },
        body: JSON.stringify({ model: 'lab', max_tokens: 9, prompt: PROMPT, ...more }),
      });

    const first = await start();
    const open = await Promise.all(Array.from({ length: STREAMS }, () => ask({ stream: true, max_tokens: 4000 })));
    const ends = open.map((response) =>
      response.text().then(
        () => 'whole',
        () => 'cut',
      ),
    );
    const deadline = clock.nowMs() + WAIT_MS_MAX;
    const traced = (): number => (existsSync(trace) ? readFileSync(trace).length : 0);
    while (traced() < TRACE_BYTES_MIN && clock.nowMs() < deadline) await sleep(clock, 5);
    assert.ok(traced() >= TRACE_BYTES_MIN, 'the load was traced');
    first.child.kill('SIGKILL');
    assert.equal((await first.ended).signal, 'SIGKILL');
    assert.ok((await Promise.all(ends)).includes('cut'), 'it was killed under load');

    const second = await start();
    try {
      const health = await fetch(`http://127.0.0.1:${opsPort}/healthz`);
      assert.deepEqual([health.status, ((await health.json()) as { status: string }).status], [200, 'ok']);
      assert.deepEqual(await heldAfter(`http://127.0.0.1:${opsPort}`, 2000), []);
      const answer = await ask({});
      assert.equal(answer.status, 200);
      assert.equal(((await answer.json()) as { choices: { text: string }[] }).choices[0]?.text, 'cofferdam');
      assert.deepEqual(await (await fetch(`http://127.0.0.1:${opsPort}/findings`)).json(), []);
    } finally {
      const ended = await stopProgram(second, 'SIGTERM');
      assert.deepEqual([ended.code, ended.err.includes('error')], [0, false], ended.err);
    }
    const lines = readFileSync(trace, 'utf8').trimEnd().split('\n');
    for (const line of lines) assert.doesNotThrow(() => JSON.parse(line), 'a half line of the killed run is left');
  });

  test('fresh keys that it left in a file are removed by the next start, which makes its own', async () => {
    const first = await startServe();
    const left = keysPathIn(first.err());
    assert.ok(left !== null && existsSync(left));
    first.child.kill('SIGKILL');
    await first.ended;
    assert.ok(existsSync(left), 'what was killed could not remove its keys');
    const second = await startServe();
    try {
      assert.ok(!existsSync(dirname(left)), 'the keys of the killed run are still there');
      const old = await second.post('/v1/completions', first.keys.get('acme') ?? '', { model: 'lab', prompt: PROMPT });
      assert.equal(old.status, 401);
      const fresh = second.keys.get('acme') ?? '';
      const answer = await second.post('/v1/completions', fresh, { model: 'lab', max_tokens: 9, prompt: PROMPT });
      assert.equal(answer.status, 200);
    } finally {
      await second.stop();
    }
  });
});
