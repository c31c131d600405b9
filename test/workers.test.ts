/**
 * Goal: several processes behind one port are one server to tenants and to engines; one that dies is replaced, and all end together.
 * Method: the real program with two of them in front of a double of vLLM.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { SystemClock, sleep } from '../src/base/clock.js';
import { readMetrics, runCommand, startProgram, startServe, stopProgram, untilSaid } from './support/program.js';
import { VllmDouble } from './support/vllm-double.js';

const clock = new SystemClock();
const double = new VllmDouble();
let url = '';
before(async () => {
  url = await double.listen();
});
after(() => double.close());

const ASK = JSON.stringify({ model: 'tiny', max_tokens: 2, prompt: 'hello' });

/** One request on a connection of its own, so that the processes take turns; the status, null where the connection failed. */
async function ask(base: string): Promise<number | null> {
  try {
    const response = await fetch(`${base}/v1/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-acme', 'content-type': 'application/json', connection: 'close' },
      body: ASK,
    });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return null;
  }
}

const admitted = async (opsUrl: string): Promise<number> =>
  (await readMetrics(opsUrl)).get('cofferdam_admissions_total') ?? 0;

describe('several processes', { concurrency: 2 }, () => {
  test('share the port and one salt, replace one that dies, and end together', async () => {
    const served = await startServe(['--upstream', url, '--tenant', 'acme=env:ACME', '--workers', '2'], {
      ACME: 'sk-acme',
    });
    try {
      const facts = served.facts as typeof served.facts & {
        readonly workers: number;
        readonly opsUrls: readonly string[];
      };
      assert.deepEqual([facts.workers, new Set(facts.opsUrls).size], [2, 2]);
      for (let i = 0; i < 6; i++) assert.equal(await ask(facts.url), 200);
      const counts = await Promise.all(facts.opsUrls.map(admitted));
      assert.ok(
        counts.every((count) => count > 0),
        `${counts.join()} were admitted`,
      );
      const salts = new Set(double.asked.map(({ body }) => body.cache_salt));
      assert.deepEqual([salts.size, typeof [...salts][0]], [1, 'string'], 'one tenant has one salt');
      const pid = served.child.pid!;
      const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);
      process.kill(child!, 'SIGKILL');
      await untilSaid(served, () => served.err().includes('ended by itself and is started again'));
      for (let i = 0; i < 4; i++) assert.ok([200, null].includes(await ask(facts.url)));
      while (readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').length < 2)
        await sleep(clock, 20);
    } catch (thrown) {
      await served.stop('SIGTERM');
      throw thrown;
    }
    const ended = await served.stop('SIGTERM');
    assert.equal(ended.code, 0, ended.err);
    assert.equal(new Set(double.asked.map(({ body }) => body.cache_salt)).size, 1);
  });

  test('are refused where one process has to hold it all, and what refuses the start is said once', async () => {
    const alone = await runCommand(['serve', '--workers', '2', '--tenant', 'acme=env:ACME'], { ACME: 'sk-acme' });
    assert.equal(alone.code, 2);
    assert.match(
      alone.err,
      /Expected `--upstream` with `--workers 2`, got none: the embedded engine is of one process/,
    );
    const gone = [
      'serve',
      '--workers',
      '2',
      '--upstream',
      'http://127.0.0.1:1',
      '--tenant',
      'acme=env:ACME',
      '--port',
      '0',
      '--ops-port',
      '0',
    ];
    const refused = await runCommand(gone, { ACME: 'sk-acme' });
    assert.deepEqual([refused.code, refused.err.match(/Expected an engine/g)?.length], [2, 1], refused.err);
  });

  test('that wait for an engine end at a signal', async () => {
    const flags = ['--workers', '2', '--wait', '--upstream', 'http://127.0.0.1:1', '--port', '0', '--ops-port', '0'];
    const program = startProgram(['serve', ...flags, '--tenant', 'acme=env:ACME'], { ACME: 'sk-acme' });
    await untilSaid(program, () => program.err().includes('waiting for 127.0.0.1:1'));
    assert.equal((await stopProgram(program, 'SIGTERM')).code, 0);
  });
});
