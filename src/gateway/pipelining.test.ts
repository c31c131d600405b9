/** Goal: what a client sends ahead of its turn on one connection holds nothing and cuts into nothing. Method: raw sockets. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { PIPELINED_MAX } from '../wire/listener.js';
import {
  AUTH,
  type Harness,
  idle,
  type RawClient,
  rawClient,
  rawRequest,
  startHarness,
  until,
} from '../../test/support/gateway-harness.js';

/** Room for an answer that is still running when the next thing happens. */
const BIG = { context: 8192, prefillPool: 8192, decodePool: 65_536 };

function request(prompt: string, more: object = {}): string {
  const body = JSON.stringify({ model: 'lab', prompt, max_tokens: 2000, ...more });
  return rawRequest('/v1/completions', body, [AUTH, `Content-Length: ${body.length}`]);
}

describe('requests sent ahead on one connection', () => {
  let harness: Harness;
  before(async () => {
    harness = await startHarness({ engine: BIG });
  });
  after(() => harness.close());
  afterEach(() => {
    harness.engine.hold = 'nothing';
    harness.engine.wake();
  });

  /** A client whose first answer has begun and goes no further, with what it sent behind it. */
  const begun = async (behind: string): Promise<RawClient> => {
    const client = await rawClient(harness.port);
    client.socket.write(request('a'.repeat(2000), { stream: true }) + behind);
    await until(harness.clock, 'the first answer to begin', () => client.received().includes('data: '));
    harness.engine.hold = 'decode';
    return client;
  };

  test('they are answered one after the other, in order', async () => {
    const client = await rawClient(harness.port);
    client.socket.write(request('first one') + request('second one') + request('third one'));
    await until(harness.clock, 'three answers', () => client.received().split('HTTP/1.1 200').length === 4);
    assert.match(client.received(), /first[\s\S]*second[\s\S]*third/);
    client.socket.destroy();
  });

  test('a client that leaves behind them leaves nothing of them held', async () => {
    const client = await begun(request('b'.repeat(2000), { stream: true }) + request('c'));
    assert.equal(harness.gateway.room.running, 1, 'the others have not had their turn');
    client.socket.destroy();
    harness.engine.hold = 'nothing';
    await until(harness.clock, 'nothing to be held', () => idle(harness));
    assert.equal(
      harness.engine.runs.at(-1)!.request.prompt[0],
      'a'.charCodeAt(0),
      'the others never reached the engine',
    );
  });

  test('garbage behind a request that waits does not cut into the stream that runs', async () => {
    const client = await begun(request('b'));
    client.socket.write('NOT HTTP\r\n\r\n');
    await until(harness.clock, 'the connection to end', () => client.socket.destroyed);
    assert.doesNotMatch(client.received(), /HTTP\/1\.1 400/);
    await until(harness.clock, 'nothing to be held', () => idle(harness));
  });

  test('a client that sends more ahead than the bound loses its connection', async () => {
    const client = await begun('');
    client.socket.write('GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(PIPELINED_MAX + 1));
    await until(harness.clock, 'the connection to end', () => client.socket.destroyed);
    harness.engine.hold = 'nothing';
    await until(harness.clock, 'nothing to be held', () => idle(harness));
  });
});

describe('sockets without a request', () => {
  test('where there are too many, the one that has been idle longest makes room for who asks', async () => {
    const harness = await startHarness({ engine: BIG, socketBounds: { connectionsMax: 3 } });
    const busy = await rawClient(harness.port);
    harness.engine.hold = 'decode';
    busy.socket.write(request('a busy one'));
    await until(harness.clock, 'the first to run', () => harness.gateway.room.running === 1);
    const idlers: RawClient[] = [];
    for (let i = 0; i < 6; i++) idlers.push(await rawClient(harness.port));
    await until(harness.clock, 'the first of them to be closed', () => idlers[0]!.socket.destroyed);
    assert.equal((await harness.post('/v1/completions', { model: 'lab', prompt: '' })).status, 400);
    harness.engine.hold = 'nothing';
    harness.engine.wake();
    await until(harness.clock, 'the busy one to be answered', () => busy.received().includes('a busy one'));
    for (const each of [busy, ...idlers]) each.socket.destroy();
    await harness.close();
  });
});
