/**
 * Goal: a client's id and headers come back to it and go nowhere else. Method: an upstream that writes down all it is given;
 * headers that engines and their routers obey; and the source, for who looks at a header.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { SystemClock } from '../base/clock.js';
import { EmbeddedUpstream } from '../upstream/embedded/adapter.js';
import { checkedRequestId, childTraceparent, READ_HEADERS } from '../wire/index.js';
import { byteCodec } from '../../test/support/byte-codec.js';
import { EchoEngine } from '../../test/support/echo-engine.js';
import { AUTH, type Harness, rawClient, rawRequest, startHarness } from '../../test/support/gateway-harness.js';
import { type RecordingUpstream, recordingUpstream } from '../../test/support/recording-upstream.js';

const TEXT = '/v1/completions';
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';
const FRESH = /^[0-9a-f]{32}$/;

/** Headers by which engines, routers and meshes choose nodes, ranks, caches and priorities, or keep a client's id. */
const OBEYED = [
  'x-data-parallel-rank: 3',
  'x-dp-rank: 3',
  'x-session-id: s1',
  'x-smg-routing-key: r1',
  'x-priority: 9',
  'x-request-priority: 9',
  'x-kv-transfer-params: {"handle":"h"}',
  'x-worker-instance-id: w7',
  'x-correlation-id: c1',
  'x-openai-client-user-agent: a',
  'x-forwarded-for: 10.0.0.1',
  'forwarded: for=10.0.0.1',
  'cookie: a=b',
  'baggage: secret=1',
  'tracestate: vendor=secret',
  'b3: 0',
  'x-b3-traceid: 1',
];

describe('ids and headers of clients', () => {
  let harness: Harness;
  let recorder: RecordingUpstream;
  before(async () => {
    const clock = new SystemClock();
    const engine = new EchoEngine({ clock });
    recorder = recordingUpstream(new EmbeddedUpstream({ engine, codec: byteCodec, clock, selfTestTenant: 255 }));
    harness = await startHarness({ upstream: recorder });
  });
  after(() => harness.close());

  const ask = async (headers: Record<string, string>): Promise<string | null> => {
    const response = await harness.post(TEXT, { model: 'lab', prompt: 'abc', seed: 1 }, { headers });
    assert.equal(response.status, 200);
    await response.text();
    return response.headers.get('x-request-id');
  };

  for (const id of ['a', 'Order-1.2_3', 'z'.repeat(64)]) {
    test(`the id ${id.slice(0, 12)} of ${id.length} characters is echoed and never sent on`, async () => {
      assert.equal(await ask({ 'x-request-id': id }), id);
      const sent = recorder.requests.at(-1)!;
      assert.match(sent.id, FRESH);
      assert.notEqual(sent.id, id);
    });
  }

  test('an id of 65 characters, with a space or another sign, or that comes twice, is replaced by a fresh one', async () => {
    for (const id of ['z'.repeat(65), 'a b', 'a/b', 'a,b', 'a\u00e9', '<script>']) {
      const echoed = await ask({ 'x-request-id': id });
      assert.match(echoed ?? '', FRESH, id);
    }
    const client = await rawClient(harness.port);
    client.socket.write(
      rawRequest('/nothing', '', [
        AUTH,
        'Connection: close',
        'x-request-id: a',
        'X-Request-Id: b',
        'Content-Length: 0',
      ]),
    );
    await client.closed;
    assert.match(client.received(), /x-request-id: [0-9a-f]{32}\r\n/);
  });

  test('an error echoes the id too', async () => {
    const response = await harness.post(TEXT, 'no json', { headers: { 'x-request-id': 'mine-1' } });
    assert.deepEqual([response.status, response.headers.get('x-request-id')], [400, 'mine-1']);
    await response.text();
  });

  test('every request gets an id of its own for the engine, which the client sees nowhere', async () => {
    const first = recorder.requests.length;
    for (let i = 0; i < 20; i++) {
      const response = await harness.post(
        TEXT,
        { model: 'lab', prompt: 'abc' },
        { headers: { 'x-request-id': 'same' } },
      );
      const seen = JSON.stringify([...response.headers]) + (await response.text());
      assert.ok(!seen.includes(recorder.requests.at(-1)!.id));
    }
    assert.equal(new Set(recorder.requests.slice(first).map(({ id }) => id)).size, 20);
  });

  test('no header that an engine or a router obeys changes what the engine gets', async () => {
    const bare = { model: 'lab', prompt: 'abc', seed: 1 };
    await (await harness.post(TEXT, bare)).text();
    const without = recorder.requests.at(-1)!;
    const client = await rawClient(harness.port);
    const json = JSON.stringify(bare);
    client.socket.write(
      rawRequest(TEXT, json, [AUTH, ...OBEYED, `Content-Length: ${json.length}`, 'Connection: close']),
    );
    await client.closed;
    const sent = recorder.requests.at(-1)!;
    assert.notEqual(sent, without);
    const rest = ({ id: _id, traceparent: _traceparent, ...other }: typeof sent): object => other;
    assert.deepEqual(rest(sent), rest(without));
    assert.deepEqual(Object.keys(sent).sort(), Object.keys(without).sort());
  });

  test('a traceparent is continued by a span of our own, sampled or not as it was, without other flags', async () => {
    for (const [flags, kept] of [
      ['01', '01'],
      ['00', '00'],
      ['ff', '01'],
    ] as const) {
      await ask({ traceparent: `00-${TRACE}-${SPAN}-${flags}` });
      const { traceparent } = recorder.requests.at(-1)!;
      assert.match(traceparent, new RegExp(`^00-${TRACE}-[0-9a-f]{16}-${kept}$`));
      assert.ok(!traceparent.includes(SPAN));
    }
  });
});

describe('a traceparent', () => {
  const wrong: [string, string | undefined][] = [
    ['none', undefined],
    ['an empty one', ''],
    ['capital letters', `00-${TRACE.toUpperCase()}-${SPAN}-01`],
    ['a trace of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['a span of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['a later version', `01-${TRACE}-${SPAN}-01`],
    ['the version that is forbidden', `ff-${TRACE}-${SPAN}-01`],
    ['something behind it', `00-${TRACE}-${SPAN}-01-x`],
    ['a line break behind it', `00-${TRACE}-${SPAN}-01\n`],
    ['two of them', `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`],
    ['a short trace', `00-${TRACE.slice(1)}-${SPAN}-01`],
  ];
  for (const [title, header] of wrong) {
    test(`${title}: a new trace begins, not sampled`, () => {
      const child = childTraceparent(header);
      assert.match(child, /^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
      assert.ok(!child.includes(TRACE.slice(1)) && !child.includes('0'.repeat(16)));
    });
  }

  test('a line break behind an id makes it none', () => assert.equal(checkedRequestId('abc\n'), null));
});

test('nobody looks at a header but through the list of those that are read', () => {
  const files = ['src/wire', 'src/gateway'].flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
      .map((name) => join(folder, name)),
  );
  assert.ok(files.length > 20);
  const looking = files.filter((file) =>
    /request\.headers|\.rawHeaders|headersDistinct|\.trailers/.test(readFileSync(file, 'utf8')),
  );
  assert.deepEqual(looking, ['src/wire/headers.ts']);
  assert.deepEqual([...READ_HEADERS], [...READ_HEADERS].sort());
});
