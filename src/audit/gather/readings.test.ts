/** Goal: the numbers of every engine and version are the ones that count for one request. Method: texts in the engines' own forms. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { best, flagOf, poolOf, signOf } from '../ask.js';
import type { NodeFacts } from '../facts.js';
import { classify } from './classify.js';
import { fleetOf } from './gather.js';
import type { Piece } from './piece.js';

function pieces(texts: readonly string[]): Piece[] {
  return texts.flatMap((text, index) => {
    const found = classify(text);
    assert.ok(found.kind !== 'skipped' && found.kind !== 'manifest', `${text.slice(0, 60)} was not recognised`);
    return found.readings.map((reading) => ({
      reading,
      source: { kind: found.kind, name: `f${index}` },
      place: 'p',
      name: 'n',
    }));
  });
}

function node(...texts: readonly string[]): NodeFacts {
  const { nodes } = fleetOf(pieces(texts), [], { advertised: null, pools: [] });
  assert.equal(nodes.length, 1);
  return nodes[0]!;
}

const pool = (one: NodeFacts): number | undefined => poolOf(one)?.value.tokens;
const context = (one: NodeFacts): number | undefined => best(one.advertised)?.value;
const limit = (one: NodeFacts): number | undefined => best(one.acceptLimit)?.value;

const info = (over: Record<string, unknown>): string =>
  JSON.stringify({
    model_path: 'm',
    version: '0.5.23',
    disaggregation_mode: 'null',
    context_length: 8192,
    max_total_num_tokens: 9000,
    max_req_input_len: 8186,
    internal_states: [{}],
    ...over,
  });

test('SGLang with data parallelism counts its smallest rank, for the pool and for the limit', () => {
  const states = [9000, 4000, 9000].map((token_capacity) => ({ memory_usage: { token_capacity } }));
  const one = node(info({ dp_size: 3, internal_states: states }));
  assert.deepEqual([pool(one), poolOf(one)?.value.rank, limit(one)], [4000, '1', 3993]);
});

test('a rank that did not tell its pool leaves the pool uncertain', () => {
  const states = [{ memory_usage: { token_capacity: 9000 } }, {}];
  assert.match(node(info({ dp_size: 2, internal_states: states })).poolUnsaid[0]?.value ?? '', /1 of 2 ranks/);
  const log = '[2026 DP0 TP0] max_total_num_tokens=9000, chunked_prefill_size=1, context_len=8192\n';
  const args = "server_args=ServerArgs(model_path='m', dp_size=2)\n";
  assert.match(node(args + log).poolUnsaid[0]?.value ?? '', /1 of 2 ranks/);
  assert.equal(node(args + log + log.replace('DP0', 'DP1')).poolUnsaid.length, 0);
});

test('a context of null is the model’s default, which `/v1/models` tells', () => {
  const models =
    '{"object":"list","data":[{"id":"m","owned_by":"sglang","max_model_len":4096},{"id":"a","owned_by":"sglang","parent":"m","max_model_len":null}]}';
  const one = node(info({ context_length: null }), models);
  assert.equal(context(one), 4096);
  assert.equal(node(info({ context_length: null })).advertised.length, 0);
});

test('the role is the live one, whatever the configuration said at the start', () => {
  assert.equal(
    node(info({ disaggregation_mode: 'prefill', internal_states: [{ disaggregation_mode: 'decode' }] })).role,
    'decode',
  );
});

test('decode context parallelism multiplies a pool of up to 0.5.19, and is marked as an estimate', () => {
  const dcp = (version: string): NodeFacts => node(info({ version, dcp_size: 4, max_total_num_tokens: 1000 }));
  assert.deepEqual([pool(dcp('0.5.18')), pool(dcp('0.5.23'))], [4000, 1000]);
  assert.equal(poolOf(dcp('0.5.23'))?.value.estimate, true);
});

test('environment switches are known only where the node was told to show them', () => {
  const shown = node(info({ internal_states: [{ env_vars: { SGLANG_A: '1', SGLANG_B_TOKEN: 'x' } }] }));
  assert.deepEqual(
    [...shown.variables].map(([name, [said]]) => [name, said?.value]),
    [
      ['SGLANG_A', '1'],
      ['SGLANG_B_TOKEN', '(set)'],
    ],
  );
  assert.equal(shown.variablesComplete.length, 1);
  assert.equal(node(info({})).variablesComplete.length, 0);
});

const SGLANG_LOGS: readonly (readonly [string, string])[] = [
  [
    '0.5.18',
    "[2026-11-30 20:29:08] server_args=ServerArgs(model_path='m', context_length=1048576, disaggregation_mode='prefill', cuda_graph_config={'decode': {'bs': [1, 2]}}, api_key=None)\n[2026] max_total_num_tokens=681280, chunked_prefill_size=2048, max_prefill_tokens=16384, max_running_requests=1024, context_len=1048576, available_gpu_mem=17.89 GB\n",
  ],
  [
    '0.5.23',
    "[2026-11-30 20:29:08] server_args={'model_path': 'm', 'context_length': 1048576, 'disaggregation_mode': 'prefill', 'x': None}\n[2026] KV pool holds 681280 tokens, fewer than --context-length 1048576. One full-length request cannot fit\n",
  ],
  [
    '0.4',
    '[2025-03-01 00:00:00 TP0] max_total_num_tokens=681280, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2049, context_len=1048576\n[2025] CommonKVBootstrapServer started successfully on 0.0.0.0:8998\n',
  ],
  [
    'sized after capture',
    "[2026] server_args=ServerArgs(model_path='m', context_length=1048576, disaggregation_mode='prefill')\n[2026] Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 681280, K size: 1.00 GB, V size: 1.00 GB\n",
  ],
];

for (const [form, text] of SGLANG_LOGS) {
  test(`SGLang’s log of form ${form} tells context, pool and role`, () => {
    const one = node(text);
    assert.deepEqual([one.engine, context(one), pool(one), one.role], ['sglang', 1048576, 681280, 'prefill']);
  });
}

test('a log of two starts tells of the second, and a refusal tells the limit', () => {
  const start = (tokens: number): string =>
    `server_args=ServerArgs(model_path='m', context_length=8192)\nmax_total_num_tokens=${tokens}, context_len=8192\n`;
  const refusal =
    "Input length (2097 tokens) exceeds the maximum allowed length (2042 tokens). Use a shorter input, self.rid='9'\n";
  const one = node(start(9999) + start(2048) + refusal);
  assert.deepEqual([pool(one), limit(one)], [2048, 2041]);
  assert.equal(signOf(one, 'length-refused')?.count, 1);
});

test('signs of trouble are counted, with the line of the first', () => {
  const log =
    "server_args=ServerArgs(model_path='m')\nx Deferred KV release for room 5 timed out after 30.0s without a full drain ack from prefill; releasing anyway.\n[canary] step=100 protected_tokens=1\n[canary] step=200 protected_tokens=1\n";
  const one = node(log);
  assert.deepEqual([signOf(one, 'canary-alive')?.count, signOf(one, 'canary-alive')?.source.line], [2, 3]);
  assert.equal(signOf(one, 'deferred-release-timeout')?.source.line, 2);
  assert.equal(signOf(one, 'canary-violation'), null);
});

test('SGLang’s metrics tell context and the smallest rank, with data parallelism and without', () => {
  const series = (labels: string, tokens: number): string =>
    `sglang:max_total_num_tokens{${labels}} ${tokens}.0\nsglang:context_len{${labels}} 8192.0\n`;
  const plain = node(`# HELP x\n${series('engine_type="decode",model_name="m"', 9000)}`);
  assert.deepEqual([pool(plain), context(plain), plain.role], [9000, 8192, 'decode']);
  const ranks = node(
    series('dp_rank="0",engine_type="unified"', 9000) + series('dp_rank="1",engine_type="unified"', 5000),
  );
  assert.deepEqual([pool(ranks), ranks.role], [5000, 'single']);
});

const cache = (labels: Record<string, string>): string =>
  `vllm:cache_config_info{${Object.entries(labels)
    .map(([name, value]) => `${name}="${value}"`)
    .join(',')}} 1.0\n`;

test('vLLM’s null block is not counted, a hybrid’s figure is an estimate, and `None` is not a pool of nothing', () => {
  const plain = node(cache({ engine: '0', num_gpu_blocks: '16', block_size: '128', kv_cache_size_tokens: '2048' }));
  assert.deepEqual([pool(plain), poolOf(plain)?.value.estimate], [1920, false]);
  const hybrid = node(cache({ engine: '0', num_gpu_blocks: '643', block_size: '16', kv_cache_size_tokens: '1553140' }));
  assert.deepEqual([pool(hybrid), poolOf(hybrid)?.value.estimate], [1553140, true]);
  const none = node(cache({ engine: '0', num_gpu_blocks: 'None', block_size: '16' }));
  assert.equal(pool(none), undefined);
  assert.match(none.poolUnsaid[0]?.value ?? '', /None/);
});

test('vLLM’s engines are ranks: the smallest counts, they are never added up; through Ray they are the same', () => {
  const two =
    cache({ engine: '0', num_gpu_blocks: '16', block_size: '128' }) +
    cache({ engine: '1', num_gpu_blocks: '11', block_size: '128' });
  assert.equal(pool(node(two)), 1280);
  assert.equal(pool(node(two.replaceAll('vllm:', 'ray_vllm_'))), 1280);
});

for (const [form, text] of [
  [
    'two lines',
    'INFO 04-23 [kv_cache_utils.py:829] GPU KV cache size: 290,864 tokens\nINFO [kv_cache_utils.py:833] Maximum concurrency for 32,768 tokens per request: 8.88x\n',
  ],
  [
    'one line',
    '(EngineCore pid=1) INFO [kv_cache_utils.py:2327] GPU KV cache size: 290,864 tokens, Maximum concurrency for 32,768 tokens per request: 8.88x\n',
  ],
  [
    'CPU',
    '(EngineCore pid=1) INFO [kv_cache_utils.py:2327] CPU KV cache size: 290,864 tokens, Maximum concurrency for 32,768 tokens per request: 8.88x\n',
  ],
  [
    'with host memory',
    'INFO [kv_cache_utils.py:1] GPU + host KV cache size: 290,864 tokens, Maximum concurrency for 32,768 tokens per request: 8.88x\n',
  ],
] as const) {
  test(`vLLM’s startup line in its form of ${form} tells pool, context and concurrency`, () => {
    const one = node(text);
    assert.deepEqual([pool(one), context(one), best(one.concurrency)?.value], [290864, 32768, 8.88]);
  });
}

test('vLLM’s non-default arguments hold every flag that is not at its default, and an auto-fitted context is the reduced one', () => {
  const one = node(
    "INFO [api_utils.py:286] non-default args: {'model': 'm', 'max_model_len': 4096, 'kv_transfer_config': KVTransferConfig(kv_connector='NixlConnector', kv_role='kv_consumer')}\nINFO Auto-fit max_model_len: reduced from 4096 to 1920 to fit in available GPU memory (0.0 GiB)\n",
  );
  assert.deepEqual([one.role, context(one)], ['decode', 1920]);
  assert.equal(flagOf(one, 'enable-prompt-tokens-details').state, 'default');
  assert.equal(best(one.transferConfigs)?.value.connector, 'NixlConnector');
});

test('llama-server’s slots are told with their sharing, and its limit is one below the context', () => {
  const one = node(
    "srv load_model: initializing, n_slots = 4, n_ctx_slot = 4096, kv_unified = 'true'\nllama_context: n_ctx_seq (4096) < n_ctx_train (8192) -- the full capacity\n",
  );
  assert.deepEqual(best(one.slots)?.value, { count: 4, contextEach: 4096, unified: true });
  assert.deepEqual([context(one), limit(one), best(one.contextTrained)?.value], [4096, 4095, 8192]);
});

test('Cofferdam’s own engine is told from SGLang, whose answers it gives', () => {
  const one = node(info({ version: 'cofferdam-0.1.0', cofferdam: { faults: ['stale-handle'], guards_off: [] } }));
  assert.deepEqual([one.engine, one.version?.text], ['cofferdam', '0.1.0']);
  const fault = flagOf(one, 'fault');
  assert.equal(fault.state === 'set' ? fault.value : '', 'stale-handle');
});

test('hostile names of fields and labels touch nothing of ours', () => {
  const one = node(info({ __proto__: { polluted: 1 }, constructor: 'x', toString: 'y' }));
  assert.equal(({} as { polluted?: number }).polluted, undefined);
  assert.equal(one.engine, 'sglang');
  node(`sglang:context_len{__proto__="x",constructor="y"} 8192\n`);
});
