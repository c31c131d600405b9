/** Goal: one deployment reads alike in every spelling of its command. Method: tables of spellings against facts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Fact, Reading } from '../reading.js';
import { readCommandText } from './read.js';

const one = (text: string): Reading => {
  const readings = readCommandText(text);
  assert.equal(readings.length, 1, `${readings.length} engines in ${text}`);
  return readings[0]!;
};

function flag(reading: Reading, name: string): string | null | undefined {
  return reading.facts.find(
    (fact): fact is Extract<Fact, { kind: 'flag' }> => fact.kind === 'flag' && fact.name === name,
  )?.value;
}

function tokens(reading: Reading, kind: 'advertised' | 'pool-cap'): number | undefined {
  return reading.facts.find((fact): fact is Extract<Fact, { kind: 'advertised' | 'pool-cap' }> => fact.kind === kind)
    ?.tokens;
}

const role = (reading: Reading): string | undefined =>
  reading.facts.find((fact): fact is Extract<Fact, { kind: 'role' }> => fact.kind === 'role')?.role;
const complete = (reading: Reading): boolean => reading.facts.some(({ kind }) => kind === 'flags-complete');

for (const text of [
  'python -m sglang.launch_server --model-path m --context-length 1048576 --disaggregation-mode prefill',
  'python3 -m sglang.launch_server --model-path=m --context-length=1048576 --disaggregation-mode=prefill',
  'sglang serve --model m --context_length 1048576 --disaggregation_mode prefill',
  'FOO=1 BAR="a b" exec python3 -u -m sglang.launch_server --disaggregation-mode prefill --context-length "1048576" --model-path m',
  "bash -lc 'cd /x && python3 -m sglang.launch_server --model-path m --context-length 1048576 --disaggregation-mode prefill 2>&1 | tee log'",
  'sh -c "exec python3 -m sglang.launch_server --model-path m \\\n  --context-length 1048576 \\\n  --disaggregation-mode prefill"',
  'docker run --rm -e A=b lmsysorg/sglang:v0.5.18 python3 -m sglang.launch_server --model-path m --context-length 1048576 --disaggregation-mode prefill',
  '# a comment\nnumactl -N 0 python -m sglang.launch_server --context-length 1 --context-length 1048576 --model-path m --disaggregation-mode prefill & wait',
]) {
  test(`SGLang's context and role are read from \`${text.replaceAll('\n', ' ')}\``, () => {
    const reading = one(text);
    assert.equal(reading.engine, 'sglang');
    assert.deepEqual([tokens(reading, 'advertised'), role(reading), complete(reading)], [1048576, 'prefill', true]);
  });
}

test('words that are computed where it runs make the flags incomplete, and a computed key is still set', () => {
  const reading = one('python -m sglang.launch_server --model-path m $EXTRA_ARGS --api-key $KEY --context-length $LEN');
  assert.equal(complete(reading), false);
  assert.equal(flag(reading, 'api-key'), '(set)');
  assert.equal(flag(reading, 'context-length'), null);
  assert.equal(tokens(reading, 'advertised'), undefined);
  assert.equal(role(reading), undefined, 'a role was guessed from what is not known');
});

test('a file of flags may hold more than the command', () => {
  assert.equal(complete(one('vllm serve m --config /etc/vllm.yaml')), false);
});

for (const [text, wanted] of [
  ['4096', 4096],
  ['128k', 128000],
  ['128K', 131072],
  ['1M', 1048576],
  ['1m', 1000000],
  ['25.6k', 25600],
  ['auto', undefined],
  ['-1', undefined],
] as const) {
  test(`vLLM's \`--max-model-len ${text}\` is ${String(wanted)} tokens`, () => {
    assert.equal(tokens(one(`vllm serve m --max-model-len ${text} --port 8000`), 'advertised'), wanted);
  });
}

test('vLLM’s transfer configuration gives connector, policy and role', () => {
  const config =
    '{"kv_connector":"NixlConnector","kv_role":"kv_producer","kv_load_failure_policy":"recompute","kv_connector_extra_config":{"kv_lease_duration":30,"access_key":"x"}}';
  const reading = one(`python -m vllm.entrypoints.openai.api_server --model m --kv-transfer-config '${config}'`);
  assert.equal(role(reading), 'prefill');
  const fact = reading.facts.find(
    (one): one is Extract<Fact, { kind: 'transfer-config' }> => one.kind === 'transfer-config',
  );
  assert.deepEqual(
    [fact?.config.connector, fact?.config.loadFailurePolicy, fact?.config.extra],
    ['NixlConnector', 'recompute', { kv_lease_duration: '30', access_key: '(set)' }],
  );
});

test('vLLM’s block override bounds the pool, less the block that is never given out', () => {
  assert.equal(tokens(one('vllm serve m --num-gpu-blocks-override=16 --block-size 128'), 'pool-cap'), 1920);
  assert.equal(tokens(one('vllm serve m --num-gpu-blocks-override=16'), 'pool-cap'), undefined);
});

test('a switch does not swallow the word behind it, and `--no-x` is x turned off', () => {
  const reading = one('vllm serve --enable-prefix-caching meta/llama --no-enable-log-requests');
  assert.equal(flag(reading, 'enable-prefix-caching'), 'true');
  assert.equal(flag(reading, 'enable-log-requests'), 'false');
});

test('llama-server’s slots share one pool unless their number is given without `-kvu`', () => {
  const context = (text: string): number | undefined => tokens(one(text), 'advertised');
  assert.equal(context('llama-server -m x.gguf -c 4096'), 4096);
  assert.equal(context('/usr/bin/llama-server -m x.gguf -c 4096 -np 4'), 1024);
  assert.equal(context('llama-server -m x.gguf --ctx-size 4096 --parallel 4 -kvu'), 4096);
});

for (const [text, engine] of [
  [
    'python -m sglang_router.launch_router --pd-disaggregation --prefill http://p:30000 8998 --decode http://d:30000',
    'sglang-router',
  ],
  ['python -m sglang_router.launch_router --mini-lb --pd-disaggregation', 'sglang-mini-lb'],
  ['vllm-router --vllm-pd-disaggregation', 'vllm-router'],
  ['python -m dynamo.frontend --http-port 8000', 'dynamo'],
  ['/app/pd-sidecar --port=8000 --vllm-port=8001', 'llmd-sidecar'],
  ['mooncake_master --enable_multi_tenants=true', 'mooncake'],
] as const) {
  test(`\`${text}\` starts ${engine}`, () => {
    assert.equal(one(text).engine, engine);
  });
}

test('a command that only names an engine starts none', () => {
  for (const text of [
    'cat vllm serve',
    'pip install sglang',
    'echo llama-server',
    'grep -r sglang.launch_server .',
    'kubectl logs llama-server',
  ]) {
    assert.deepEqual(readCommandText(text), [], text);
  }
});
