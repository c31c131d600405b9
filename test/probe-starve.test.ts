/**
 * Goal: a service that one tenant takes from another is called starved, with the trials that show it, and nothing else is. Method: canned
 * engines that hang, fail, park or throttle in one way each, on a clock that makes long deadlines short; then the real program.
 */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { SystemClock } from '../src/base/clock.js';
import { ProbeClient } from '../src/probe/client.js';
import { boundary } from '../src/probe/experiments/boundary.js';
import { starve } from '../src/probe/experiments/starve.js';
import { startServe } from './support/program.js';
import { HastyClock, PROBE_KEYS, PROBE_TENANT_FLAGS, type Probed, type Probing, probed } from './support/probing.js';
import {
  answerText,
  isPrompt,
  promptOf,
  recalled,
  type Recalling,
  recallingEngine,
  refuse,
} from './support/recalling-engine.js';
import { CannedEngine, type CannedRequest } from './support/canned-engine.js';

const LONG = process.env.COFFERDAM_LONG === '1';
const SEED = Number(process.env.SEED ?? 9);
/** Twenty seconds are 400 ms: more than a busy machine makes of a request that takes one. */
const HASTE = 50;
/** Where something hangs, and three trials in a row show it. */
const HASTE_HUNG = { clock: new HastyClock(125) };
const MODEL_LEN = 2048;

async function tried(weakness: Recalling, more: Partial<Probing> = {}): Promise<Probed> {
  const engine = recallingEngine(weakness);
  try {
    const url = await engine.listen();
    return await probed({ experiment: starve, url, seed: SEED, clock: new HastyClock(HASTE), ...more });
  } finally {
    await engine.close();
  }
}

const said = ({ result }: Probed): string => `seed ${SEED}\n${[result.control, ...result.evidence].join('\n')}`;

const isOf = ({ headers }: CannedRequest, tenant: keyof typeof PROBE_KEYS): boolean =>
  headers.authorization === `Bearer ${PROBE_KEYS[tenant]}`;

const isOverLong = (request: CannedRequest): boolean => promptOf(request).length >= MODEL_LEN;

/** Asks for an answer that only a tenant asks for who parks or lets it grow. */
const isLasting = ({ body }: CannedRequest): boolean => Number(body.max_tokens) > 1000;

/** Requests of one kind that are open, and never answered. */
class Held {
  open = 0;

  hold(response: ServerResponse): true {
    this.open++;
    response.once('close', () => this.open--);
    return true;
  }

  /** A stream that begins and goes on. */
  stream(response: ServerResponse): true {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(`data: ${JSON.stringify({ choices: [{ index: 0, text: ' yes', finish_reason: null }] })}\n\n`);
    return this.hold(response);
  }
}

test('an answer that is cut when others have filled the pool that it shares with them is starved', async () => {
  const held = new Held();
  const run = await tried({
    first: (request, response) => {
      if (isLasting(request)) return held.stream(response);
      // Who asks for four tokens is through before the pool is full.
      if (held.open < 3 || Number(request.body.max_tokens) < 100) return false;
      return refuse(response, 500, 'The pool is full.');
    },
  });
  assert.equal(run.result.verdict, 'starves', said(run));
  assert.match(said(run), /^Beside prompts whose answers grow .*; not served: q-\d+ 500 refused/m);
});

test('an engine that refuses, goes on and lets leave serves the other tenant: isolated, with the bound', async () => {
  const held = new Held();
  const run = await tried({ first: (request, response) => isLasting(request) && held.stream(response) });
  assert.equal(run.result.verdict, 'isolated', said(run));
  assert.ok((run.result.bound ?? 1) < 0.05);
  assert.match(run.result.control, /^Beside ordinary requests \(80 answered\), 20 of 20 small requests were served/);
  assert.match(said(run), /^Beside prompts beyond what is advertised \(80 refused\), 20 of 20 /m);
  assert.match(said(run), /^Beside streams that nobody reads on \(4 left\), 20 of 20 /m);
});

test('a head of the line that hangs on an over-long prompt, and everyone behind it, starves: said after three trials', async () => {
  const held = new Held();
  const run = await tried(
    {
      first: (request, response) => {
        if (!isPrompt(request) || (!isOverLong(request) && held.open === 0)) return false;
        return held.hold(response);
      },
    },
    HASTE_HUNG,
  );
  assert.equal(run.result.verdict, 'starves', said(run));
  assert.match(
    said(run),
    /^Beside prompts beyond what is advertised .*, 0 of 3 .*not served: q-\d+ hung, q-\d+ hung, q-\d+ hung\.$/m,
  );
  assert.equal(run.result.evidence.length, 2, 'no other burden is tried after that');
});

test('errors beside answers that grow, and silence beside streams that nobody reads, starve', async () => {
  const growing = new Held();
  const errors = await tried({
    first: (request, response) => {
      if (isLasting(request)) return growing.stream(response);
      return growing.open >= 3 && isOf(request, 'b') && refuse(response, 500, 'The pool is full.');
    },
  });
  assert.equal(errors.result.verdict, 'starves', said(errors));
  assert.match(said(errors), /not served: q-\d+ 500 refused/);
  const parked = new Held();
  const silent = await tried(
    {
      first: (request, response) => {
        if (isLasting(request)) return parked.stream(response);
        if (parked.open === 0 || !isOf(request, 'b')) return false;
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.flushHeaders();
        return true;
      },
    },
    HASTE_HUNG,
  );
  assert.equal(silent.result.verdict, 'starves', said(silent));
  assert.match(said(silent), /^Beside streams that nobody reads on .*not served: q-\d+ 200 hung/m);
});

test('a service that gets slower is reported, and is not starvation', async () => {
  const clock = new SystemClock();
  let small = 0;
  const run = await tried({
    first: (request, response) => {
      // Twenty are the control's; the next twenty are those beside over-long prompts.
      if (!isOf(request, 'b') || request.body.max_tokens !== 4 || ++small <= 20 || small > 40) return false;
      clock.after(40, () => answerText(response, request, recalled(request), promptOf(request).length));
      return true;
    },
  });
  assert.equal(run.result.verdict, 'isolated', said(run));
  assert.match(said(run), /^Beside prompts beyond what is advertised .*, the first token after [2-9]\d{3} ms/m);
});

test('the other tenant’s own 429, and a burden that is throttled away, are no power', async () => {
  const isSmall = ({ body }: CannedRequest): boolean => body.max_tokens === 4;
  const throttled = await tried({
    first: (request, response) => isSmall(request) && refuse(response, 429, 'Too many requests.'),
  });
  assert.equal(throttled.result.verdict, 'no-power', said(throttled));
  assert.match(throttled.result.control, /0 of 0 small requests were served; 20 answered with 429/);
  const burden = await tried({
    first: (request, response) => isOverLong(request) && refuse(response, 429, 'Too many requests.'),
  });
  assert.equal(burden.result.verdict, 'no-power', said(burden));
  assert.match(said(burden), /Beside prompts beyond what is advertised there was too little to judge/);
});

test('where the small requests fail beside ordinary ones too, nothing is judged', async () => {
  const run = await tried({
    first: (request, response) => request.body.max_tokens === 4 && refuse(response, 503, 'Not now.'),
  });
  assert.equal(run.result.verdict, 'no-power', said(run));
  assert.match(run.result.control, /0 of 3 small requests were served; not served: q-\d+ 503 refused/);
  assert.equal((await tried({}, { tenants: ['a'] })).result.verdict, 'could-not-run');
});

test('a parked stream is not read on, and is left when it is told', async () => {
  const tokens = 200_000;
  const engine = new CannedEngine({ count: () => 1 });
  const clock = new SystemClock();
  const tenant = { name: 'a', key: null };
  const origin = new URL(await engine.listen());
  const client = new ProbeClient({ origin, tenants: [tenant], model: 'lab', route: 'completions' }, clock, 'test', 'r');
  try {
    const ask = { tenant, prompt: 'x', maxTokens: tokens, stream: true, deadlineMs: 20_000 };
    const when = new Promise<void>((resolve) => void clock.after(100, resolve));
    const answer = await client.ask({ ...ask, leave: { when, reads: 1 } });
    assert.equal(answer.outcome, 'left');
    // One piece of what had arrived by then, at most: 64 KiB of events of some hundred bytes.
    assert.ok(
      answer.content.length > 0 && answer.content.length < 5_000,
      `${answer.content.length} characters were read`,
    );
  } finally {
    client.close();
    await engine.close();
  }
});

test('boundary says what became of over-long prompts: cut silently, answered with nothing, hung', async () => {
  const cut = (text: string, counted: (length: number) => number): Recalling => ({
    first: (request, response) => {
      if (!isOverLong(request)) return false;
      return answerText(response, request, text, counted(promptOf(request).length));
    },
  });
  const more = { experiment: boundary };
  const truncated = await tried(
    cut(' words', () => MODEL_LEN - 1),
    more,
  );
  assert.equal(truncated.result.verdict, 'no-power', said(truncated));
  assert.match(said(truncated), /^truncated: 12 answers at 2048, 2049 tokens, counted by the endpoint as 2047/m);
  const empty = await tried(
    cut('', (length) => length),
    more,
  );
  assert.equal(empty.result.verdict, 'no-power', said(empty));
  assert.match(said(empty), /^empty: 12 answers at 2048, 2049 tokens/m);
  const hung = await tried({ first: isOverLong }, { ...more, ...HASTE_HUNG });
  assert.equal(hung.result.verdict, 'starves', said(hung));
  assert.match(said(hung), /^hung: 3 answers at 2048 tokens/m);
});

/** Without the guard `admission` nothing keeps one tenant's answers from filling the pool of decode. */
for (const [broken, haste, evidence] of [
  [[], 1, /^Beside prompts whose answers grow .*, 20 of 20 small requests were served/m],
  [['--guards', 'off', '--fault', 'unannounced-rejection'], 5, /^Beside prompts beyond what .*not served/m],
  [['--guard-off', 'admission'], 10, /^Beside (streams that nobody reads on|prompts whose answers grow) .*not served/m],
] as const) {
  const what =
    broken.length === 0 ? 'the other tenant is served beside every burden' : `${broken.join(' ')} starves it`;
  test(`on the real program, ${what}`, { skip: !LONG }, async () => {
    const served = await startServe([...PROBE_TENANT_FLAGS, ...broken]);
    try {
      const url = served.facts.url.replace(/\/v1$/, '');
      const run = await probed({ experiment: starve, url, seed: SEED, clock: new HastyClock(haste) });
      assert.equal(run.result.verdict, broken.length === 0 ? 'isolated' : 'starves', said(run));
      assert.match(said(run), evidence);
    } finally {
      await served.stop();
    }
  });
}
