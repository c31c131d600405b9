/**
 * Goal: an answer holds what the list allows and nothing else, whatever an engine says. Method: an upstream that puts rooms,
 * handles, addresses, names and counts wherever the contract has a place, and where it has none; every byte that leaves is searched.
 */
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { ERROR_TABLE, type ErrorCode } from '../base/errors.js';
import type { UpstreamEnd, UpstreamSink } from '../upstream/upstream.js';
import { ANSWERED_HEADERS } from '../wire/index.js';
import { type Harness, startHarness, TEMPLATE_TOKENS } from '../../test/support/gateway-harness.js';
import { type Script, scriptedUpstream } from '../../test/support/scripted-upstream.js';
import { shownWords } from './engine-words.js';

/** Each stands for a kind of thing that must never leave; none is a word or number that an answer may hold otherwise. */
const INTERNAL = {
  room: 8_812_345_678_901,
  handle: 'kv-handle-7f3a',
  url: 'http://prefill-3.cluster.local:30000',
  node: 'node-gpu-17',
  pages: [9_021_077_701],
  text: 'CUDA out of memory on node-gpu-17 while serving rid=8812345678901: "secret words of a tenant"',
};
const NEEDLES = [
  '8812345678901',
  'kv-handle',
  'cluster.local',
  'node-gpu',
  '9021077701',
  'CUDA',
  'secret words',
  '1424242424',
  'hostile',
];
const EXTRA = { ...INTERNAL, cached_tokens: 1_424_242_424, timings: { hostile: true }, metadata: INTERNAL };

let harness: Harness | null = null;
afterEach(async () => {
  await harness?.close();
  harness = null;
});

async function start(script: Script): Promise<Harness> {
  harness = await startHarness({ upstream: scriptedUpstream(script) });
  return harness;
}

/** All that leaves for one request: status, headers, body. */
async function leaving(route: 'chat' | 'completions', stream: boolean, extra: Record<string, unknown> = {}) {
  const asks = route === 'chat' ? { messages: [{ role: 'user', content: 'abcd' }] } : { prompt: 'abcd' };
  const path = route === 'chat' ? '/v1/chat/completions' : '/v1/completions';
  const options = stream ? { stream_options: { include_usage: true } } : {};
  const response = await harness!.post(path, { model: 'lab', max_tokens: 9, stream, ...options, ...asks, ...extra });
  const body = await response.text();
  for (const name of response.headers.keys()) assert.ok(ANSWERED_HEADERS.has(name), `the header ${name} leaves`);
  return { status: response.status, body, all: JSON.stringify([...response.headers]) + body };
}

function assertClean(all: string): void {
  for (const needle of NEEDLES) assert.ok(!all.includes(needle), `${needle} leaves in ${all}`);
}

/** Every path of names in the JSON of an answer or of the frames of a stream. */
function pathsOf(body: string): string[] {
  const paths = new Set<string>();
  const walk = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return void paths.add(path);
    for (const [name, each] of Object.entries(value))
      walk(each, Array.isArray(value) ? `${path}[]` : `${path}.${name}`);
  };
  const jsons = body.startsWith('{') ? [body] : body.split('\n\n').map((frame) => frame.replace(/^data: /, ''));
  for (const json of jsons) if (json.startsWith('{')) walk(JSON.parse(json), '');
  return [...paths].sort();
}

const HEAD = ['.created', '.id', '.model', '.object'];
const USAGE = ['.completion_tokens', '.prompt_tokens', '.prompt_tokens_details.cached_tokens', '.total_tokens'];
const ALLOWED = new Set([
  ...HEAD,
  '.usage',
  ...USAGE.map((name) => `.usage${name}`),
  ...['index', 'finish_reason', 'logprobs', 'text', 'delta.content', 'delta.role', 'delta.refusal'].map(
    (name) => `.choices[].${name}`,
  ),
  ...['role', 'content', 'refusal'].map((name) => `.choices[].message.${name}`),
]);

const finished = (sink: UpstreamSink, prompt: number, over: Record<string, unknown> = {}): void => {
  sink.end({
    kind: 'finished',
    finishReason: 'stop',
    usage: { promptTokens: prompt, prefillTokens: prompt, completionTokens: 2, cachedTokens: 0, ...EXTRA, ...over },
    engineAnswer: EXTRA,
    ...EXTRA,
    ...('finishReason' in over ? { finishReason: over.finishReason } : {}),
  } as UpstreamEnd);
  sink.released();
};

for (const route of ['chat', 'completions'] as const) {
  const prompt = route === 'chat' ? TEMPLATE_TOKENS + 4 : 4;
  for (const stream of [false, true]) {
    describe(`${route}, ${stream ? 'streamed' : 'whole'}`, () => {
      test('fields that an engine adds to counts, usage and ends do not leave, and the names that do are these', async () => {
        await start((sink) => {
          sink.started({ promptTokens: prompt, prefillTokens: prompt, ...EXTRA } as never);
          (sink.text as (...all: unknown[]) => void)('x', 1, EXTRA);
          (sink.text as (...all: unknown[]) => void)('y', 1, { tool_calls: [EXTRA], logprobs: EXTRA });
          finished(sink, prompt);
        });
        const { status, body, all } = await leaving(route, stream);
        assert.equal(status, 200);
        assert.ok(body.includes('x') && body.includes('y'), 'the text itself leaves');
        assertClean(all);
        for (const path of pathsOf(body)) assert.ok(ALLOWED.has(path), `${path} leaves`);
      });

      test('a piece that is an object, or counts no tokens, ends the answer, and nothing of it leaves', async () => {
        for (const [piece, tokens] of [
          [{ ...EXTRA, toJSON: () => EXTRA }, 1],
          [[INTERNAL.handle], 1],
          ['x', INTERNAL.handle],
          ['x', -1],
          ['x', 1.5],
        ] as const) {
          await start((sink) => {
            (sink.text as (...all: unknown[]) => void)(piece, tokens);
            finished(sink, prompt);
          });
          const { all } = await leaving(route, stream);
          assertClean(all);
          assert.match(all, /"code":"engine_failed"/);
          await harness!.close();
        }
      });

      test('a finish reason or a count that is none ends the answer with our words', async () => {
        for (const over of [
          { finishReason: INTERNAL.handle },
          { finishReason: { toString: () => INTERNAL.url } },
          { completionTokens: INTERNAL.handle },
          { completionTokens: 1_424_242_424 },
          { promptTokens: INTERNAL.url },
          { prefillTokens: INTERNAL.room },
        ]) {
          await start((sink) => {
            sink.text('xy', 2);
            finished(sink, prompt, over);
          });
          const { all } = await leaving(route, stream);
          assertClean(all);
          assert.match(all, /"code":"verification_failed"/);
          assert.ok(!all.includes('[DONE]'));
          assertClean(JSON.stringify(harness!.findings).replaceAll('1424242424', ''));
          await harness!.close();
        }
      });

      test('cached tokens leave only as a part of the prompt', async () => {
        for (const [cachedTokens, said] of [
          [2, true],
          [1_424_242_424, false],
          [INTERNAL.handle, false],
          [-1, false],
          [null, false],
        ] as const) {
          await start((sink) => {
            sink.text('xy', 2);
            finished(sink, prompt, { cachedTokens });
          });
          const { all } = await leaving(route, stream);
          assertClean(all);
          assert.equal(all.includes('"cached_tokens":2'), said, all);
          assert.equal(all.includes('cached_tokens'), said);
          await harness!.close();
        }
      });

      test('an error of an engine leaves as a code of ours and our words, whatever it calls itself', async () => {
        const codes = [...Object.keys(ERROR_TABLE), INTERNAL.handle, 'toString', ''] as ErrorCode[];
        const taken = new Set<string>();
        for (const code of codes) {
          await start((sink) => {
            sink.end({
              kind: 'failed',
              code,
              message: INTERNAL.text,
              detail: INTERNAL.text,
              guard: INTERNAL.url as never,
              ...EXTRA,
            } as UpstreamEnd);
            sink.released();
          });
          const { status, body, all } = await leaving(route, stream);
          assertClean(all);
          const left = (JSON.parse(body) as { error: { code: string } }).error.code;
          taken.add(left);
          assert.ok(status >= 400 && (left === code || left === 'engine_failed'), `${code} leaves as ${left}`);
          assert.deepEqual(pathsOf(body), ['.error.code', '.error.message', '.error.param', '.error.type']);
          await harness!.close();
        }
        assert.deepEqual([...taken].sort(), [
          'context_length_exceeded',
          'engine_failed',
          'engine_unavailable',
          'invalid_request',
          'no_capacity',
          'shutting_down',
          'verification_failed',
        ]);
      });
    });
  }
}

test('for a prompt that an engine finds too long, the tenant gets our numbers and not its', async () => {
  await start((sink) => {
    const text = 'Requested 9021077701 tokens exceeds context of 1424242424 on node-gpu-17';
    sink.end({ kind: 'failed', code: 'context_length_exceeded', message: text, detail: text, guard: null });
    sink.released();
  });
  const { status, body, all } = await leaving('completions', false);
  assert.equal(status, 400);
  assertClean(all);
  assert.match(body, /\(4095 tokens, set by the advertised context\), got 4 tokens with max_tokens 9\./);
});

describe('what operators see of an engine’s text', () => {
  test('is its length, a fingerprint, its known words and our numbers; nothing of a prompt', async () => {
    await start((sink) => {
      sink.end({ kind: 'failed', code: 'engine_failed', message: '', detail: INTERNAL.text, guard: null });
      sink.released();
    });
    await leaving('completions', false);
    const finding = harness!.findings.find(({ id }) => id === 'engine-error');
    assert.match(finding?.observed ?? '', /^engine_failed; \d+ characters, fingerprint [0-9a-f]{12}: /);
    assert.match(finding?.observed ?? '', /cuda out of memory on node gpu # … #/);
    for (const needle of ['secret', 'tenant', 'node-gpu', '8812345678901']) {
      assert.ok(!JSON.stringify(harness!.findings).includes(needle), needle);
    }
  });

  test('never holds a word that is not on the list, a number that is not ours, or more than its bound', () => {
    const text = 'Prompt 512 exceeds 4711 tokens: Müller’s PIN is 4711, "aborted" at \u0000 \u{1f600} 512x';
    assert.equal(shownWords(text, new Set([512])), 'prompt 512 exceeds # tokens … is # aborted at …');
    assert.ok(shownWords('error '.repeat(100_000), new Set()).length <= 200);
  });
});
