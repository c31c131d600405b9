/** Goal: what ordinary HTTP clients count on beside the answers themselves. Method: raw sockets and node's own client. */
import assert from 'node:assert/strict';
import { Agent, get } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { BODY_BYTES_MAX } from '../wire/index.js';
import { TENANT_BODY_BYTES_MAX } from './bounds.js';
import {
  ACME_KEY,
  AUTH,
  GLOBEX_KEY,
  type Harness,
  idle,
  type RawClient,
  rawClient,
  rawRequest,
  startHarness,
  until,
} from '../../test/support/gateway-harness.js';

describe('manners', () => {
  let harness: Harness;
  before(async () => {
    harness = await startHarness({ faults: ['stale-handle'] });
  });
  after(() => harness.close());

  /** The answer's `Connection`, and the port that it came to. */
  const ask = (path: string, agent: Agent): Promise<{ connection: string | undefined; port: number | undefined }> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${ACME_KEY}` };
      get(harness.url + path, { agent, headers }, (response) => {
        const port = response.socket.localPort;
        response.resume().on('end', () => resolve({ connection: response.headers.connection, port }));
      }).on('error', reject);
    });

  test('a request without a body keeps its connection, answered or refused', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ports = new Set<number | undefined>();
    for (const path of ['/health', '/v1/models', '/nothing', '/v1/completions', '/health']) {
      const { connection, port } = await ask(path, agent);
      assert.equal(connection, 'keep-alive', path);
      ports.add(port);
    }
    assert.equal(ports.size, 1, 'one connection served all of them');
    agent.destroy();
  });

  test('a refusal before the body has come still closes the connection', async () => {
    const client = await rawClient(harness.port);
    client.socket.end(rawRequest('/nothing', '{"model"', [AUTH, 'Content-Length: 90']));
    await client.closed;
    assert.match(client.received(), /^HTTP\/1\.1 404 [\s\S]*connection: close/);
  });

  test('405 says in Allow what the path is served for', async () => {
    for (const [method, path, allow] of [
      ['GET', '/v1/completions', 'POST'],
      ['OPTIONS', '/v1/chat/completions', 'POST'],
      ['POST', '/v1/models', 'GET, HEAD'],
      ['DELETE', '/health', 'GET, HEAD'],
    ] as const) {
      const response = await fetch(harness.url + path, { method, headers: { authorization: `Bearer ${ACME_KEY}` } });
      assert.equal(response.status, 405);
      assert.equal(response.headers.get('allow'), allow);
    }
  });

  test('HEAD gets the head that GET gets, and no body', async () => {
    for (const path of ['/health', '/v1/models']) {
      const headers = { authorization: `Bearer ${ACME_KEY}` };
      const [head, whole] = await Promise.all([
        fetch(harness.url + path, { method: 'HEAD', headers }),
        fetch(harness.url + path, { headers }),
      ]);
      assert.deepEqual([head.status, await head.text()], [200, '']);
      assert.equal(Number(head.headers.get('content-length')), (await whole.text()).length);
    }
  });

  test('a request without Host is refused in our own words, and says which faults are on', async () => {
    const client = await rawClient(harness.port);
    client.socket.write('GET /health HTTP/1.1\r\nConnection: close\r\n\r\n');
    await client.closed;
    assert.match(
      client.received(),
      /^HTTP\/1\.1 421 [\s\S]*x-cofferdam-fault: stale-handle[\s\S]*"code":"host_not_allowed"/,
    );
  });

  test('an HTTP/2 preface gets a readable answer and the end of its connection', async () => {
    const client = await rawClient(harness.port);
    client.socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    await client.closed;
    assert.match(
      client.received(),
      /^HTTP\/1\.1 400 [\s\S]*connection: close[\s\S]*Expected a well-formed HTTP\/1\.1 request/,
    );
  });

  test('an expectation that is not known is passed over, and the answer is our own', async () => {
    const client = await rawClient(harness.port);
    client.socket.write('GET /health HTTP/1.1\r\nHost: localhost\r\nExpect: a-biscuit\r\nConnection: close\r\n\r\n');
    await client.closed;
    assert.match(client.received(), /^HTTP\/1\.1 200 [\s\S]*x-cofferdam-fault: stale-handle/);
  });

  test('a second Authorization behind two thousand other headers is seen', async () => {
    const client = await rawClient(harness.port);
    const many = 'a:b\r\n'.repeat(2100);
    client.socket.write(
      `GET /v1/models HTTP/1.1\r\nHost: localhost\r\n${AUTH}\r\n${many}Authorization: Bearer x\r\nConnection: close\r\n\r\n`,
    );
    await client.closed;
    assert.match(client.received(), /^HTTP\/1\.1 401 /);
  });

  test('two Host headers are refused, though both name this server', async () => {
    const client = await rawClient(harness.port);
    client.socket.write('GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    await client.closed;
    assert.match(client.received(), /^HTTP\/1\.1 421 /);
  });

  test('bodies that one tenant holds open are bounded together, and another tenant notices nothing', async () => {
    const clients: RawClient[] = [];
    const part = 'x'.repeat(BODY_BYTES_MAX - 1);
    for (let held = 0; held <= TENANT_BODY_BYTES_MAX; held += part.length) {
      const client = await rawClient(harness.port);
      client.socket.write(rawRequest('/v1/completions', part, [AUTH, `Content-Length: ${BODY_BYTES_MAX}`]));
      clients.push(client);
    }
    const refused = (): boolean => clients.some((each) => each.received().startsWith('HTTP/1.1 429 '));
    await until(harness.clock, 'one of them to be refused', refused);
    const answer = await harness.post('/v1/completions', { model: 'lab', prompt: 'x' }, { key: GLOBEX_KEY });
    assert.equal(answer.status, 200);
    for (const { socket } of clients) socket.destroy();
    await until(harness.clock, 'nothing to be held', () => idle(harness));
  });
});
