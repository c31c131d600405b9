/**
 * Goal: bounds decide only what they can, the exact count is made while the engine works, and no answer ends before it was compared.
 * Method: an engine that is played by hand, whose counts come when the test says so; real HTTP.
 */
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { CodedError } from '../base/errors.js';
import { guardBit, ALL_GUARDS } from '../handoff/guards.js';
import { type Played, playedEngine } from '../../test/support/fleet.js';
import { type Harness, type HarnessOptions, idle, startHarness, until } from '../../test/support/gateway-harness.js';
import type { UpstreamSink } from '../upstream/upstream.js';
import { judgeLength } from './length.js';
import { judgeCounts } from './verdict.js';

const TEXT = '/v1/completions';
const body = (prompt: string, extra: Record<string, unknown> = {}): Record<string, unknown> => ({
  model: 'lab',
  prompt,
  max_tokens: 4,
  ...extra,
});

/** Counts a text at half to twice its length, and exactly when told. */
interface Counter {
  exactCalls: number;
  /** Resolves what is being counted, with the length of its text or what is given. */
  tell(tokens?: number): void;
  fail(): void;
}

let open: Harness[] = [];
async function start(options: HarnessOptions = {}): Promise<{ harness: Harness; engine: Played; counter: Counter }> {
  const engine = playedEngine({ capacity: { context: 200, prefillPool: 400, decodePool: 400 } });
  const exact = engine.count.bind(engine);
  const waiting: { length: number; resolve: (tokens: number) => void; reject: (why: unknown) => void }[] = [];
  const counter: Counter = {
    exactCalls: 0,
    tell: (tokens) => {
      for (const { resolve, length } of waiting.splice(0)) resolve(tokens ?? length);
    },
    fail: () => {
      for (const { reject } of waiting.splice(0)) reject(new CodedError('engine_unavailable', 'No count.'));
    },
  };
  engine.count = (asked) => {
    const tokens = (exact(asked) as { tokens: number }).tokens;
    return {
      kind: 'bounds',
      least: Math.floor(tokens / 2),
      most: tokens * 2,
      exact: () =>
        new Promise((resolve, reject) => {
          counter.exactCalls++;
          waiting.push({ length: tokens, resolve, reject });
        }),
    };
  };
  const harness = await startHarness({ upstream: engine, ...options });
  open.push(harness);
  return { harness, engine, counter };
}
afterEach(async () => {
  await Promise.all(open.map((harness) => harness.close()));
  open = [];
});

const tier = async (harness: Harness): Promise<Record<string, number>> => {
  const text = await harness.gateway.metrics.registry.metrics();
  const rows = [...text.matchAll(/^cofferdam_count_decisions_total\{tier="(\w+)"\} (\d+)$/gm)];
  return Object.fromEntries(rows.map(([, name, count]) => [name!, Number(count)]).filter(([, count]) => count !== 0));
};

function finish(sink: UpstreamSink, promptTokens: number): void {
  sink.end({
    kind: 'finished',
    finishReason: 'stop',
    usage: { promptTokens, prefillTokens: promptTokens, completionTokens: 1, cachedTokens: null },
  });
  sink.released();
}

/** What has come of a stream so far. */
async function pieces(response: Response, wanted: string): Promise<ReadableStreamDefaultReader<Uint8Array>> {
  const reader = response.body!.getReader();
  let text = '';
  while (!text.includes(wanted)) {
    const { value, done } = await reader.read();
    assert.ok(!done, text);
    text += Buffer.from(value).toString('utf8');
  }
  return reader;
}
async function rest(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  let text = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return text;
    text += Buffer.from(value).toString('utf8');
  }
}

describe('a bound', () => {
  test('that is above the limit refuses at once, and says that it is the least', async () => {
    const { harness, engine, counter } = await start();
    const refused = await harness.post(TEXT, body('x'.repeat(400)));
    assert.equal(refused.status, 400);
    assert.match(await refused.text(), /at most 199 tokens \(set by the advertised context\), got at least 200 tokens/);
    assert.deepEqual([engine.requests.length, counter.exactCalls], [0, 0]);
    assert.deepEqual(await tier(harness), { bound_refused: 1 });
  });

  test('that is within it with all of the output sends at once with the most reserved, and gives back what was too much', async () => {
    const { harness, engine, counter } = await start();
    const answer = harness.post(TEXT, body('x'.repeat(64)));
    await until(harness.clock, 'it runs', () => engine.open.length === 1);
    const [acme] = harness.gateway.accounts;
    assert.deepEqual([acme!.leasedTokens, counter.exactCalls], [144, 1]);
    counter.tell();
    await until(harness.clock, 'it is counted', () => acme!.leasedTokens === 80);
    engine.finish();
    assert.equal((await answer).status, 200);
    assert.deepEqual(await tier(harness), { bound_admitted: 1 });
    await until(harness.clock, 'all back', () => idle(harness));
  });

  for (const [title, length, extra] of [
    ['that the limit lies between decides nothing', 120, {}],
    ['that admits the prompt but not its output decides nothing', 90, { max_tokens: 100 }],
    ['decides nothing where the rest of the context is asked for', 20, { max_tokens: undefined }],
  ] as const) {
    test(`${title}: the exact count comes first`, async () => {
      const { harness, engine, counter } = await start();
      const answer = harness.post(TEXT, body('x'.repeat(length), extra));
      await until(harness.clock, 'it is being counted', () => counter.exactCalls === 1);
      assert.equal(engine.requests.length, 0);
      counter.tell();
      await until(harness.clock, 'it runs', () => engine.open.length === 1);
      engine.finish();
      assert.equal((await answer).status, 200);
      assert.deepEqual([counter.exactCalls, await tier(harness)], [1, { exact: 1 }]);
    });
  }

  test('decides nothing without the guard `admission`', async () => {
    const { harness, counter } = await start({ guards: ALL_GUARDS & ~guardBit('admission') });
    const gone = new AbortController();
    const answer = harness.post(TEXT, body('x'.repeat(400)), { signal: gone.signal });
    await until(harness.clock, 'it is being counted', () => counter.exactCalls === 1);
    gone.abort();
    await assert.rejects(answer);
  });

  test('grants nothing that the exact count would not, whatever the numbers', () => {
    const limits = { context: 20, prefillPool: 18, decodePool: 15 };
    const capacity = { ...limits, nodes: [], pageTokens: 1 };
    let decided = 0;
    for (let least = 0; least <= 24; least++) {
      for (let most = least; most <= 24; most++) {
        for (const maxTokens of [null, 1, 5, 12]) {
          const verdict = judgeLength({ least, most }, maxTokens, capacity);
          if (verdict.kind === 'undecided') continue;
          decided++;
          for (let exact = least; exact <= most; exact++) {
            const right = judgeLength({ least: exact, most: exact }, maxTokens, capacity);
            assert.equal(verdict.kind, right.kind, `${least} to ${most}, ${exact}, max_tokens ${maxTokens}`);
            if (verdict.kind === 'admitted' && right.kind === 'admitted') {
              assert.deepEqual([verdict.maxTokens, verdict.isClamped], [right.maxTokens, right.isClamped]);
            }
          }
        }
      }
    }
    assert.ok(decided > 300, `${decided} decided`);
  });
});

describe('until the exact count is there', () => {
  test('an interval judges: inside of it agrees, less than half of the least is short', () => {
    const counted = { least: 10, most: 40 };
    const of = (promptTokens: number) => judgeCounts(counted, { promptTokens, prefillTokens: null });
    assert.deepEqual([4, 5, 9, 10, 25, 40, 41].map(of), [
      'short',
      'drift',
      'drift',
      'agrees',
      'agrees',
      'agrees',
      'drift',
    ]);
  });

  test('text may leave and the end may not; then the exact count is compared', async () => {
    for (const stream of [true, false]) {
      const { harness, engine, counter } = await start();
      const answer = harness.post(TEXT, body('x'.repeat(40), { stream }));
      await until(harness.clock, 'it runs', () => engine.open.length === 1);
      const { sink } = engine.open.shift()!;
      sink.started({ promptTokens: 40, prefillTokens: 40 });
      sink.text('y', 1);
      finish(sink, 40);
      await until(harness.clock, 'the engine has let go', () => harness.gateway.room.heldTokens === 0);
      const reader = stream ? await pieces(await answer, '"y"') : null;
      assert.equal(harness.gateway.open, 1, 'the answer has not ended');
      counter.tell();
      const text = reader === null ? await (await answer).text() : await rest(reader);
      assert.match(text, stream ? /"finish_reason":"stop".*\[DONE\]/s : /"prompt_tokens":40/);
    }
  });

  test('what agreed with the bounds and not with the count is withheld at its end, and in its middle', async () => {
    for (const isOver of [true, false]) {
      const { harness, engine, counter } = await start();
      const answer = harness.post(TEXT, body('x'.repeat(40), { stream: true }));
      await until(harness.clock, 'it runs', () => engine.open.length === 1);
      const { sink } = engine.open.shift()!;
      sink.started(isOver ? null : { promptTokens: 30, prefillTokens: 30 });
      sink.text('y', 1);
      if (isOver) finish(sink, 30);
      const reader = await pieces(await answer, '"y"');
      counter.tell();
      const text = await rest(reader);
      assert.match(text, /"code":"verification_failed"/);
      assert.ok(!text.includes('[DONE]') && !text.includes('finish_reason":"stop"'), text);
      assert.deepEqual(
        harness.findings.map(({ id, observed }) => [id, observed.split(',')[0]]),
        [['usage-drift', 'counted here 40']],
      );
      if (!isOver) {
        assert.equal(engine.aborts, 1);
        sink.end({ kind: 'aborted', usage: null });
        sink.released();
      }
    }
  });

  test('a count far outside of the bounds is found at once', async () => {
    const { harness, engine, counter } = await start();
    const answer = harness.post(TEXT, body('x'.repeat(40)));
    await until(harness.clock, 'it runs', () => engine.open.length === 1);
    const { sink } = engine.open.shift()!;
    sink.started({ promptTokens: 1, prefillTokens: 1 });
    assert.equal((await answer).status, 502);
    assert.match(harness.findings[0]!.observed, /^counted here 20 to 80, decode 1/);
    sink.end({ kind: 'aborted', usage: null });
    sink.released();
    counter.tell();
  });

  for (const [title, tell] of [
    ['can’t be made', (counter: Counter) => counter.fail()],
    ['lies outside of its own bounds', (counter: Counter) => counter.tell(500)],
  ] as const) {
    test(`one that ${title} lets no answer end`, async () => {
      const { harness, engine, counter } = await start();
      const answer = harness.post(TEXT, body('x'.repeat(40)));
      await until(harness.clock, 'it runs', () => engine.open.length === 1);
      tell(counter);
      engine.finish();
      const response = await answer;
      assert.equal(response.status, 502);
      assert.match(await response.text(), /"code":"verification_failed".*|could not be counted/);
      await until(harness.clock, 'all back', () => idle(harness));
    });
  }

  test('a client that leaves takes its request along', async () => {
    const { harness, engine, counter } = await start();
    const gone = new AbortController();
    const answer = harness.post(TEXT, body('x'.repeat(40)), { signal: gone.signal });
    await until(harness.clock, 'it runs', () => engine.open.length === 1);
    engine.finish();
    gone.abort();
    await assert.rejects(answer);
    await until(harness.clock, 'all back', () => idle(harness));
    counter.tell();
  });
});
