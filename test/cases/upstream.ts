/**
 * What every upstream must do, whatever engine stands behind it: one set of cases, many implementations. The cases only use
 * the contract, so they say nothing of what an answer should be, but everything about its events, counts and ends.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type {
  Prompt,
  PromptCounts,
  Upstream,
  UpstreamEnd,
  UpstreamRequest,
  UpstreamRun,
  UpstreamSink,
} from '../../src/upstream/upstream.js';

export interface UpstreamCases {
  /** A fresh upstream; closed by the cases. */
  readonly make: () => Promise<Upstream> | Upstream;
  /** Cases that do not apply, each with its reason. */
  readonly skip?: Readonly<Record<string, string>>;
}

const PROMPT: Prompt = { kind: 'text', text: 'the quick brown fox jumps over the lazy dog, and then once more' };

function request(overrides: Partial<UpstreamRequest> = {}): UpstreamRequest {
  return {
    id: '0123456789abcdef0123456789abcdef',
    traceparent: '00-0123456789abcdef0123456789abcdef-0123456789abcdef-00',
    prompt: PROMPT,
    maxTokens: 8,
    temperature: 0,
    seed: 1,
    tenant: 1,
    salt: '',
    engineFields: {},
    ...overrides,
  };
}

/** The exact count, waited for where it takes time. */
export async function countNow(upstream: Upstream, prompt: Prompt): Promise<number> {
  const count = upstream.count(prompt);
  return count.kind === 'exact' ? count.tokens : count.exact();
}

/** Records the events of one request, in order, and waits for its release. */
class Recorder implements UpstreamSink {
  readonly events: string[] = [];
  counts: PromptCounts | null = null;
  text_ = '';
  tokens = 0;
  ending: UpstreamEnd | null = null;
  run: UpstreamRun | null = null;
  readonly acknowledges: boolean;
  readonly #release: Promise<void>;
  #released: () => void = () => {};
  onText: (() => void) | null = null;

  constructor(acknowledges = true) {
    this.acknowledges = acknowledges;
    this.#release = new Promise((resolve) => {
      this.#released = resolve;
    });
  }

  start(upstream: Upstream, what: UpstreamRequest): this {
    this.run = upstream.start(what, this);
    return this;
  }

  started(counts: PromptCounts | null): void {
    this.events.push('started');
    this.counts = counts;
  }

  text(piece: string, tokens: number): void {
    if (this.events.at(-1) !== 'text') this.events.push('text');
    this.text_ += piece;
    this.tokens += tokens;
    if (this.acknowledges) this.run?.acknowledge(this.tokens);
    this.onText?.();
  }

  piece(): void {
    this.events.push('piece');
  }

  end(end: UpstreamEnd): void {
    this.events.push('end');
    this.ending = end;
  }

  released(): void {
    this.events.push('released');
    this.#released();
  }

  done(): Promise<void> {
    return this.#release;
  }
}

export function runUpstreamCases(name: string, cases: UpstreamCases): void {
  describe(`${name} keeps the contract of an upstream`, () => {
    let upstream: Upstream;
    before(async () => {
      upstream = await cases.make();
    });
    after(() => upstream.close());
    const check = (title: string, body: () => Promise<void> | void): void => {
      const reason = cases.skip?.[title];
      test(title, reason === undefined ? {} : { skip: reason }, body);
    };

    check('it names at least one model and how many requests it runs at once', () => {
      const { models, runningMax } = upstream.describe();
      assert.ok(models.length >= 1);
      assert.ok(Number.isInteger(runningMax) && runningMax >= 1);
    });

    check('its capacity says where every number comes from, and unknown is null', () => {
      const capacity = upstream.capacity();
      assert.ok(capacity.pageTokens >= 1);
      for (const value of [capacity.context, capacity.prefillPool, capacity.decodePool]) {
        assert.ok(value === null || (Number.isSafeInteger(value) && value > 0));
      }
      for (const node of capacity.nodes) assert.ok(node.source.length > 0 && node.node.length > 0);
    });

    check('an answer begins, comes, ends and is released, in this order and once', async () => {
      const recorder = new Recorder().start(upstream, request());
      await recorder.done();
      assert.deepEqual(recorder.events, ['started', 'text', 'end', 'released']);
    });

    check('a finished answer counts the prompt as `count` does, and every token of output', async () => {
      const recorder = new Recorder().start(upstream, request());
      await recorder.done();
      const end = recorder.ending;
      assert.ok(end?.kind === 'finished', `expected a finished answer, got ${end?.kind}`);
      const counted = await countNow(upstream, PROMPT);
      assert.equal(end.usage.promptTokens, counted);
      assert.ok(end.usage.prefillTokens === null || end.usage.prefillTokens === counted);
      assert.equal(end.usage.completionTokens, recorder.tokens);
      assert.equal(end.finishReason, 'length');
      if (recorder.counts !== null) assert.equal(recorder.counts.promptTokens, counted);
    });

    check('a chat is counted with its template, above its contents alone', async () => {
      const chat = await countNow(upstream, { kind: 'chat', messages: [{ role: 'user', content: 'hello' }] });
      assert.ok(chat > (await countNow(upstream, { kind: 'text', text: 'hello' })));
    });

    check('the same request with the same seed gives the same text', async () => {
      const first = new Recorder().start(upstream, request());
      await first.done();
      const second = new Recorder().start(upstream, request());
      await second.done();
      assert.equal(first.text_, second.text_);
    });

    check('its bounds hold the exact count, and it takes requests', async () => {
      assert.deepEqual(upstream.health(), { isUp: true });
      const count = upstream.count(PROMPT);
      if (count.kind === 'exact') return;
      const exact = await count.exact();
      assert.ok(count.least <= exact && exact <= count.most, `${count.least} <= ${exact} <= ${count.most}`);
    });

    check('max_tokens 1 gives one token', async () => {
      const recorder = new Recorder().start(upstream, request({ maxTokens: 1 }));
      await recorder.done();
      assert.equal(recorder.tokens, 1);
    });

    check('an abort at once ends the request as aborted and releases it', async () => {
      const recorder = new Recorder().start(upstream, request({ maxTokens: 60 }));
      recorder.run!.abort();
      await recorder.done();
      assert.ok(recorder.ending?.kind === 'aborted', `expected an aborted end, got ${recorder.ending?.kind}`);
      assert.deepEqual(recorder.events.slice(-2), ['end', 'released']);
    });

    check('an abort at the first text ends the request, and no text follows the end', async () => {
      const recorder = new Recorder();
      recorder.onText = () => {
        recorder.onText = null;
        recorder.run!.abort();
      };
      recorder.start(upstream, request({ maxTokens: 60 }));
      await recorder.done();
      assert.deepEqual(recorder.events, ['started', 'text', 'end', 'released']);
      assert.ok(recorder.tokens < 60);
    });

    check('as many requests as it runs at once all get the answer they get alone', async () => {
      const alone = new Recorder().start(upstream, request());
      await alone.done();
      const count = Math.min(8, upstream.describe().runningMax);
      const together = Array.from({ length: count }, (_, i) =>
        new Recorder().start(upstream, request({ tenant: 1 + (i % 2) })),
      );
      await Promise.all(together.map((each) => each.done()));
      for (const each of together) assert.equal(each.text_, alone.text_);
    });

    check('a self-test finds nothing wrong', async () => {
      assert.equal(await upstream.selfTest(AbortSignal.timeout(10_000)), null);
    });

    check('a self-test that was aborted before it began says so', async () => {
      assert.notEqual(await upstream.selfTest(AbortSignal.abort()), null);
    });
  });
}
