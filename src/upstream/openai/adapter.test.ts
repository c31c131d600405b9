/**
 * Goal: any OpenAI-compatible endpoint behind the contract of all engines. Method: the shared cases over an engine that answers
 * from a can, then each way in which an endpoint can answer something else than an answer.
 */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { after, describe, test } from 'node:test';
import { SystemClock } from '../../base/clock.js';
import { countTokens, renderChat } from '../../tokenizer/bytes.js';
import { runUpstreamCases } from '../../../test/cases/upstream.js';
import { ask as askUpstream, type Heard, TRACEPARENT } from '../../../test/support/ask-upstream.js';
import { CannedEngine, type CannedRequest } from '../../../test/support/canned-engine.js';
import type { Prompt, UpstreamRequest } from '../upstream.js';
import { OpenAiUpstream } from './adapter.js';

type Message = { role: string; content: string };
type Instead = (request: CannedRequest, response: ServerResponse) => boolean;

const rendered = (prompt: Prompt): string => (prompt.kind === 'text' ? prompt.text : renderChat(prompt.messages));
const engines: CannedEngine[] = [];

async function canned(instead?: Instead, times: { firstByteMsMax?: number; idleMsMax?: number } = {}) {
  const engine = new CannedEngine({
    count: (body) =>
      countTokens(body.messages === undefined ? String(body.prompt) : renderChat(body.messages as Message[])),
    ...(instead === undefined ? {} : { instead }),
  });
  engines.push(engine);
  const upstream = new OpenAiUpstream({
    url: new URL(`${await engine.listen()}/v1`),
    key: 'engine-key',
    models: ['canned'],
    context: 8192,
    pool: 4096,
    runningMax: 8,
    clock: new SystemClock(),
    count: (prompt) => ({ kind: 'exact', tokens: countTokens(rendered(prompt)) }),
    ...times,
  });
  return { engine, upstream };
}

after(() => Promise.all(engines.map((engine) => engine.close())));

runUpstreamCases('the adapter of OpenAI-compatible endpoints', { make: async () => (await canned()).upstream });

/** Nothing but plain text comes of what is asked here. */
async function ask(upstream: OpenAiUpstream, overrides: Partial<UpstreamRequest> = {}): Promise<Heard> {
  const heard = await askUpstream(upstream, overrides);
  assert.equal(heard.pieces, 0);
  return heard;
}

describe('the adapter of OpenAI-compatible endpoints', () => {
  test('asks for the whole answer where the tenant does, and then counts before any text', async () => {
    const { engine, upstream } = await canned();
    const heard = await ask(upstream, { streamed: false });
    assert.equal(engine.requests[0]!.body.stream, undefined);
    assert.deepEqual([heard.text, heard.startedWith.length], [' word word word', 1]);
    assert.ok(heard.startedWith[0]! > 0);
    assert.equal(heard.end.kind, 'finished');
  });

  test('asks a stream for its usage, whatever the tenant wants', async () => {
    const { engine, upstream } = await canned();
    const heard = await ask(upstream);
    assert.deepEqual(engine.requests[0]!.body.stream_options, { include_usage: true });
    assert.deepEqual([heard.text, heard.startedWith], [' word word word', [null]]);
  });

  test("sends the engine key, the request's id for engines and its trace, and nothing of the tenant", async () => {
    const { engine, upstream } = await canned();
    await ask(upstream);
    await ask(upstream, { id: 'e'.repeat(32) });
    const [first, second] = engine.requests.map(({ headers }) => headers);
    assert.deepEqual(Object.keys(first!).toSorted(), [
      'authorization',
      'connection',
      'content-length',
      'content-type',
      'host',
      'traceparent',
      'x-request-id',
    ]);
    assert.equal(first!.authorization, 'Bearer engine-key');
    assert.deepEqual([first!['x-request-id'], second!['x-request-id']], ['a'.repeat(32), 'e'.repeat(32)]);
    assert.equal(first!.traceparent, TRACEPARENT);
    assert.ok(!JSON.stringify(engine.requests[0]!.body).includes('salt'));
  });

  const failures: [string, boolean, Instead, string, RegExp][] = [
    [
      'an error inside a 200',
      false,
      json('{"error":{"type":"abort","message":"secret words"}}'),
      'engine_failed',
      /type abort.*12 characters/,
    ],
    [
      'an error event in a stream',
      true,
      sse('data: {"error":{"message":"secret words"}}\n\n'),
      'engine_failed',
      /12 characters/,
    ],
    [
      'a stream that ends without a finish reason',
      true,
      sse('data: {"choices":[{"delta":{"content":"a"}}]}\n\n'),
      'engine_failed',
      /without a finish reason/,
    ],
    ['a stream that ends inside an event', true, sse('data: {"choices"'), 'engine_failed', /cut inside an event/],
    [
      'a finished answer without usage',
      true,
      sse('data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'),
      'verification_failed',
      /without its usage/,
    ],
    [
      'a usage of −1',
      false,
      json(
        '{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":-1,"completion_tokens":1}}',
      ),
      'engine_failed',
      /counts that are none/,
    ],
    [
      'the finish reason abort',
      false,
      json('{"choices":[{"message":{"content":"a"},"finish_reason":"abort"}]}'),
      'engine_failed',
      /finish reason abort/,
    ],
    ['two choices', false, json('{"choices":[{},{}]}'), 'engine_failed', /2 choices/],
    [
      'a tool call that nobody asked for',
      false,
      json('{"choices":[{"message":{"tool_calls":[{}]},"finish_reason":"stop"}]}'),
      'engine_failed',
      /a tool call that was not asked for/,
    ],
    ['no JSON', false, json('<html>secret words</html>'), 'engine_failed', /not JSON \(25 characters\)/],
    [
      'a page instead of an answer',
      false,
      typed('text/html', 'secret words'),
      'engine_failed',
      /expected an answer of the type/,
    ],
    [
      'status 429',
      false,
      status(429, '{"error":{"type":"busy","code":7}}'),
      'no_capacity',
      /status 429, type busy, code 7/,
    ],
    ['status 503', false, status(503, 'secret words'), 'engine_unavailable', /status 503, a body that is not JSON/],
    ['status 400', false, status(400, '{"message":"secret words"}'), 'engine_failed', /status 400/],
    ['a redirect', false, status(307, '', { location: 'http://127.0.0.1:1/' }), 'engine_failed', /status 307/],
    ['a connection that is cut', false, cutOff, 'engine_unavailable', /connection failed/],
  ];
  for (const [title, streamed, instead, code, detail] of failures) {
    test(`${title} is an error, told to operators without the engine's words`, async () => {
      const { upstream } = await canned(instead);
      const { end } = await ask(upstream, { streamed });
      assert.ok(end.kind === 'failed', `expected a failed end, got ${end.kind}`);
      assert.equal(end.code, code);
      assert.match(end.detail, detail);
      assert.ok(!JSON.stringify(end).includes('secret'), 'no word of the engine');
    });
  }

  test('an engine that never answers is left after the first byte was due', async () => {
    const { upstream } = await canned(() => true, { firstByteMsMax: 30 });
    const { end } = await ask(upstream);
    assert.ok(end.kind === 'failed' && end.code === 'engine_unavailable');
    assert.match(end.detail, /nothing came for 30 ms/);
  });

  test('a stream that falls silent is left, and a healthy one may take longer than that in all', async () => {
    const quiet = await canned((_, response) => sse('data: {"choices":[]}\n\n', false)(_, response), { idleMsMax: 30 });
    const heard = await ask(quiet.upstream);
    assert.ok(heard.end.kind === 'failed');
    assert.match(heard.end.detail, /nothing came for 30 ms/);
    const slow = await canned(undefined, { idleMsMax: 2000, firstByteMsMax: 2000 });
    assert.equal((await ask(slow.upstream, { maxTokens: 500 })).end.kind, 'finished');
  });

  test('a reader that takes nothing makes the engine wait, and an abort then still ends the request', async () => {
    const { engine, upstream } = await canned();
    let pieces = 0;
    const released = new Promise<void>((resolve) => {
      const run = upstream.start(
        {
          id: 'b'.repeat(32),
          traceparent: TRACEPARENT,
          prompt: { kind: 'text', text: 'a' },
          maxTokens: 200_000,
          temperature: 0,
          seed: 1,
          tenant: 1,
          salt: '',
          engineFields: {},
        },
        {
          started() {},
          text: () => {
            pieces++;
            if (pieces === 65) new SystemClock().after(50, () => run.abort());
          },
          piece() {},
          end() {},
          released: resolve,
        },
      );
    });
    await released;
    // One packet may be under way when the socket is paused.
    assert.ok(pieces < 2000, `${pieces} pieces came ahead of the reader`);
    assert.equal(engine.requests.length, 1);
  });
});

function json(body: string): Instead {
  return typed('application/json', body);
}

function typed(type: string, body: string): Instead {
  return (_, response) => {
    response.writeHead(200, { 'content-type': type }).end(body);
    return true;
  };
}

function sse(body: string, ends = true): Instead {
  return (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(body);
    if (ends) response.end();
    return true;
  };
}

function status(code: number, body: string, headers: Record<string, string> = {}): Instead {
  return (_, response) => {
    response.writeHead(code, { 'content-type': 'application/json', ...headers }).end(body);
    return true;
  };
}

function cutOff(_: CannedRequest, response: ServerResponse): boolean {
  response.destroy();
  return true;
}
