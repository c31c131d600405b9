/**
 * Goal: every rung of the ladder answers in OpenAI's shape, over real HTTP. Method: an engine that echoes its prompt stands
 * behind the gateway; requests are sent with fetch, and over raw sockets where fetch is too polite.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  ACME_KEY,
  ACME_SECOND_KEY,
  AUTH,
  DISABLED_KEY,
  GLOBEX_KEY,
  type Harness,
  idle,
  rawClient,
  rawRequest,
  startHarness,
  TEMPLATE_TOKENS,
  until,
} from '../../test/support/gateway-harness.js';
import { BODY_BYTES_MAX } from '../wire/index.js';

const CHAT = '/v1/chat/completions';
const TEXT = '/v1/completions';

interface ErrorBody {
  error: { message: string; type: string; param: string | null; code: string };
}

async function refused(response: Response, status: number, code: string): Promise<ErrorBody['error']> {
  const text = await response.text();
  assert.equal(response.status, status, text);
  const { error } = JSON.parse(text) as ErrorBody;
  assert.equal(error.code, code, text);
  assert.deepEqual(Object.keys(error), ['message', 'type', 'param', 'code']);
  return error;
}

const chat = (extra: Record<string, unknown> = {}, content: unknown = 'hi'): Record<string, unknown> => ({
  model: 'lab',
  messages: [{ role: 'user', content }],
  ...extra,
});
const text = (prompt: unknown, extra: Record<string, unknown> = {}): Record<string, unknown> => ({
  model: 'lab',
  prompt,
  ...extra,
});

describe('the tenants’ port', () => {
  let harness: Harness;
  before(async () => {
    harness = await startHarness();
  });
  after(() => harness.close());

  describe('answers', () => {
    test('a whole chat with its text, finish_reason and usage', async () => {
      const response = await harness.post(CHAT, chat({ max_tokens: 5 }));
      assert.equal(response.status, 200);
      const body = (await response.json()) as Record<string, unknown>;
      assert.match(body.id as string, /^chatcmpl-[0-9a-f]{32}$/);
      assert.deepEqual(body.choices, [
        {
          index: 0,
          message: { role: 'assistant', content: 'user:', refusal: null },
          logprobs: null,
          finish_reason: 'length',
        },
      ]);
      const prompt = TEMPLATE_TOKENS + 2;
      assert.deepEqual(body.usage, {
        prompt_tokens: prompt,
        completion_tokens: 5,
        total_tokens: prompt + 5,
        prompt_tokens_details: { cached_tokens: 0 },
      });
    });

    test('a whole text completion that ends by itself with finish_reason stop', async () => {
      const body = (await (await harness.post(TEXT, text('héllo'))).json()) as {
        object: string;
        choices: { text: string; finish_reason: string }[];
      };
      assert.equal(body.object, 'text_completion');
      assert.deepEqual([body.choices[0]!.text, body.choices[0]!.finish_reason], ['héllo', 'stop']);
    });

    test('a chat whose content is an array of text parts as their text', async () => {
      const parts = [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ];
      const body = (await (await harness.post(CHAT, chat({}, parts))).json()) as {
        choices: { message: { content: string } }[];
      };
      assert.equal(body.choices[0]!.message.content, 'user: ab\nassistant: ');
    });

    test('a message of an earlier answer that a client sends back as it came', async () => {
      const messages = [
        { role: 'user', content: 'a' },
        { role: 'assistant', content: 'b', refusal: null, annotations: [] },
        { role: 'user', content: 'c', name: 'bob' },
      ];
      assert.equal((await harness.post(CHAT, { model: 'lab', messages })).status, 200);
    });

    test('fields of OpenAI that ask for nothing or are only notes', async () => {
      const notes = {
        n: 1,
        user: 'u1',
        metadata: { team: 'x' },
        store: false,
        service_tier: 'auto',
        top_p: 1,
        frequency_penalty: 0,
        presence_penalty: null,
        logprobs: false,
        tools: [],
        response_format: { type: 'text' },
        seed: 7,
        temperature: 0.5,
        stop: null,
      };
      assert.equal((await harness.post(CHAT, chat(notes))).status, 200);
    });

    test('a stream in frames, with the usage where it was asked for, and [DONE] at the end', async () => {
      const options = { stream: true, stream_options: { include_usage: true }, max_tokens: 3 };
      const response = await harness.post(TEXT, text('abc', options));
      assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
      const frames = (await response.text()).split('\n\n').filter((frame) => frame !== '');
      assert.equal(frames.at(-1), 'data: [DONE]');
      const chunks = frames.slice(0, -1).map((frame) => JSON.parse(frame.slice(6)) as Record<string, unknown>);
      assert.deepEqual(chunks.at(-1)!.usage, {
        prompt_tokens: 3,
        completion_tokens: 3,
        total_tokens: 6,
        prompt_tokens_details: { cached_tokens: 0 },
      });
      assert.deepEqual(chunks.at(-1)!.choices, []);
      assert.equal(chunks[0]!.usage, null);
      const said = chunks.map((chunk) => (chunk.choices as { text: string }[])[0]?.text ?? '').join('');
      assert.equal(said, 'abc');
    });

    test('the models with the effective limit, listed and by name', async () => {
      const headers = { authorization: `Bearer ${ACME_KEY}` };
      const list = (await (await fetch(`${harness.url}/v1/models`, { headers })).json()) as {
        data: { id: string; max_model_len: number }[];
      };
      assert.deepEqual(
        list.data.map((row) => [row.id, row.max_model_len]),
        [['lab', 255]],
      );
      assert.equal((await fetch(`${harness.url}/v1/models/lab`, { headers })).status, 200);
      assert.equal((await fetch(`${harness.url}/v1/models/other`, { headers })).status, 404);
    });

    test('health without a key', async () => {
      const response = await fetch(`${harness.url}/health`);
      assert.deepEqual([response.status, await response.json()], [200, { status: 'ok' }]);
    });

    test('both keys of a tenant', async () => {
      assert.equal((await harness.post(TEXT, text('a'), { key: ACME_SECOND_KEY })).status, 200);
    });

    test('the scheme of Authorization in any case', async () => {
      const headers = { authorization: `bearer ${GLOBEX_KEY}` };
      assert.equal((await harness.post(TEXT, text('a'), { key: null, headers })).status, 200);
    });

    test('no CORS header, and no header beyond the allowed ones', async () => {
      const response = await harness.post(TEXT, text('a'), { headers: { origin: 'http://evil.example' } });
      const { ANSWERED_HEADERS } = await import('../wire/index.js');
      for (const name of response.headers.keys()) assert.ok(ANSWERED_HEADERS.has(name), name);
    });
  });

  describe('refuses with 401, alike,', () => {
    const keys: [string, string | null][] = [
      ['no key', null],
      ['an unknown key', 'nobody'],
      ['a disabled key', DISABLED_KEY],
      ['a key of another length', 'x'.repeat(3000)],
    ];
    for (const [title, key] of keys) {
      test(title, async () => {
        const response = await harness.post(TEXT, text('a'), { key });
        assert.equal(response.headers.get('www-authenticate'), 'Bearer');
        const error = await refused(response, 401, 'invalid_api_key');
        assert.equal(error.message, 'Expected one `Authorization: Bearer` header with a key of a tenant.');
      });
    }

    test('two Authorization headers, also when both are right', async () => {
      const client = await rawClient(harness.port);
      const body = JSON.stringify(text('a'));
      client.socket.write(rawRequest(TEXT, body, [AUTH, AUTH, `Content-Length: ${body.length}`, 'Connection: close']));
      await client.closed;
      assert.match(client.received(), /^HTTP\/1\.1 401 [\s\S]*"code":"invalid_api_key"/);
    });

    test('an unknown model without a key: the key comes first', async () => {
      await refused(await harness.post(TEXT, { model: 'nope' }, { key: null }), 401, 'invalid_api_key');
    });
  });

  describe('refuses a body', () => {
    test('that is not JSON', async () => {
      await refused(await harness.post(CHAT, '{"model": "lab", '), 400, 'invalid_json');
    });

    test('that is empty', async () => {
      await refused(await harness.post(CHAT, ''), 400, 'invalid_json');
    });

    test('that is an array', async () => {
      await refused(await harness.post(CHAT, '[]'), 400, 'invalid_request');
    });

    test('nested a hundred thousand deep, without a stack overflow', async () => {
      const deep = `{"model":"lab","messages":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
      await refused(await harness.post(CHAT, deep), 400, 'invalid_json');
    });

    test('of bytes that are not UTF-8', async () => {
      const client = await rawClient(harness.port);
      client.socket.write(rawRequest(TEXT, '', [AUTH, 'Content-Length: 3', 'Connection: close']));
      client.socket.write(Buffer.from([0x22, 0xff, 0x22]));
      await client.closed;
      assert.match(client.received(), /400 [\s\S]*"code":"invalid_json"/);
    });

    test('of 100 MB by its length, and the client reads the 413', async () => {
      const error = await refused(await harness.post(CHAT, 'x'.repeat(100_000_000)), 413, 'body_too_large');
      assert.match(error.message, /at most 8388608 bytes/);
    });

    test('of a client that reads nothing until it has written 40 MB, and is not reset before that', async () => {
      const client = await rawClient(harness.port);
      client.socket.pause();
      client.socket.write(rawRequest(CHAT, '', [AUTH, 'Content-Length: 41943040']));
      const piece = Buffer.alloc(0x100000, 'x');
      for (let i = 0; i < 40; i++) {
        await new Promise<void>((resolve, reject) => {
          client.socket.write(piece, (error) => (error ? reject(error) : resolve()));
        });
      }
      client.socket.resume();
      await client.closed;
      assert.match(client.received(), /^HTTP\/1\.1 413 /);
    });

    test('above the bound that comes in chunks without a length', async () => {
      const client = await rawClient(harness.port);
      client.socket.write(rawRequest(TEXT, '', [AUTH, 'Transfer-Encoding: chunked']));
      const chunk = `100000\r\n${'x'.repeat(0x100000)}\r\n`;
      for (let sent = 0; sent < BODY_BYTES_MAX + 0x100000; sent += 0x100000) client.socket.write(chunk);
      client.socket.write('0\r\n\r\n');
      await client.closed;
      assert.match(client.received(), /^HTTP\/1\.1 413 [\s\S]*"code":"body_too_large"/);
    });

    test('of a client that waits for 100-continue, before it sends one', async () => {
      const client = await rawClient(harness.port);
      client.socket.write(rawRequest(TEXT, '', [AUTH, 'Content-Length: 99999999', 'Expect: 100-continue']));
      await client.closed;
      assert.match(client.received(), /^HTTP\/1\.1 413 /);
    });

    test('that is compressed', async () => {
      const response = await harness.post(CHAT, 'x', { headers: { 'content-encoding': 'gzip' } });
      await refused(response, 415, 'unsupported_encoding');
    });

    test('with a length together with chunked, and closes', async () => {
      const client = await rawClient(harness.port);
      client.socket.write(rawRequest(TEXT, '0\r\n\r\n', [AUTH, 'Content-Length: 5', 'Transfer-Encoding: chunked']));
      await client.closed;
      assert.match(client.received(), /^HTTP\/1\.1 400 [\s\S]*"type":"invalid_request_error"/);
    });
  });

  test('takes the body of a client that waits for 100-continue', async () => {
    const client = await rawClient(harness.port);
    const body = JSON.stringify(text('a'));
    client.socket.write(
      rawRequest(TEXT, '', [AUTH, `Content-Length: ${body.length}`, 'Expect: 100-continue', 'Connection: close']),
    );
    await until(harness.clock, '100 Continue', () => client.received().includes('100 Continue'));
    client.socket.write(body);
    await client.closed;
    assert.match(client.received(), /HTTP\/1\.1 200 OK/);
  });

  test('answers an HTTP/2 preface with 400 and closes', async () => {
    const client = await rawClient(harness.port);
    client.socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    client.socket.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]));
    await client.closed;
    assert.match(client.received(), /^HTTP\/1\.1 400 /);
  });

  describe('routes', () => {
    test('404 for an unknown path', async () => {
      await refused(await harness.post('/v1/embeddings', {}), 404, 'not_found');
    });

    test('405 for the wrong method, OPTIONS included, without CORS headers', async () => {
      await refused(await fetch(`${harness.url}${CHAT}`), 405, 'method_not_allowed');
      const preflight = await fetch(`${harness.url}${CHAT}`, { method: 'OPTIONS' });
      await refused(preflight, 405, 'method_not_allowed');
      assert.equal(preflight.headers.get('access-control-allow-origin'), null);
    });

    const hosts: [string, string, number][] = [
      ['a foreign name', 'evil.example', 421],
      ['a foreign name with our port', 'evil.example:8080', 421],
      ['a name that begins like ours', 'localhost.evil.example', 421],
      ['localhost with any port', 'localhost:1234', 200],
      ['the IPv6 loopback', '[::1]:80', 200],
    ];
    for (const [title, host, status] of hosts) {
      test(`Host: ${title} gives ${status}`, async () => {
        const client = await rawClient(harness.port);
        client.socket.write(`GET /health HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
        await client.closed;
        assert.ok(client.received().startsWith(`HTTP/1.1 ${status} `), client.received());
      });
    }
  });

  test('holds nothing for anybody after all of this', async () => {
    await until(harness.clock, 'everything back', () => idle(harness));
  });
});
