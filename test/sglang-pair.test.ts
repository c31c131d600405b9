/**
 * Goal: in front of an SGLang pair the gateway keeps the public incident from everybody, twice: nothing that does not fit is sent, and
 * what was sent all the same is withheld by prefill's own count. Method: the whole gateway over real HTTP in front of the embedded
 * engine, which speaks SGLang's dialect with the incident's fault on and all of its own guards off, as the captured pair had none.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { SystemClock } from '../src/base/clock.js';
import { ALL_GUARDS, guardBit, type GuardName } from '../src/handoff/guards.js';
import { GLOBEX_KEY, type Harness, idle, startHarness, until } from './support/gateway-harness.js';
import { Served } from '../src/engine/http/harness.test.help.js';
import { pairOver } from './support/sglang-double.js';

const clock = new SystemClock();
const TEXT = '/v1/completions';
const MARKER = 'KVC-abcdefghijklmnopqrstuvwxyz';
const CUE = ' the password of the day: ';
const RECALL = `Remember this.${CUE}${MARKER} and some other words that follow it.${CUE}`;
/** Longer than prefill's pool of 512, shorter than all else. */
const OVER_LONG = 'q '.repeat(300);
const INCIDENT = {
  context: 1024,
  prefillPool: 512,
  decodePool: 1024,
  faults: ['rejected-stays-alive'],
  guards: 0,
} as const;

/** All guards of the gateway but these. */
function without(...names: GuardName[]): number {
  return names.reduce((bits, name) => bits & ~guardBit(name), ALL_GUARDS);
}

interface Fixture {
  readonly harness: Harness;
  close(): Promise<void>;
}

let served: Served;
before(async () => {
  served = await Served.start('pair', INCIDENT);
});
after(() => served.close());

/** A gateway of its own in front of the pair. */
async function fixture(guards: number): Promise<Fixture> {
  const { upstream } = await pairOver(served);
  const harness = await startHarness({ upstream, guards, sentinels: false });
  return {
    harness,
    close: async () => {
      await harness.close();
      await upstream.close();
    },
  };
}

const ask = (text: string, more: object = {}): object => ({
  model: 'lab',
  prompt: text,
  max_tokens: 64,
  temperature: 0,
  ...more,
});

/** A tenant's request fills pages of decode's pool with its marker, and ends. */
async function fillPages({ harness }: Fixture): Promise<void> {
  const text = `The amber key is ${MARKER}. `.repeat(12).slice(0, 480);
  const answer = await harness.post(TEXT, ask(text, { max_tokens: 250 }));
  assert.equal(answer.status, 200, await answer.text());
  await served.idle();
}

const pieceOfMarker = (text: string): boolean =>
  Array.from({ length: MARKER.length - 11 }, (_, at) => MARKER.slice(at, at + 12)).some((piece) =>
    text.includes(piece),
  );

/** Requests that the nodes have seen. */
async function seen(): Promise<string[]> {
  const of = async (role: string): Promise<string> => (await served.get('/metrics', role)).text;
  const count = (text: string): string => /^sglang:num_requests_total\S* (\d+)/m.exec(text)?.[1] ?? 'none';
  return (await Promise.all([of('prefill'), of('decode')])).map(count);
}

describe('the gateway in front of an SGLang pair with the incident’s fault', () => {
  let on: Fixture;
  before(async () => {
    on = await fixture(ALL_GUARDS);
  });
  after(() => on.close());

  test('an ordinary request is answered rightly, streamed and whole, on both routes', async () => {
    const whole = (await (await on.harness.post(TEXT, ask(RECALL, { max_tokens: 30 }))).json()) as {
      choices: { text: string }[];
      usage: { prompt_tokens: number; completion_tokens: number };
    };
    assert.equal(whole.choices[0]?.text, MARKER);
    assert.deepEqual([whole.usage.prompt_tokens, whole.usage.completion_tokens], [RECALL.length, 30]);
    const streamed = await (await on.harness.post(TEXT, ask(RECALL, { max_tokens: 30, stream: true }))).text();
    const chunks = [...streamed.matchAll(/"text":"([^"]*)"/g)].map((match) => match[1]).join('');
    assert.deepEqual(
      [chunks, streamed.includes('"usage":{'), streamed.endsWith('data: [DONE]\n\n')],
      [MARKER, false, true],
    );
    const chat = await on.harness.post('/v1/chat/completions', {
      model: 'lab',
      messages: [{ role: 'user', content: RECALL }],
      max_tokens: 5,
    });
    assert.equal(chat.status, 200, await chat.text());
  });

  test('an over-long prompt is refused with both numbers, and neither node has seen it', async () => {
    await fillPages(on);
    const before_ = await seen();
    assert.ok(!before_.includes('none'));
    for (const stream of [false, true]) {
      const refused = await on.harness.post(TEXT, ask(OVER_LONG, { stream }), { key: GLOBEX_KEY });
      const text = await refused.text();
      assert.deepEqual([refused.status, text.includes('context_length_exceeded')], [400, true], text);
      assert.ok(text.includes('at most 512 tokens') && text.includes('got 600 tokens'), text);
    }
    assert.deepEqual(await seen(), before_);
  });

  test('a client that leaves before the first token leaves both legs to their end, and then everything is given back', async () => {
    const leaving = new AbortController();
    const post = on.harness.post(TEXT, ask('w'.repeat(500), { max_tokens: 200 }), { signal: leaving.signal });
    post.catch(() => {});
    await until(clock, 'it runs', () => served.engine.stats().running === 1);
    leaving.abort();
    await until(clock, 'it is shielded or over', () => on.harness.gateway.shield.open === 0 && idle(on.harness));
    await served.idle();
    const metrics = await on.harness.gateway.metrics.registry.metrics();
    assert.match(metrics, /cofferdam_shielded_requests_total\{outcome="(?:first_token|ended)"\} 1/);
  });
});

describe('with the gateway’s admission off as well', () => {
  test('prefill’s count of 1 ends the request before a byte of the answer leaves', async () => {
    const off = await fixture(without('admission'));
    try {
      await fillPages(off);
      for (const stream of [false, true]) {
        const answer = await off.harness.post(TEXT, ask(OVER_LONG, { stream }), { key: GLOBEX_KEY });
        const text = await answer.text();
        assert.deepEqual([answer.status, text.includes('verification_failed')], [502, true], text);
        assert.ok(!pieceOfMarker(text) && !text.includes('"text":'), text);
      }
      const doubt = off.harness.findings.find(({ id }) => id === 'usage-mismatch');
      assert.match(String(doubt?.observed), /counted here 600, decode 600, prefill 1/);
      await served.idle();
    } finally {
      await off.close();
    }
  });

  test('and the comparison of counts off too, the pair behaves as the captured one: 200, with another tenant’s text', async () => {
    const open = await fixture(without('admission', 'usage'));
    try {
      await fillPages(open);
      const answer = await open.harness.post(TEXT, ask(OVER_LONG), { key: GLOBEX_KEY });
      const text = await answer.text();
      assert.deepEqual([answer.status, pieceOfMarker(text)], [200, true], text);
    } finally {
      await open.close();
    }
  });
});
