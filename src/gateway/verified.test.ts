/**
 * Goal: an answer is verified before it ends, and what is found costs the right one: the request, or the engine. Method: an
 * engine that echoes and can be made to lie, and one that plays what is written; real HTTP, two tenants.
 */
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { makeMarker } from '../markers/marker.js';
import type { UpstreamSink } from '../upstream/upstream.js';
import {
  GLOBEX_KEY,
  type Harness,
  type HarnessOptions,
  idle,
  startHarness,
  until,
} from '../../test/support/gateway-harness.js';
import { scriptedUpstream } from '../../test/support/scripted-upstream.js';
import { SENTINEL_OUTPUT_TOKENS } from './bounds.js';

const TEXT = '/v1/completions';
const SECRET = Buffer.from('a secret of these tests alone');
const ACMES = makeMarker(SECRET, 'acme', 'test', 0);
const GLOBEXES = makeMarker(SECRET, 'globex', 'test', 0);
/** No tenant has it; the echo engine's runs show whose a request was. */
const SENTINEL_OWNER = 1_000_000;

let open: Harness[] = [];
async function start(options: HarnessOptions = {}): Promise<Harness> {
  const harness = await startHarness(options);
  open.push(harness);
  return harness;
}
afterEach(async () => {
  await Promise.all(open.map((harness) => harness.close()));
  open = [];
});

const body = (prompt: string, extra: Record<string, unknown> = {}): Record<string, unknown> => ({
  model: 'lab',
  prompt,
  ...extra,
});
const sentinelsOf = (harness: Harness) => harness.engine.runs.filter((run) => run.request.tenant === SENTINEL_OWNER);
const ids = (harness: Harness): string[] => harness.findings.map(({ id }) => id);
const metric = async (harness: Harness, line: string): Promise<boolean> =>
  (await harness.gateway.metrics.registry.metrics()).includes(`${line}\n`);

/** The next request gets an answer of no token; those after it are served well. */
function lieToOne({ engine }: Harness): void {
  const submit = engine.submit.bind(engine);
  engine.lie = { completionTokens: 0, early: false };
  engine.submit = (request, sink) => {
    engine.submit = (later, laterSink) => {
      engine.lie = null;
      return submit(later, laterSink);
    };
    return submit(request, sink);
  };
}

describe('suspicion', () => {
  test('withholds the answer, sends a sentinel at once, takes the engine out when that fails, and a self-test brings it back', async () => {
    const harness = await start();
    harness.engine.lie = { prefillTokens: 1 };
    const suspect = await harness.post(TEXT, body('secret words', { stream: true }));
    const text = await suspect.text();
    assert.ok(suspect.status === 502 && text.includes('verification_failed') && !text.includes('secret'), text);
    await until(harness.clock, 'the engine is out', () => !harness.gateway.engines[0]!.watch.rotation.isIn);
    assert.equal(sentinelsOf(harness).length, 1);

    const sentBefore = harness.engine.runs.length;
    const refused = await harness.post(TEXT, body('abc'), { key: GLOBEX_KEY });
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1']);
    assert.match(await refused.text(), /"code":"engine_unavailable"/);
    const health = await fetch(`${harness.url}/health`);
    assert.deepEqual([health.status, health.headers.get('retry-after')], [503, '1']);
    await health.text();
    assert.equal(harness.engine.runs.length, sentBefore, 'an engine that is out gets nothing but self-tests');
    assert.ok(await metric(harness, 'cofferdam_in_rotation{engine="engine-1"} 0'));

    harness.engine.lie = null;
    await until(harness.clock, 'the engine is back', () => harness.gateway.engines[0]!.watch.rotation.isIn, 5000);
    assert.equal((await harness.post(TEXT, body('abc'))).status, 200);
    assert.equal((await fetch(`${harness.url}/health`)).status, 200);
    assert.deepEqual(ids(harness), ['usage-mismatch', 'engine-out', 'engine-back']);
    for (const line of [
      'cofferdam_sentinels_total{engine="engine-1",outcome="failed"} 1',
      'cofferdam_sentinels_total{engine="engine-1",outcome="passed"} 1',
    ]) {
      assert.ok(await metric(harness, line), line);
    }
    await until(harness.clock, 'all back', () => idle(harness));
  });

  test('of an engine whose sentinel is answered as it must be costs that request alone', async () => {
    const harness = await start();
    lieToOne(harness);
    assert.equal((await harness.post(TEXT, body('abc'))).status, 502);
    await until(harness.clock, 'the sentinel', () => sentinelsOf(harness)[0]?.released === true);
    const { request } = sentinelsOf(harness)[0]!;
    assert.match(String.fromCharCode(...request.prompt), /^KVC-[a-z2-7]{26}\. /);
    assert.deepEqual([request.maxTokens, request.salt.length], [SENTINEL_OUTPUT_TOKENS, 64]);
    assert.equal((await harness.post(TEXT, body('abc'), { key: GLOBEX_KEY })).status, 200);
    assert.deepEqual(ids(harness), ['usage-mismatch']);
    assert.ok(await metric(harness, 'cofferdam_answers_doubted_total{engine="engine-1",verdict="empty"} 1'));
  });

  test('ends what else runs on the engine once the sentinel has failed', async () => {
    const harness = await start({ engine: { context: 4000, prefillPool: 4096, decodePool: 65_536 } });
    harness.engine.hold = 'decode';
    const other = harness.post(TEXT, body('x'.repeat(500)), { key: GLOBEX_KEY });
    await until(harness.clock, 'it runs', () => harness.engine.runs[0]?.started === true);
    // Held there, an engine has said its counts and nothing more.
    harness.engine.lie = { promptTokens: 1 };
    assert.equal((await harness.post(TEXT, body('secret words'))).status, 502);
    const ended = await other;
    assert.equal(ended.status, 503);
    assert.match(await ended.text(), /"code":"engine_unavailable"/);
    await until(harness.clock, 'all back', () => idle(harness));
    assert.ok(harness.engine.runs.every((run) => run.released));
  });
});

describe('drift', () => {
  test('withholds that answer and says so to the operators; no sentinel is sent', async () => {
    const harness = await start();
    harness.engine.lie = { promptTokens: 11, prefillTokens: 11 };
    const response = await harness.post(TEXT, body('secret words'));
    assert.equal(response.status, 502);
    assert.match(await response.text(), /"code":"verification_failed"/);
    harness.engine.lie = null;
    assert.equal((await harness.post(TEXT, body('secret words'))).status, 200);
    assert.equal(sentinelsOf(harness).length, 0);
    assert.deepEqual(ids(harness), ['usage-drift']);
  });

  test('of the output alone is a finding, and the answer says what came', async () => {
    const harness = await start();
    harness.engine.lie = { completionTokens: 7, early: false };
    const response = await harness.post(TEXT, body('abc', { max_tokens: 9 }));
    assert.equal(response.status, 200);
    assert.match(await response.text(), /"completion_tokens":3/);
    assert.deepEqual(ids(harness), ['completion-drift']);
  });
});

describe('proof', () => {
  const markers = [ACMES, GLOBEXES];

  for (const stream of [false, true]) {
    test(`a marker of another owner never leaves, ${stream ? 'streamed in any pieces' : 'whole'}, and the engine is out at once`, async () => {
      for (const size of stream ? [1, 5, 11, 40] : [40]) {
        const text = `before ${GLOBEXES.text} after`;
        const upstream = scriptedUpstream((sink) => sayInPieces(sink, text, size));
        const harness = await start({ upstream, markers });
        const response = await harness.post(TEXT, body('abc', { stream, max_tokens: 60 }));
        const all = await response.text();
        const said = stream ? textOf(all) : all;
        for (let at = 0; at + 12 <= GLOBEXES.text.length; at++) {
          assert.ok(!said.includes(GLOBEXES.text.slice(at, at + 12)), `pieces of ${size}: ${said}`);
        }
        assert.ok(!said.includes('KVC-'), 'not even its beginning');
        assert.match(all, /"code":"verification_failed"/);
        assert.equal(harness.gateway.engines[0]!.watch.rotation.reason, 'foreign-marker');
        assert.equal((await harness.post(TEXT, body('abc'))).status, 503);
        const finding = harness.findings.find(({ id }) => id === 'foreign-marker');
        assert.match(finding?.observed ?? '', /^\d\d characters of a live marker of globex/);
        assert.ok(!JSON.stringify(harness.findings).includes(GLOBEXES.text.slice(4, 12)), 'a finding shows the marker');
      }
    });
  }

  test('proof ends every request on that engine', async () => {
    const upstream = scriptedUpstream(() => {});
    const harness = await start({ upstream, markers });
    const other = harness.post(TEXT, body('abc', { max_tokens: 60 }), { key: GLOBEX_KEY });
    await until(harness.clock, 'it runs', () => upstream.requests.length === 1);
    upstream.script = (sink) => sayInPieces(sink, GLOBEXES.text, 40);
    assert.equal((await harness.post(TEXT, body('abc', { max_tokens: 60 }))).status, 502);
    const ended = await other;
    assert.equal(ended.status, 503);
    assert.match(await ended.text(), /"code":"engine_unavailable"/);
    assert.ok(upstream.aborts >= 1);
  });

  const innocent: [string, string, string][] = [
    ['the tenant’s own', 'abc', ACMES.text],
    ['one that stands in the request', `say ${GLOBEXES.text}`, GLOBEXES.text],
    ['a part of one that stands in the request', `say ${GLOBEXES.text.slice(3, 20)}`, `${GLOBEXES.text.slice(3, 20)}.`],
    ['eleven characters of another’s', 'abc', `${GLOBEXES.text.slice(0, 11)} and no more`],
    ['the prefix again and again', 'abc', 'KVC-KVC-KVC-aKVC-'],
  ];
  for (const [title, prompt, answer] of innocent) {
    test(`${title} is none, and arrives whole`, async () => {
      const upstream = scriptedUpstream((sink) => sayInPieces(sink, answer, 3, prompt.length));
      const harness = await start({ upstream, markers });
      const response = await harness.post(TEXT, body(prompt, { stream: true, max_tokens: 60 }));
      assert.equal(textOf(await response.text()), answer);
      assert.ok(harness.gateway.engines[0]!.watch.rotation.isIn);
      assert.deepEqual(harness.findings, []);
    });
  }

  test('a part of one in the request proves nothing about the rest', async () => {
    const prompt = `say ${GLOBEXES.text.slice(0, 14)}`;
    const upstream = scriptedUpstream((sink) => sayInPieces(sink, GLOBEXES.text, 3, prompt.length));
    const harness = await start({ upstream, markers });
    const response = await harness.post(TEXT, body(prompt, { stream: true, max_tokens: 60 }));
    assert.match(await response.text(), /verification_failed/);
    assert.ok(!harness.gateway.engines[0]!.watch.rotation.isIn);
  });

  test('the marker of a sentinel in an answer to a tenant is proof too', async () => {
    const harness = await start({ engine: { context: 512 } });
    lieToOne(harness);
    await harness.post(TEXT, body('abc'));
    await until(harness.clock, 'the sentinel', () => sentinelsOf(harness)[0]?.released === true);
    const seen = String.fromCharCode(...sentinelsOf(harness)[0]!.request.prompt.slice(0, 30));
    // The engine gives the next request the pages of the sentinel.
    const harnessed = harness.engine.submit.bind(harness.engine);
    harness.engine.submit = (request, sink) => {
      if (request.tenant === SENTINEL_OWNER) return harnessed(request, sink);
      return harnessed({ ...request, prompt: Int32Array.from(seen, (char) => char.charCodeAt(0)) }, sink);
    };
    const response = await harness.post(TEXT, body('x'.repeat(30)));
    assert.equal(response.status, 502);
    assert.ok(!(await response.text()).includes(seen.slice(0, 12)));
    assert.equal(harness.gateway.engines[0]!.watch.rotation.reason, 'foreign-marker');
  });
});

/** Says `text` in pieces of so many characters, a token each, and ends well. */
function sayInPieces(sink: UpstreamSink, text: string, size: number, prompt = 3): void {
  sink.started({ promptTokens: prompt, prefillTokens: prompt });
  let tokens = 0;
  for (let at = 0; at < text.length; at += size) {
    sink.text(text.slice(at, at + size), 1);
    tokens++;
  }
  sink.end({
    kind: 'finished',
    finishReason: 'stop',
    usage: { promptTokens: prompt, prefillTokens: prompt, completionTokens: tokens, cachedTokens: null },
  });
  sink.released();
}

/** The text of a stream. */
function textOf(sse: string): string {
  let text = '';
  for (const frame of sse.split('\n\n')) {
    if (!frame.startsWith('data: {')) continue;
    text += (JSON.parse(frame.slice(6)) as { choices?: { text?: string }[] }).choices?.[0]?.text ?? '';
  }
  return text;
}
