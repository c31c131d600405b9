/**
 * Goal: a node that answers nothing, too much, too late or something else never costs more than its bound, and what was read of it
 * is not older than it must be. Method: real HTTP for one request; a manual clock and written readings for the watcher.
 */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { ManualClock, SystemClock } from '../base/clock.js';
import { type FakeNode, fakeNode } from '../../test/support/fake-node.js';
import {
  EndpointReader,
  jsonOf,
  LATE_MAX,
  type NodeReading,
  NodeWatcher,
  READ_EVERY_MS,
  RETRY_EVERY_MS,
} from './poll.js';
import type { UpstreamNotice } from './notice.js';

const clock = new SystemClock();
const nodes: FakeNode[] = [];
const readers: EndpointReader[] = [];
after(async () => {
  for (const reader of readers) reader.close();
  await Promise.all(nodes.map((node) => node.close()));
});

async function reader(
  answers: Parameters<typeof fakeNode>[0],
  options: { msMax?: number; bytesMax?: number; key?: string } = {},
): Promise<{ node: FakeNode; reader: EndpointReader }> {
  const node = await fakeNode(answers, options.key ?? null);
  const { key = null, ...bounds } = options;
  const made = new EndpointReader({ clock, url: new URL(`${node.url}/base/`), key, ...bounds });
  nodes.push(node);
  readers.push(made);
  return { node, reader: made };
}

describe('one question to a node', () => {
  test('goes to its path under the URL, with the engine’s own key and over a connection that is kept', async () => {
    const sockets = new Set<unknown>();
    const { node, reader: ask } = await reader(
      {
        '/base/server_info': (request, response) => {
          sockets.add(request.socket);
          response.end('{"version":"0.5.18"}');
        },
      },
      { key: 'engine-key' },
    );
    for (let i = 0; i < 3; i++) assert.deepEqual(jsonOf(await ask.get('/server_info')), { version: '0.5.18' });
    assert.equal(sockets.size, 1);
    assert.deepEqual(node.asked[0], { method: 'GET', path: '/base/server_info', authorization: 'Bearer engine-key' });
  });

  test('follows no redirect, and a body that is no JSON is no answer', async () => {
    const { node, reader: ask } = await reader({
      '/base/a': { status: 302, headers: { location: '/base/b' } },
      '/base/b': { body: 'secret' },
      '/base/c': { body: '{"half":' },
    });
    const moved = await ask.get('/a');
    assert.ok(moved.kind === 'answer' && moved.status === 302);
    assert.equal(jsonOf(await ask.get('/c')), undefined);
    assert.equal(jsonOf(moved), undefined);
    assert.deepEqual(
      node.asked.map(({ path }) => path),
      ['/base/a', '/base/c'],
    );
  });

  test('ends at its bounds of bytes and of time, and where the answer is cut', async () => {
    const bounds = { bytesMax: 1000, msMax: 200 };
    const { reader: ask } = await reader(
      {
        '/base/long': (_, response) => void response.end('x'.repeat(1001)),
        '/base/never': () => {},
        '/base/slow': (_, response) => void response.write('{'),
        '/base/cut': (_, response) => {
          response.writeHead(200, { 'content-length': '10' });
          response.write('{');
          clock.soon(() => response.destroy());
        },
      },
      bounds,
    );
    const why = async (path: string): Promise<string> => {
      const got = await ask.get(path);
      return got.kind === 'failure' ? got.why : 'answer';
    };
    assert.deepEqual(await Promise.all(['/long', '/never', '/slow', '/cut'].map(why)), [
      'too-long',
      'late',
      'late',
      'gone',
    ]);
    await nodes.pop()!.close();
    assert.equal(await why('/long'), 'gone');
  });

  test('may be a POST with a body', async () => {
    const { reader: ask } = await reader({
      '/base/tokenize': (request, response) => {
        let body = '';
        request.on('data', (chunk: Buffer) => (body += chunk.toString()));
        request.on('end', () => response.end(JSON.stringify({ got: body })));
      },
    });
    assert.deepEqual(jsonOf(await ask.post('/tokenize', { prompt: 'é' })), { got: '{"prompt":"é"}' });
  });
});

/** A watcher over written readings: the last one is repeated. */
function watched(readings: (NodeReading<string> | Error)[]) {
  const clock = new ManualClock();
  const notices: UpstreamNotice[] = [];
  const seen: [string, string | null][] = [];
  let reads = 0;
  const watcher = new NodeWatcher<string>({
    clock,
    node: 'n:1',
    read: () => {
      const reading = readings[Math.min(reads++, readings.length - 1)]!;
      return reading instanceof Error ? Promise.reject(reading) : Promise.resolve(reading);
    },
    onRead: (now, before) => seen.push([now, before]),
    onNotice: (notice) => notices.push(notice),
  });
  return { clock, watcher, notices, seen, reads: () => reads };
}

const said = (state: string): NodeReading<string> => ({ kind: 'read', state });
const GONE: NodeReading<string> = { kind: 'failed', isGone: true, words: 'the connection failed (ECONNREFUSED)' };
const LATE: NodeReading<string> = { kind: 'failed', isGone: false, words: 'no whole answer within 5000 ms' };
/** Lets the promises of one reading settle. */
const settle = async (): Promise<void> => {
  for (let i = 0; i < 10; i++) await Promise.resolve();
};

describe('a watched node', () => {
  test('is read on a timer, and what it said before is at hand', async () => {
    const { clock, watcher, seen, reads } = watched([said('a'), said('b')]);
    assert.equal(watcher.isUp, false, 'nothing is known before the first reading');
    await watcher.start();
    assert.deepEqual([watcher.isUp, watcher.state], [true, 'a']);
    clock.advance(READ_EVERY_MS - 1);
    assert.equal(reads(), 1);
    clock.advance(1);
    await settle();
    assert.deepEqual(seen, [
      ['a', null],
      ['b', 'a'],
    ]);
    watcher.close();
    clock.advance(READ_EVERY_MS * 5);
    assert.equal(reads(), 2);
  });

  test('a clock that jumps ahead by a day makes one reading, not a day’s worth', async () => {
    const { clock, watcher, reads } = watched([said('a')]);
    await watcher.start();
    clock.advance(86_400_000);
    await settle();
    assert.equal(reads(), 2);
    watcher.close();
  });

  test('is unreachable at once where nothing listens, is asked every second, and comes back with what it says then', async () => {
    const { clock, watcher, notices, reads } = watched([said('a'), GONE, GONE, said('b')]);
    await watcher.start();
    await watcher.readNow();
    assert.deepEqual([watcher.isUp, watcher.failure], [false, 'the connection failed (ECONNREFUSED)']);
    assert.equal(watcher.state, 'a', 'what it said is still known');
    for (let i = 0; i < 2; i++) {
      clock.advance(RETRY_EVERY_MS);
      await settle();
    }
    assert.deepEqual([reads(), watcher.isUp, watcher.state], [4, true, 'b']);
    assert.deepEqual(
      notices.map(({ kind, node }) => `${kind} ${node}`),
      ['unreachable n:1', 'back n:1'],
    );
    watcher.close();
  });

  test('is unreachable after several late answers, not after one', async () => {
    const { clock, watcher, notices } = watched([said('a'), LATE]);
    await watcher.start();
    for (let late = 1; late <= LATE_MAX; late++) {
      await watcher.readNow();
      assert.equal(watcher.isUp, late < LATE_MAX, `${late} late`);
    }
    clock.advance(RETRY_EVERY_MS);
    await settle();
    assert.equal(notices.length, 1, 'said once');
    watcher.close();
  });

  test('that never answered is unreachable from the first, and a reading that throws is no answer', async () => {
    for (const reading of [LATE, new Error('a bug')]) {
      const { watcher, notices } = watched([reading]);
      await watcher.start();
      await watcher.readNow();
      assert.deepEqual([watcher.isUp, watcher.state, notices.length], [false, null, 1]);
      watcher.close();
    }
  });

  test('asked again while it is being read is read once more, not twice', async () => {
    const { watcher, reads } = watched([said('a')]);
    await Promise.all([watcher.start(), watcher.readNow(), watcher.readNow()]);
    assert.equal(reads(), 2);
    watcher.close();
  });
});
