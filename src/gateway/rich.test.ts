/**
 * Goal: what clients do with real engines works through the gateway: tools, reasoning, probabilities, formats, images; and on each of
 * these channels another's marker ends the answer. Method: the official client and raw streams over real HTTP, in front of an upstream
 * that plays what is written.
 */
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import OpenAI from 'openai';
import { ACME_KEY, type Harness, type HarnessOptions, startHarness } from '../../test/support/gateway-harness.js';
import {
  ALL_FEATURES,
  type Script,
  type ScriptedUpstream,
  scriptedUpstream,
} from '../../test/support/scripted-upstream.js';
import { makeMarker, type Marker } from '../markers/marker.js';
import type { AnswerPiece, FinishReason, UpstreamFeature } from '../upstream/upstream.js';

const CHAT = '/v1/chat/completions';
const GLOBEXES = makeMarker(Buffer.from('a secret of these tests alone'), 'globex', 'test', 0);

let open: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  await Promise.all(open.map((each) => each.close()));
  open = [];
});

/** Plays pieces, a token each, and ends as told. */
function plays(pieces: readonly (AnswerPiece | string)[], finishReason: FinishReason = 'stop'): Script {
  return (sink, { prompt }) => {
    const counted = upstreamCount(prompt);
    sink.started({ promptTokens: counted, prefillTokens: null });
    for (const piece of pieces) {
      if (typeof piece === 'string') sink.text(piece, 1);
      else sink.piece(piece, 1);
    }
    const usage = { promptTokens: counted, prefillTokens: null, completionTokens: pieces.length, cachedTokens: null };
    sink.end({ kind: 'finished', finishReason, usage });
    sink.released();
  };
}
let upstreamCount: (prompt: Parameters<ScriptedUpstream['count']>[0]) => number = () => 0;

async function start(
  script: Script,
  options: HarnessOptions = {},
  features: ReadonlySet<UpstreamFeature> = ALL_FEATURES,
): Promise<{ harness: Harness; upstream: ScriptedUpstream; client: OpenAI }> {
  const upstream = scriptedUpstream(script, features);
  upstreamCount = (prompt) => {
    const count = upstream.count(prompt);
    return count.kind === 'exact' ? count.tokens : 0;
  };
  const harness = await startHarness({ upstream, ...options });
  open.push(harness);
  const client = new OpenAI({ apiKey: ACME_KEY, baseURL: `${harness.url}/v1`, maxRetries: 0, timeout: 5000 });
  return { harness, upstream, client };
}

const TOOLS = [
  { type: 'function' as const, function: { name: 'look_up', parameters: { type: 'object', properties: { rid: {} } } } },
];
const messages = [{ role: 'user' as const, content: 'hello' }];
const call = (index: number, id: string | null, name: string | null, args: string): AnswerPiece => ({
  kind: 'tool-call',
  index,
  id,
  name,
  arguments: args,
});
const CALLS = [
  'I look. ',
  call(0, 'call_a', 'look_up', ''),
  call(0, null, null, '{"rid":'),
  call(0, null, null, '1}'),
  call(1, null, 'look_up', '{"rid":2}'),
];

describe('the official client, of an answer with', () => {
  test('tool calls, gathers them from a stream, and sends them back', async () => {
    const { client, upstream } = await start(plays(CALLS, 'tool_calls'));
    const runner = client.chat.completions.stream({ model: 'lab', messages, tools: TOOLS, max_tokens: 50 });
    const { choices } = await runner.finalChatCompletion();
    const { message, finish_reason: reason } = choices[0]!;
    assert.deepEqual([reason, message.content], ['tool_calls', 'I look. ']);
    const calls = message.tool_calls!.map(
      (each) => each.type === 'function' && [each.function.name, each.function.arguments],
    );
    assert.deepEqual(calls, [
      ['look_up', '{"rid":1}'],
      ['look_up', '{"rid":2}'],
    ]);
    const ids = message.tool_calls!.map(({ id }) => id);
    assert.equal(ids[0], 'call_a');
    assert.match(ids[1]!, /^call_[0-9a-f]{32}1$/, 'a call without an id gets one of ours');
    assert.deepEqual(upstream.requests[0]!.params, { tools: TOOLS });

    upstream.script = plays(['Found.']);
    const next = [
      ...messages,
      message,
      ...ids.map((id) => ({ role: 'tool' as const, tool_call_id: id, content: 'x' })),
    ];
    const answer = await client.chat.completions.create({ model: 'lab', messages: next, tools: TOOLS, max_tokens: 50 });
    assert.equal(answer.choices[0]!.message.content, 'Found.');
    const { prompt } = upstream.requests[1]!;
    assert.ok(prompt.kind === 'chat');
    assert.deepEqual(
      prompt.rich?.messages.map(({ role }) => role),
      ['user', 'assistant', 'tool', 'tool'],
    );
  });

  test('tool calls, whole: its content is null where it has only calls', async () => {
    const { client } = await start(plays(CALLS.slice(1), 'tool_calls'));
    const { choices } = await client.chat.completions.create({ model: 'lab', messages, tools: TOOLS, max_tokens: 50 });
    assert.equal(choices[0]!.message.content, null);
    assert.equal(choices[0]!.message.tool_calls?.length, 2);
    assert.equal(choices[0]!.finish_reason, 'tool_calls');
  });

  for (const stream of [false, true]) {
    test(`reasoning and a refusal, ${stream ? 'streamed' : 'whole'}`, async () => {
      const { client } = await start(
        plays([
          { kind: 'reasoning', text: 'hm ' },
          { kind: 'reasoning', text: 'hm' },
          'No',
          { kind: 'refusal', text: 'not that' },
        ]),
      );
      const asked = { model: 'lab', messages, max_tokens: 50 };
      const got = { reasoning: '', content: '', refusal: '' };
      type Said = { reasoning_content?: string; content?: string | null; refusal?: string | null };
      const take = (said: Said): void => {
        got.reasoning += said.reasoning_content ?? '';
        got.content += said.content ?? '';
        got.refusal += said.refusal ?? '';
      };
      if (stream) {
        for await (const chunk of await client.chat.completions.create({ ...asked, stream: true }))
          take(chunk.choices[0]!.delta as Said);
      } else take((await client.chat.completions.create(asked)).choices[0]!.message as Said);
      assert.deepEqual(got, { reasoning: 'hm hm', content: 'No', refusal: 'not that' });
    });

    test(`probabilities, ${stream ? 'streamed' : 'whole'}`, async () => {
      const row = (token: string) => ({
        token,
        logprob: -0.5,
        top: [
          { token, logprob: -0.5 },
          { token: 'é', logprob: -2 },
        ],
      });
      const { client } = await start(
        plays(['He', 'y '].map((text) => ({ kind: 'text' as const, text, logprobs: Array.from(text, row) }))),
        { markers: [GLOBEXES] },
      );
      const asked = { model: 'lab', messages, max_tokens: 50, logprobs: true, top_logprobs: 2 };
      const rows: OpenAI.ChatCompletionTokenLogprob[] = [];
      let text = '';
      if (stream) {
        for await (const { choices } of await client.chat.completions.create({ ...asked, stream: true })) {
          rows.push(...(choices[0]!.logprobs?.content ?? []));
          text += choices[0]!.delta.content ?? '';
        }
      } else {
        const { choices } = await client.chat.completions.create(asked);
        rows.push(...choices[0]!.logprobs!.content!);
        text = choices[0]!.message.content!;
      }
      assert.deepEqual([text, rows.map(({ token }) => token).join('')], ['Hey ', 'Hey ']);
      assert.deepEqual(rows[0]!.top_logprobs[1], { token: 'é', logprob: -2, bytes: [0xc3, 0xa9] });
    });
  }

  test('probabilities on the older route, in columns with their places', async () => {
    const rows = ['a', 'bc'].map((token) => ({ token, logprob: -1, top: [{ token, logprob: -1 }] }));
    const { client } = await start(plays(rows.map((each) => ({ kind: 'text', text: each.token, logprobs: [each] }))));
    const asked = { model: 'lab', prompt: 'x', max_tokens: 50, logprobs: 1 };
    const whole = (await client.completions.create(asked)).choices[0]!;
    assert.deepEqual([whole.text, whole.logprobs?.tokens, whole.logprobs?.text_offset], ['abc', ['a', 'bc'], [0, 1]]);
    const offsets: number[] = [];
    for await (const { choices } of await client.completions.create({ ...asked, stream: true }))
      offsets.push(...(choices[0]!.logprobs?.text_offset ?? []));
    assert.deepEqual(offsets, [0, 1]);
  });

  test('an image in the request itself reaches the engine, and one by address does not', async () => {
    const { client, upstream } = await start(plays(['Red.']));
    const see = (url: string) => [
      { role: 'user' as const, content: [{ type: 'image_url' as const, image_url: { url } }] },
    ];
    const asked = { model: 'lab', max_tokens: 50 };
    await client.chat.completions.create({ ...asked, messages: see('data:image/png;base64,AAAA') });
    const { prompt } = upstream.requests[0]!;
    assert.ok(prompt.kind === 'chat' && prompt.rich?.hasData === true);
    await assert.rejects(
      client.chat.completions.create({ ...asked, messages: see('http://127.0.0.1/a.png') }),
      OpenAI.BadRequestError,
    );
    assert.equal(upstream.requests.length, 1);
  });
});

describe('an answer beyond plain text', () => {
  const post = (harness: Harness, extra: Record<string, unknown>) =>
    harness.post(CHAT, { model: 'lab', messages, max_tokens: 50, stream: true, ...extra });

  test('is stopped by a stop sequence in its content alone, and its probabilities end there too', async () => {
    const rows = Array.from('one two three', (token) => ({ token, logprob: -1, top: [] }));
    const { harness } = await start(
      plays([
        { kind: 'reasoning', text: 'then two' },
        ...rows.map((row) => ({ kind: 'text' as const, text: row.token, logprobs: [row] })),
      ]),
    );
    const response = await post(harness, { stop: ' two', logprobs: true, stream: false });
    const { choices } = (await response.json()) as {
      choices: {
        finish_reason: string;
        message: Record<string, unknown>;
        logprobs: { content: { token: string }[] };
      }[];
    };
    const { finish_reason: reason, message, logprobs } = choices[0]!;
    assert.deepEqual([reason, message.content, message.reasoning_content], ['stop', 'one', 'then two']);
    assert.equal(logprobs.content.map(({ token }) => token).join(''), 'one');
  });

  test('says no usage that was not asked for', async () => {
    const { harness } = await start(plays(CALLS, 'tool_calls'));
    const text = await (await post(harness, { tools: TOOLS })).text();
    assert.ok(
      !text.includes('usage') && text.includes('"finish_reason":"tool_calls"') && text.endsWith('data: [DONE]\n\n'),
    );
  });

  const unasked: [string, AnswerPiece][] = [
    ['a call that nobody asked for', call(0, 'a', 'f', '{}')],
    ['a call at a place that is none', call(0.5, 'a', 'f', '{}')],
    ['reasoning that is no text', { kind: 'reasoning', text: 7 as unknown as string }],
    ['a piece of no kind', { kind: 'secret' } as unknown as AnswerPiece],
  ];
  for (const [title, piece] of unasked) {
    test(`with ${title} ends with an error, and nothing of it leaves`, async () => {
      const { harness } = await start(plays([piece]));
      const text = await (await post(harness, {})).text();
      assert.match(text, /engine_failed/);
      assert.ok(!text.includes('tool_calls') && !text.includes('secret'));
    });
  }

  test('without its probabilities, where none were asked for', async () => {
    const { harness } = await start(
      plays([{ kind: 'text', text: 'a', logprobs: [{ token: 'secret', logprob: -1, top: [] }] }]),
    );
    assert.ok(!(await (await post(harness, {})).text()).includes('secret'));
  });
});

describe("another's marker", () => {
  const { text } = GLOBEXES;
  const pieces = [...text.matchAll(/.{1,5}/g)].map(([piece]) => piece);
  const escapes = Array.from(text, (char) => `\\u00${char.charCodeAt(0).toString(16)}`);
  const channels: [string, Record<string, unknown>, readonly (AnswerPiece | string)[]][] = [
    ['content', {}, pieces],
    ['content, with escapes', {}, escapes],
    ['reasoning', {}, pieces.map((piece) => ({ kind: 'reasoning', text: piece }))],
    ['a refusal', {}, pieces.map((piece) => ({ kind: 'refusal', text: piece }))],
    [
      'the arguments of a call',
      { tools: TOOLS },
      [call(0, 'a', 'f', '{"a":"'), ...pieces.map((piece) => call(0, null, null, piece))],
    ],
    [
      'the arguments of a call, with escapes',
      { tools: TOOLS },
      [call(0, 'a', 'f', '{"a":"'), ...escapes.map((piece) => call(0, null, null, piece))],
    ],
    ['the name of a call', { tools: TOOLS }, [call(0, 'a', text, '')]],
    ['the id of a call', { tools: TOOLS }, [call(0, text, 'f', '')]],
    [
      'probabilities',
      { logprobs: true },
      pieces.map((token) => ({ kind: 'text', text: '', logprobs: [{ token, logprob: -1, top: [] }] })),
    ],
    [
      'probabilities of tokens that were not chosen',
      { logprobs: true, top_logprobs: 2 },
      pieces.map((token) => ({
        kind: 'text',
        text: '.',
        logprobs: [
          {
            token: '.',
            logprob: -1,
            top: [
              { token: '.', logprob: -1 },
              { token, logprob: -2 },
            ],
          },
        ],
      })),
    ],
  ];
  /** Whether the marker can be read out of what one kind of field said over the whole answer. */
  const isIn = (sent: string): boolean => {
    const read = sent.replace(/\\+u([0-9a-f]{4})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    return ['content', 'reasoning_content', 'refusal', 'arguments', 'name', 'id', 'token'].some((field) => {
      const values = read.matchAll(new RegExp(`"${field}":"((?:[^"\\\\]|\\\\.)*)"`, 'g'));
      return [...values]
        .map(([, value]) => value)
        .join('')
        .replaceAll('.', '')
        .includes(text);
    });
  };

  for (const [channel, extra, played] of channels) {
    for (const stream of [true, false]) {
      test(`in ${channel} never leaves, ${stream ? 'streamed' : 'whole'}, and does with the guard off`, async () => {
        const markers: readonly Marker[] = [GLOBEXES];
        const asked = { model: 'lab', messages, max_tokens: 50, stream, ...extra };
        const off = await start(plays(played));
        const control = await (await off.harness.post(CHAT, asked)).text();
        assert.ok(isIn(control), `the control: without markers it leaves: ${control}`);
        const { harness } = await start(plays(played), { markers });
        const response = await harness.post(CHAT, asked);
        const sent = await response.text();
        assert.match(sent, /"code":"verification_failed"/);
        assert.ok(!isIn(sent) && !sent.includes(text.slice(0, 12)) && !sent.includes('[DONE]'), sent);
        const finding = harness.findings.find(({ id }) => id === 'foreign-marker')!;
        assert.match(
          finding.observed,
          /live marker of globex, from its character 0 on, at character \d+ of an answer to acme/,
        );
        assert.ok(!JSON.stringify(harness.findings).includes(text.slice(4, 14)), 'a finding shows the marker');
        assert.equal(harness.gateway.engines[0]!.watch.rotation.reason, 'foreign-marker');
      });
    }
  }
});
