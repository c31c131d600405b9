/**
 * Goal: whatever an engine sends, there is one end, nothing that is no answer leaves, and memory is bounded. Method: an engine that
 * sends what each case says, over real HTTP; streams cut at random.
 */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { after, describe, test } from 'node:test';
import fc from 'fast-check';
import { SystemClock } from '../../base/clock.js';
import { CannedEngine, type CannedRequest } from '../../../test/support/canned-engine.js';
import type { AnswerPiece, UpstreamEnd, UpstreamFeature, UpstreamRequest } from '../upstream.js';
import { OpenAiUpstream } from './adapter.js';

type Instead = (request: CannedRequest, response: ServerResponse) => void;
type Piece = AnswerPiece | string;

const engines: CannedEngine[] = [];
const upstreams: OpenAiUpstream[] = [];
after(async () => {
  await Promise.all(upstreams.map((each) => each.close()));
  await Promise.all(engines.map((each) => each.close()));
});
const clock = new SystemClock();
const FEATURES: ReadonlySet<UpstreamFeature> = new Set(['tools', 'logprobs', 'reasoning']);
const TOOLS = { tools: [{ type: 'function', function: { name: 'f' } }], logprobs: true };

async function upstreamOf(instead: Instead, answersAs?: readonly string[] | null): Promise<OpenAiUpstream> {
  const engine = new CannedEngine({
    count: () => 3,
    instead: (request, response) => {
      instead(request, response);
      return true;
    },
  });
  engines.push(engine);
  const upstream = new OpenAiUpstream({
    url: new URL(await engine.listen()),
    key: null,
    models: ['lab'],
    context: 8192,
    pool: 8192,
    runningMax: 8,
    features: FEATURES,
    clock,
    count: () => ({ kind: 'exact', tokens: 3 }),
    ...(answersAs === undefined ? {} : { answersAs }),
  });
  upstreams.push(upstream);
  return upstream;
}

interface Heard {
  readonly end: UpstreamEnd;
  readonly pieces: readonly Piece[];
  readonly tokens: number;
}

function ask(upstream: OpenAiUpstream, over: Partial<UpstreamRequest> = {}): Promise<Heard> {
  const request: UpstreamRequest = {
    id: 'a'.repeat(32),
    traceparent: `00-${'c'.repeat(32)}-${'d'.repeat(16)}-01`,
    prompt: { kind: 'chat', messages: [{ role: 'user', content: 'hello' }] },
    maxTokens: 64,
    temperature: 0,
    seed: 7,
    tenant: 1,
    salt: '',
    engineFields: {},
    ...over,
  };
  return new Promise((resolve) => {
    const ends: UpstreamEnd[] = [];
    const pieces: Piece[] = [];
    let tokens = 0;
    const take = (piece: Piece, count: number): void => {
      assert.equal(ends.length, 0, 'nothing follows the end');
      pieces.push(piece);
      tokens += count;
      run.acknowledge(tokens);
    };
    const run = upstream.start(request, {
      started() {},
      text: take,
      piece: take,
      end: (end) => ends.push(end),
      released: () => {
        assert.equal(ends.length, 1, 'one end');
        resolve({ end: ends[0]!, pieces, tokens });
      },
    });
  });
}

const textOf = ({ pieces }: Heard): string => pieces.filter((piece) => typeof piece === 'string').join('');
const failed = ({ end }: Heard): string => (end.kind === 'failed' ? `${end.code}: ${end.detail}` : end.kind);

const chunk = (choice: unknown, more: Record<string, unknown> = {}): string =>
  JSON.stringify({ choices: choice === null ? [] : [choice], ...more });
const USAGE = { usage: { prompt_tokens: 3, completion_tokens: 2 } };
const GOOD = [
  chunk({ delta: { role: 'assistant', content: '' } }),
  chunk({ delta: { content: 'é😀' } }),
  chunk({ delta: { content: 'b' } }),
  chunk({ delta: {}, finish_reason: 'stop' }),
  chunk(null, USAGE),
];
const frames = (events: readonly string[], end = '\n'): string =>
  events.map((data) => `data: ${data}${end}${end}`).join('');
const stream =
  (...writes: readonly (string | Uint8Array)[]): Instead =>
  (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    for (const each of writes) response.write(each);
    response.end();
  };

describe('a stream that is well', () => {
  const well: [string, string][] = [
    [
      'with CR LF, comments and fields of no use',
      `: hi\r\n\r\nevent: x\r\nid: 7\r\n${frames(GOOD, '\r\n')}: ping\r\n\r\ndata: [DONE]\r\n\r\n`,
    ],
    ['with lone CRs', `${frames(GOOD, '\r')}data: [DONE]\r\r`],
    ['without its last [DONE]', frames(GOOD)],
    [
      'with more after its [DONE]',
      `${frames(GOOD)}data: [DONE]\n\n${frames([chunk({ delta: { content: 'secret' } })])}`,
    ],
    [
      'with data over two lines',
      frames(GOOD).replaceAll('{"choices"', '\ndata: {"choices"').replaceAll('data: \n', ''),
    ],
  ];
  for (const [title, body] of well) {
    test(`${title} is read whole`, async () => {
      const heard = await ask(await upstreamOf(stream(body)));
      assert.equal(failed(heard), 'finished');
      assert.equal(textOf(heard), 'é😀b');
    });
  }

  const SEED = 614_001;
  test(`is read whole wherever its bytes are cut, characters and line ends too (seed ${SEED})`, async () => {
    let cuts: readonly number[] = [];
    const body = Buffer.from(`${frames(GOOD, '\r\n')}data: [DONE]\r\n\r\n`);
    const upstream = await upstreamOf((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const at = [0, ...[...cuts].sort((a, b) => a - b), body.length];
      const writes = at.slice(1).map((to, i) => body.subarray(at[i], to));
      const next = (): void => {
        const write = writes.shift();
        if (write === undefined) response.end();
        else response.write(write, () => clock.soon(next));
      };
      next();
    });
    const cut = fc.array(fc.nat(body.length), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(cut, async (at) => {
        cuts = at;
        const heard = await ask(upstream);
        assert.equal(failed(heard), 'finished');
        assert.equal(textOf(heard), 'é😀b');
      }),
      { seed: SEED, numRuns: 60 },
    );
  });
});

describe('an answer that is not well', () => {
  const wrong: [string, Instead, RegExp][] = [
    [
      'that names another model',
      stream(frames([chunk({ delta: { content: 'secret' } }, { model: 'other' })])),
      /^engine_failed: .*another model/,
    ],
    [
      'without its last [DONE] and its usage',
      stream(frames(GOOD.slice(0, -1))),
      /^verification_failed: .*without its usage/,
    ],
    [
      'without its last [DONE] and its finish reason',
      stream(frames([GOOD[1]!, GOOD[4]!])),
      /^engine_failed: .*without a finish reason/,
    ],
    [
      'whose [DONE] comes before its finish reason',
      stream(`${frames(GOOD.slice(0, 2))}data: [DONE]\n\n`),
      /^engine_failed: .*without a finish reason/,
    ],
    [
      'that ends in the middle of an event',
      stream(frames(GOOD).slice(0, -20)),
      /^engine_failed: .*cut inside an event/,
    ],
    [
      'that ends in the middle of a character',
      stream(Buffer.from(frames([GOOD[1]!])).subarray(0, 45)),
      /^engine_failed: .*cut inside an event/,
    ],
    [
      'of two answers in turn',
      stream(frames([chunk({ index: 0, delta: { content: 'a' } }), chunk({ index: 1, delta: { content: 'secret' } })])),
      /^engine_failed: .*not asked for/,
    ],
    [
      'of binary nonsense',
      stream(Buffer.from([0x64, 0x61, 0x74, 0x61, 0x3a, 0xff, 0xfe, 0x00, 0x0a, 0x0a])),
      /^engine_failed: .*not JSON/,
    ],
    [
      'whose call changes its name',
      stream(
        frames(['f', 'g'].map((name) => chunk({ delta: { tool_calls: [{ index: 0, id: 'a', function: { name } }] } }))),
      ),
      /^engine_failed: .*changed its name/,
    ],
    [
      'that breaks off after what looked like its end',
      (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream', 'content-length': 100_000 });
        response.write(frames(GOOD), () => response.destroy());
      },
      /^engine_failed: .*cut/,
    ],
  ];
  for (const [title, instead, words] of wrong) {
    test(`${title} fails, told without a word of it`, async () => {
      const heard = await ask(await upstreamOf(instead), { params: TOOLS });
      assert.match(failed(heard), words);
      assert.ok(!JSON.stringify([heard.end, heard.pieces]).includes('secret'));
    });
  }

  test('that names another model passes where that name is known, or any may come', async () => {
    const named = GOOD.map((each) => each.replace('{', '{"model":"lab-2026",'));
    for (const answersAs of [['lab-2026'], null])
      assert.equal(failed(await ask(await upstreamOf(stream(frames(named)), answersAs))), 'finished');
    assert.match(failed(await ask(await upstreamOf(stream(frames(named)), []))), /another model/);
  });

  const endless: [string, boolean, string, RegExp][] = [
    ['a line without an end in a stream', true, 'data: ', /went on without an end|went on after/],
    ['an answer without an end', false, '{"choices":[{"message":{"content":"', /went on after 1572864 bytes/],
  ];
  for (const [title, streamed, head, words] of endless) {
    test(`${title} is left long before a gigabyte, and is not kept`, async () => {
      let sent = 0;
      let isOpen = true;
      const block = Buffer.alloc(256 * 1024, 'x');
      const upstream = await upstreamOf((_, response) => {
        response.writeHead(200, { 'content-type': streamed ? 'text/event-stream' : 'application/json' });
        response.write(head);
        response.on('close', () => {
          isOpen = false;
        });
        const more = (): void => {
          if (!isOpen || sent >= 1024 ** 3) return void response.end();
          sent += block.length;
          response.write(block, more);
        };
        more();
      });
      const heard = await ask(upstream, { streamed });
      assert.match(failed(heard), words);
      assert.deepEqual(heard.pieces, []);
      assert.ok(sent < 64 * 1024 * 1024, `${sent} bytes were taken`);
    });
  }
});

describe('the pieces of a call', () => {
  test('say its id and name once, whatever the engine repeats', async () => {
    const call = (id: string | null, name: string | null, args: string): string =>
      chunk({
        delta: { tool_calls: [{ index: 0, ...(id === null ? {} : { id }), function: { name, arguments: args } }] },
      });
    const body = frames([
      call('a', 'f', ''),
      call('b', 'f', '{"x"'),
      call(null, null, ':1}'),
      chunk({ delta: {}, finish_reason: 'tool_calls' }),
      chunk(null, USAGE),
    ]);
    const heard = await ask(await upstreamOf(stream(body)), { params: TOOLS });
    assert.ok(heard.end.kind === 'finished' && heard.end.finishReason === 'tool_calls');
    assert.deepEqual(
      heard.pieces.map(
        (piece) => typeof piece !== 'string' && piece.kind === 'tool-call' && [piece.id, piece.name, piece.arguments],
      ),
      [
        ['a', 'f', ''],
        [null, null, '{"x"'],
        [null, null, ':1}'],
      ],
    );
  });

  test('and what was asked for go to the engine as they came, and displace nothing', async () => {
    const seen: CannedRequest[] = [];
    const upstream = await upstreamOf((request, response) => {
      seen.push(request);
      stream(frames(GOOD))(request, response);
    });
    const messages = [{ role: 'user', content: [{ type: 'text', text: 'a' }] }];
    await ask(upstream, {
      prompt: {
        kind: 'chat',
        messages: [{ role: 'user', content: 'a' }],
        rich: { messages, tools: TOOLS.tools, fields: {}, hasData: false },
      },
      params: { ...TOOLS, top_p: 0.5, model: 'other', max_tokens: 1e6, stream: false, n: 5 },
    });
    const { body } = seen[0]!;
    assert.deepEqual([body.tools, body.logprobs, body.top_p, body.messages], [TOOLS.tools, true, 0.5, messages]);
    assert.deepEqual([body.model, body.max_tokens, body.stream, body.n], ['lab', 64, true, 1]);
  });
});
