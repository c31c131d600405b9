/**
 * Goal: a field or a route that works for a tenant is found with evidence, and one that does not is never called a leak. Method: a
 * canned engine with one weakness each, then the real program with the faults of the catalogue.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { handles } from '../src/probe/experiments/handles.js';
import { startServe } from './support/program.js';
import { HastyClock, PROBE_KEYS, PROBE_TENANT_FLAGS, type Probed, type Probing, probed } from './support/probing.js';
import {
  answerJson,
  answerText,
  isPrompt,
  promptOf,
  recalled,
  type Recalling,
  recallingEngine,
  refuse,
} from './support/recalling-engine.js';
import type { CannedEngine, CannedRequest } from './support/canned-engine.js';

/** Those of the real program take some seconds each. */
const LONG = process.env.COFFERDAM_LONG === '1';
const SEED = Number(process.env.SEED ?? 5);

async function tried(
  weakness: Recalling,
  more: Partial<Probing> = {},
): Promise<Probed & { readonly engine: CannedEngine }> {
  const engine = recallingEngine(weakness);
  try {
    const url = await engine.listen();
    return { ...(await probed({ experiment: handles, url, seed: SEED, ...more })), engine };
  } finally {
    await engine.close();
  }
}

const said = ({ result }: Probed): string => `seed ${SEED}\n${[result.control, ...result.evidence].join('\n')}`;

const isOf = ({ headers }: CannedRequest, tenant: keyof typeof PROBE_KEYS): boolean =>
  headers.authorization === `Bearer ${PROBE_KEYS[tenant]}`;

test('fields that are accepted and do nothing are no leak, and are named', async () => {
  const run = await tried({});
  assert.equal(run.result.verdict, 'isolated', said(run));
  assert.equal(run.result.hits, 0);
  assert.match(said(run), /accepted, no effect seen: .*kv_transfer_params \(guessed\).*cache_salt.*request_id/);
  assert.match(said(run), /None of 112 requests for operators' routes was answered with content/);
});

test('an endpoint that refuses what it does not know is isolated, field by field', async () => {
  const known = new Set(['model', 'prompt', 'max_tokens', 'temperature', 'stream', 'stream_options']);
  const run = await tried({
    first: (request, response) => {
      const unknown = Object.keys(request.body).find((name) => !known.has(name));
      return unknown !== undefined && refuse(response, 400, 'Expected no such field.');
    },
  });
  assert.equal(run.result.verdict, 'isolated', said(run));
  assert.match(said(run), /^refused: .*kv_transfer_params \(guessed\).*bootstrap_room.*rid \(another tenant's\)/m);
});

test('another tenant’s transfer parameters that work are found, also nested, and are written nowhere', async () => {
  const prompts = new Map<string, string>();
  const run = await tried({
    adds: (request) => {
      const handle = `held-${prompts.size}`;
      prompts.set(handle, recalled(request));
      return { kv_transfer_params: { remote: { handle } } };
    },
    answers: ({ body }) => {
      const nested = body.vllm_xargs as { kv_transfer_params?: { remote: { handle: string } } } | undefined;
      return prompts.get(nested?.kv_transfer_params?.remote.handle ?? '');
    },
  });
  assert.equal(run.result.verdict, 'leaks', said(run));
  assert.match(
    said(run),
    /^vllm_xargs\.kv_transfer_params \(another tenant's\): another tenant's marker came back \(q-\d+\)\.$/m,
  );
  assert.doesNotMatch(said(run), /^kv_transfer_params/m);
  assert.doesNotMatch(JSON.stringify([run.result, run.records]), /held-\d|probe-test-key/);
});

test('an answer that a field changes, twice, against the same request without it is evidence', async () => {
  const run = await tried({ answers: ({ body }) => (body.id_slot === undefined ? undefined : ' other words') });
  assert.equal(run.result.verdict, 'leaks', said(run));
  assert.equal(run.result.hits, 1);
  assert.match(said(run), /^id_slot: the answer changed, twice/m);
});

test('where answers change by themselves, nothing is called a leak, and nothing isolated', async () => {
  let count = 0;
  const always = await tried({ answers: (request) => `${recalled(request).slice(0, 31)}${count++}` });
  assert.equal(always.result.verdict, 'no-power', said(always));
  assert.match(said(always), /differed when it was asked again/);
  let changes = 0;
  // After the controls: one answer changes, and so do those that are asked to confirm it.
  const later = await tried({
    answers: (request) => {
      if (request.body.id_slot !== undefined) changes++;
      return changes > 0 && isOf(request, 'b') ? ` words ${changes++}` : undefined;
    },
  });
  assert.equal(later.result.verdict, 'no-power', said(later));
  assert.match(said(later), /not to be told, since answers without it differ too: id_slot/);
});

test('a namespace that holds what another tenant wrote is found by asking for it', async () => {
  let theirs = '';
  const run = await tried({
    answers: (request) => {
      if (isOf(request, 'a') && isPrompt(request)) theirs = recalled(request);
      const asksOnly = !promptOf(request).includes('KVC-');
      return request.body.session_id === 'a' && asksOnly ? theirs : undefined;
    },
  });
  assert.equal(run.result.verdict, 'leaks', said(run));
  assert.match(said(run), /^session_id: another tenant's marker came back/m);
});

test('a request that disturbs another one by its id is found', async () => {
  // Two requests under one id, or its beginning: one of them loses its answer.
  const waits = new Map<string, (() => void)[]>();
  const run = await tried({
    first: (request, response) => {
      const rid = request.body.rid;
      if (typeof rid !== 'string' || rid.endsWith('x')) return false;
      const answer = isOf(request, 'a')
        ? () => answerJson(response, 200, { choices: [{ index: 0, text: '', finish_reason: 'abort' }] })
        : () => answerText(response, request, recalled(request), promptOf(request).length);
      const key = rid.slice(0, 10);
      waits.set(key, [...(waits.get(key) ?? []), answer]);
      if (waits.get(key)!.length < 2) return true;
      for (const each of waits.get(key)!) each();
      waits.delete(key);
      return true;
    },
  });
  assert.equal(run.result.verdict, 'leaks', said(run));
  assert.match(said(run), /^rid \(another tenant's\): the answer changed/m);
  assert.match(said(run), /^rid \(the beginning of another tenant's\): the answer changed/m);
});

test('operators’ routes that answer in one spelling only are found; an endpoint that answers everything is not accused', async () => {
  const run = await tried({
    first: ({ path }, response) => path === '/v1/..%2fmetrics' && answerJson(response, 200, [{ running: 3 }]),
  });
  assert.equal(run.result.verdict, 'leaks', said(run));
  assert.match(said(run), /^An operators' route answers a tenant: GET \/v1\/\.\.%2fmetrics \(q-\d+\)\.$/m);
  assert.equal(run.result.figures?.open, 1);
  const everything = await tried({
    first: (request, response) => {
      if (isPrompt(request) || request.path === '/v1/models') return false;
      return answerJson(response, 200, { page: 'welcome' });
    },
  });
  assert.equal(everything.result.verdict, 'isolated', said(everything));
});

test('what changes state is asked for only when it is allowed', async () => {
  const asks = async (allowDestructive: boolean): Promise<string[]> => {
    const { engine } = await tried({}, { allowDestructive });
    return engine.requests.map(({ path }) => path).filter((path) => /flush|abort|reset|profile/.test(path));
  };
  assert.deepEqual(await asks(false), []);
  assert.ok((await asks(true)).includes('/flush_cache'));
});

test('an endpoint that hangs on a field is left alone after three of them, and that is no power', async () => {
  const run = await tried(
    { first: ({ body }) => body.bootstrap_room !== undefined || body.extra_body !== undefined },
    { clock: new HastyClock(100) },
  );
  assert.equal(run.result.verdict, 'no-power', said(run));
  assert.match(said(run), /^no answer came: extra_body\.kv_transfer_params/m);
  assert.equal(run.engine.requests.filter(({ body }) => body.id_slot !== undefined).length, 0);
});

test('a 429 is waited for; a field that never gets past it is not judged', async () => {
  let count = 0;
  const throttles = (always: boolean): Recalling => ({
    first: ({ body }, response) => {
      if (body.id_slot === undefined || (!always && ++count > 2)) return false;
      return refuse(response, 429, 'Too many requests.');
    },
  });
  const clock = new HastyClock(100);
  const waited = await tried(throttles(false), { clock });
  assert.equal(waited.result.verdict, 'isolated', said(waited));
  const never = await tried(throttles(true), { clock });
  assert.equal(never.result.verdict, 'no-power', said(never));
  assert.match(said(never), /^answered with 429 and not judged: id_slot\.$/m);
});

test('one tenant alone can not be told apart', async () => {
  const run = await tried({}, { tenants: ['a'] });
  assert.equal(run.result.verdict, 'could-not-run');
  assert.match(run.result.control, /needs two tenants/);
});

for (const [fault, evidence] of [
  [null, /^refused: kv_transfer_params/m],
  ['stale-handle', /^kv_transfer_params \(another tenant's\): another tenant's marker came back/m],
  ['room-collision', /^bootstrap_room \(both tenants in one\): another tenant's marker came back/m],
] as const) {
  test(`on the real program, ${fault === null ? 'every field is refused' : `the fault ${fault} is found`}`, {
    skip: fault !== null && !LONG,
  }, async () => {
    const broken = fault === null ? [] : ['--guards', 'off', '--fault', fault];
    const served = await startServe([...PROBE_TENANT_FLAGS, ...broken]);
    try {
      const run = await probed({ experiment: handles, url: served.facts.url.replace(/\/v1$/, ''), seed: SEED });
      assert.equal(run.result.verdict, fault === null ? 'isolated' : 'leaks', said(run));
      assert.match(said(run), evidence);
    } finally {
      await served.stop();
    }
  });
}
