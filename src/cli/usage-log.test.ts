/**
 * Goal: every settled request is one whole line of a bounded number of files, without a word of a tenant's; and a disk that fails
 * costs lines, never an answer. Method: the log over real files and over a writer that fails; then what `serve` writes.
 */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, write, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { VllmDouble } from '../../test/support/vllm-double.js';
import { SystemClock, sleep } from '../base/clock.js';
import type { Finding } from '../findings/finding.js';
import { parseServeOptions } from './options.js';
import { startServing } from './serve-run.js';
import { USAGE_WAITING_BYTES_MAX, UsageLog, type UsageLogOptions } from './usage-log.js';

const clock = new SystemClock();
let folder = '';
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'cofferdam-usage-'));
});
after(() => rmSync(folder, { recursive: true }));

function open(name: string, more: Partial<UsageLogOptions> = {}) {
  const findings: Finding[] = [];
  const path = join(folder, name);
  const log = new UsageLog({
    path,
    rotateBytes: 4096,
    keep: 2,
    findings: { record: (finding) => findings.push(finding) },
    ...more,
  });
  return { log, path, ids: () => findings.map(({ id }) => id), findings };
}

const linesOf = (path: string): unknown[] =>
  readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);

describe('the log of settled requests', () => {
  test('holds a line for each, in their order, over restarts too, readable for its owner alone', async () => {
    const first = open('order');
    for (let n = 0; n < 100; n++) first.log.append({ n });
    await first.log.close();
    const second = open('order');
    second.log.append({ n: 100 });
    await second.log.close();
    assert.deepEqual(
      linesOf(first.path),
      Array.from({ length: 101 }, (_, n) => ({ n })),
    );
    assert.equal(statSync(first.path).mode & 0o777, 0o600);
  });

  test('is renamed at its size, and no more files are kept than were asked for', async () => {
    const { path } = open('rotated');
    for (let n = 0; n < 12; n++) {
      const { log } = open('rotated');
      log.append({ n, filler: 'x'.repeat(2500) });
      await log.close();
    }
    const there = readdirSync(folder).filter((name) => name.startsWith('rotated'));
    assert.deepEqual(there.sort(), ['rotated', 'rotated.1', 'rotated.2']);
    const kept = [`${path}.2`, `${path}.1`, path].flatMap(linesOf).map((line) => (line as { n: number }).n);
    assert.deepEqual(kept, [6, 7, 8, 9, 10, 11]);
  });

  test('a disk that is full is told once, half a line is not read as one, and what follows is written', async () => {
    let fails = 0;
    const { log, path, ids } = open('full', {
      writer: (fd, bytes, done) => {
        if (fails === 0) return write(fd, bytes, done);
        const half = fails-- % 2 === 0;
        if (half)
          return write(fd, bytes.subarray(0, 5), () => done(Object.assign(new Error('full'), { code: 'ENOSPC' }), 0));
        done(Object.assign(new Error('full'), { code: 'ENOSPC' }), 0);
      },
    });
    log.append({ n: 0 });
    await settled(log, 1);
    fails = 4;
    for (let n = 1; n <= 4; n++) {
      log.append({ n });
      await settled(log, n + 1);
    }
    log.append({ n: 5 });
    await log.close();
    assert.deepEqual(ids(), ['usage-log-failed', 'usage-log-back']);
    assert.deepEqual(log.counts, { written: 2, dropped: 4 });
    const whole = readFileSync(path, 'utf8')
      .split('\n')
      .filter((line) => line.endsWith('}'));
    assert.deepEqual(whole, ['{"n":0}', '{"n":5}']);
  });

  test('a folder that is not there is a finding, and the first line after it came is written', async () => {
    const { log, ids } = open('later/usage.jsonl');
    log.append({ n: 0 });
    mkdirSync(join(folder, 'later'));
    log.append({ n: 1 });
    await log.close();
    assert.deepEqual(linesOf(join(folder, 'later/usage.jsonl')), [{ n: 1 }]);
    assert.deepEqual(ids(), ['usage-log-failed', 'usage-log-back']);
  });

  test('a disk that stands still holds a bounded number of bytes', async () => {
    const waiting: (() => void)[] = [];
    const { log, ids } = open('slow', {
      writer: (_fd, bytes, done) => void waiting.push(() => done(null, bytes.length)),
    });
    const line = { filler: 'x'.repeat(1_048_576) };
    for (let n = 0; n < 20; n++) log.append(line);
    const { dropped } = log.counts;
    assert.ok(dropped >= 20 - USAGE_WAITING_BYTES_MAX / 1_048_576 - 1 && dropped < 10, `${dropped}`);
    assert.deepEqual(ids(), ['usage-log-failed']);
    const closed = log.close();
    while (waiting.length > 0) waiting.shift()!();
    await closed;
  });
});

/** As many lines were written or dropped. */
async function settled(log: UsageLog, lines: number): Promise<void> {
  while (log.counts.written + log.counts.dropped < lines) await sleep(clock, 1);
}

test('serve writes who, where and how many tokens, and no text; a file that can not be written costs no answer', async () => {
  const double = new VllmDouble();
  const upstream = await double.listen();
  const path = join(folder, 'served.jsonl');
  const world = { variables: { ACME: 'sk-acme-0001' }, faultNames: [] };
  const flags = { port: '0', opsPort: '0', tenant: ['acme=env:ACME'], upstream: [upstream] };
  const ask = async (url: string, content: string): Promise<number> => {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-acme-0001', 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'tiny', max_tokens: 3, messages: [{ role: 'user', content }] }),
    });
    await response.arrayBuffer();
    return response.status;
  };
  const serving = await startServing(parseServeOptions({ ...flags, usage: path }, world));
  const statuses = [await ask(serving.facts.url, 'a-secret-word'), await ask(serving.facts.url, 'long'.repeat(1000))];
  await serving.close();
  const rows = linesOf(path) as {
    tenant: string;
    engine: string | null;
    outcome: string;
    said: { completion: number | null };
  }[];
  assert.deepEqual(
    rows.map(({ tenant, engine, outcome, said }) => [tenant, engine, outcome, said.completion]),
    [
      ['acme', new URL(upstream).host, 'finished', 3],
      ['acme', null, 'refused', null],
    ],
  );
  assert.ok(!readFileSync(path, 'utf8').includes('a-secret-word') && !readFileSync(path, 'utf8').includes('sk-acme'));
  writeFileSync(join(folder, 'file'), '');
  const broken = await startServing(parseServeOptions({ ...flags, usage: join(folder, 'file/usage.jsonl') }, world));
  statuses.push(await ask(broken.facts.url, 'hello'));
  assert.deepEqual(statuses, [200, 400, 200]);
  assert.ok(broken.findings.list().some(({ id }) => id === 'usage-log-failed'));
  await broken.close();
  await double.close();
});
