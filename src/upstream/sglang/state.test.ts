/**
 * Goal: a number that a node does not say, or says as something else, admits nothing; the smallest of all that are said counts.
 * Method: the pure reading over `/server_info` in the shape of 0.5.18 to 0.5.23, one field changed at a time.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { type SglangShape, sglangAnswers } from '../../../test/support/fake-node.js';
import { pairMismatch, promptMax, sglangChanges, type SglangState, sglangState } from './state.js';

const SHAPE: SglangShape = {
  role: 'prefill',
  version: '0.5.18',
  context: 8192,
  pool: 2048,
  flags: { page_size: 1, kv_cache_dtype: 'auto', startup_time: { load_weight: 0.27 }, max_running_requests: 8 },
};

function info(change: Record<string, unknown> = {}): Record<string, unknown> {
  const said = JSON.parse(sglangAnswers(SHAPE)['/server_info']!.body!) as Record<string, unknown>;
  return { ...said, ...change };
}

function stateOf(change: Record<string, unknown> = {}, metrics: string | null = null): SglangState {
  const state = sglangState({ info: info(change), metrics });
  assert.ok(state !== null);
  return state;
}

const rank = (tokens: unknown, more: object = {}): object => ({
  memory_usage: { token_capacity: tokens, token_capacity_swa: null },
  effective_max_running_requests_per_dp: 4,
  ...more,
});

/** As it is now; what it was started with stays as it was. */
const asDecode = (more: object = {}): Record<string, unknown> => ({
  internal_states: [rank(2048, { disaggregation_mode: 'decode' })],
  ...more,
});

describe('what a node says', () => {
  test('the shortest prompt that is refused is one more than the longest that is taken', () => {
    const state = stateOf();
    assert.deepEqual([state.context, state.pool, state.acceptLimit, promptMax(state)], [8192, 2048, 2041, 2041]);
    assert.deepEqual([state.role, state.version, state.model, state.runningMax], ['prefill', '0.5.18', 'glm', 8]);
  });

  for (const nothing of [0, null, 'None', -1, 1.5, '2048', 2 ** 60, {}]) {
    test(`a pool of ${JSON.stringify(nothing)} is unknown, wherever it is said, and admits nothing`, () => {
      for (const change of [{ internal_states: [rank(nothing)] }, { max_total_num_tokens: nothing }]) {
        assert.equal(promptMax(stateOf(change)), null, JSON.stringify(change));
      }
      assert.equal(promptMax(stateOf({ max_req_input_len: nothing })), null);
      assert.equal(promptMax(stateOf({ context_length: nothing })), null);
    });
  }

  test('of several data-parallel ranks the smallest pool counts, less what the engine keeps back', () => {
    const state = stateOf({ internal_states: [rank(2048), rank(1024), rank(1500)] });
    assert.deepEqual([state.pool, state.acceptLimit, state.ranks, state.runningMax], [1024, 1017, 3, 12]);
  });

  test('a rank that does not tell its pool leaves nothing known', () => {
    for (const silent of [null, {}, rank(undefined), 'rank']) {
      assert.equal(promptMax(stateOf({ internal_states: [rank(2048), silent] })), null, JSON.stringify(silent));
    }
  });

  test('the metrics are a second source: they fill what the first leaves out, and the smaller of both counts', () => {
    const metrics = 'sglang:max_total_num_tokens{model_name="glm",dp_rank="0"} 1800.0\n';
    assert.equal(stateOf({}, metrics).pool, 1800);
    assert.equal(stateOf({}, metrics).acceptLimit, 1793);
    const { max_total_num_tokens: _, internal_states: __, ...without } = info();
    const state = sglangState({ info: { ...without, internal_states: [] }, metrics });
    assert.deepEqual([state?.pool, state?.acceptLimit], [1800, null], 'the limit of 2041 is that of another pool');
    const fitting = 'sglang:max_total_num_tokens{dp_rank="0"} 2048\n';
    assert.equal(promptMax(sglangState({ info: { ...without, internal_states: [] }, metrics: fitting })!), 2041);
    assert.equal(sglangState({ info: { ...without, internal_states: [] } })?.pool, null);
  });

  test('decode of a sliding-window model holds no more than its smaller pool; prefill is not bound by it', () => {
    const memory_usage = { token_capacity: 2048, token_capacity_swa: 512 };
    assert.equal(stateOf({ internal_states: [rank(0, { memory_usage })] }).pool, 2048);
    assert.equal(stateOf({ internal_states: [rank(0, { memory_usage, disaggregation_mode: 'decode' })] }).pool, 512);
  });

  test('the role that it plays now counts, and not the one that it was started with', () => {
    assert.equal(stateOf(asDecode()).role, 'decode');
  });

  test('what is no answer of SGLang’s is none', () => {
    for (const other of [null, [], 'x', 7, {}, { data: [] }, { version: '1' }, { internal_states: [] }]) {
      assert.equal(sglangState({ info: other }), null, JSON.stringify(other));
    }
  });
});

describe('the captured pair of 0.5.18', () => {
  const captured = (role: string): SglangState => {
    const name = `../../../../test/fixtures/audit/captures/sglang-0.5.18-pd-cpu/${role}.server_info.out`;
    const state = sglangState({ info: JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8')) });
    assert.ok(state !== null);
    return state;
  };

  test('tells its own numbers, and may be paired: its prefill takes 2,041 tokens where 8,192 are advertised', () => {
    const [prefill, decode] = [captured('prefill'), captured('decode')];
    assert.equal(pairMismatch(prefill, decode), null);
    for (const state of [prefill, decode]) assert.deepEqual([state.context, state.version], [8192, '0.5.18']);
    assert.deepEqual([prefill.pool, promptMax(prefill), prefill.bootstrapPort], [2048, 2041, 18998]);
    assert.deepEqual([decode.pool, promptMax(decode), decode.radixCacheOff], [8192, 8185, true]);
    assert.notEqual(prefill.start, decode.start);
  });
});

describe('what has changed', () => {
  const kinds = (before: SglangState | null, now: SglangState): string[] =>
    sglangChanges('n:1', before, now).map(({ kind }) => kind);

  test('is said once, in figures and names', () => {
    const before = stateOf();
    assert.deepEqual(kinds(null, before), []);
    assert.deepEqual(kinds(before, stateOf()), []);
    assert.deepEqual(kinds(before, stateOf({ internal_states: [rank(1024)] })), ['pool-shrank']);
    assert.deepEqual(kinds(stateOf({ internal_states: [rank(1024)] }), before), ['pool-grew']);
    assert.deepEqual(kinds(before, stateOf({ version: '0.5.23', startup_time: 2 })), ['version-changed']);
    assert.deepEqual(kinds(before, stateOf({ startup_time: { load_weight: 0.3 } })), ['restarted']);
    assert.deepEqual(kinds(before, stateOf(asDecode())), ['role-switched']);
    const unknown = stateOf({ internal_states: [rank(0)] });
    assert.deepEqual(kinds(before, unknown), ['capacity-unknown']);
    assert.deepEqual(kinds(unknown, unknown), []);
    assert.deepEqual(kinds(null, unknown), ['capacity-unknown']);
  });

  test('names as an engine writes them move no terminal and have an end', () => {
    const [notice] = sglangChanges('n:1', stateOf(), stateOf({ served_model_name: `a\u001b[2J\n${'x'.repeat(5000)}` }));
    assert.equal(notice?.kind, 'model-changed');
    assert.ok(!/[\u0000-\u001f]/.test(notice.words) && notice.words.length < 300, notice.words);
  });

  test('says nothing of keys', () => {
    const secret = { api_key: 'sk-secret', admin_api_key: 'sk-admin' };
    const state = stateOf(secret);
    const notices = sglangChanges('n:1', state, stateOf({ ...secret, version: '2', served_model_name: 'm', pool: 1 }));
    assert.ok(!/sk-/.test(JSON.stringify([state, notices])));
  });
});

test('a node without what must agree is paired with nobody', () => {
  const prefill = stateOf();
  const decode = stateOf(asDecode());
  assert.equal(pairMismatch(prefill, decode), null);
  for (const change of [{ kv_cache_dtype: null }, { page_size: 0 }, { version: null }, { context_length: null }]) {
    assert.notEqual(pairMismatch(stateOf(change), stateOf(asDecode(change))), null, JSON.stringify(change));
  }
  const checked = stateOf(asDecode({ disaggregation_enable_kv_checksum: true }));
  assert.match(pairMismatch(prefill, checked)!, /checksum/);
});
