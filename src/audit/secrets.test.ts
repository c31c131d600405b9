/** Goal: a key planted anywhere a target can hold one appears in no output of any format. Method: plant, render all, search. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeNode, sglangAnswers } from '../../test/support/fake-node.js';
import { SystemClock } from '../base/clock.js';
import { OUTPUT_FORMATS, renderReport } from '../findings/render.js';
import { isSecretName } from '../upstream/shapes.js';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { best, flagOf } from './ask.js';
import { gather } from './gather/gather.js';
import { RULES } from './registry.js';
import { passed, type Rule } from './rule.js';
import { audit } from './run.js';
import { secretsGone } from './secrets.js';

const PLANTED = 'PlantedKey7f3a9c';
const clock = new SystemClock();

const SGLANG_LOG = `[2026-10-01 00:00:00] server_args=ServerArgs(model_path='m', api_key='${PLANTED}', admin_api_key='${PLANTED}', host='0.0.0.0', port=30000, disaggregation_mode='prefill', context_length=8192, hicache_storage_backend_extra_config='{"access_key": "${PLANTED}"}')
[2026-10-01 00:00:00] max_total_num_tokens=2048, chunked_prefill_size=2048, context_len=8192
`;
const VLLM_LOG = `INFO 10-01 00:00:00 [api_utils.py:286] non-default args: {'model': 'm', 'api_key': ['${PLANTED}'], 'max_model_len': 4096, 'hf_token': '${PLANTED}'}
INFO 10-01 00:00:00 [kv_cache_utils.py:1] GPU KV cache size: 2,048 tokens, Maximum concurrency for 4,096 tokens per request: 0.50x
`;
const MANIFEST = `apiVersion: v1
kind: Pod
metadata: {name: planted-pod}
spec:
  containers:
    - name: engine
      image: vllm/vllm-openai:v0.32.0
      args: [--model=m, --api-key, ${PLANTED}, "--max-model-len=4096", "--otlp=https://user:${PLANTED}@host/x"]
      env:
        - {name: VLLM_API_KEY, value: ${PLANTED}}
        - {name: HF_TOKEN, value: ${PLANTED}}
        - {name: SOME_PASSPHRASE_OF_OURS, value: ${PLANTED}}
    - name: nats
      image: nats:2.10
      args: [--user, admin, --pass, ${PLANTED}, --auth, ${PLANTED}]
    - name: frontend
      command: [python3, -m, dynamo.frontend]
`;
const ENVIRONMENT = `SGLANG_API_KEY=${PLANTED}\0AWS_SECRET_ACCESS_KEY=${PLANTED}\0SGLANG_A=1\0MY_THING=${PLANTED}\0`;
const COMMAND = `OPENAI_KEY=${PLANTED} python3 -m sglang.launch_server --model-path m --api-key=${PLANTED} --admin-api-key ${PLANTED} --context-length 8192 --ssl-keyfile-password ${PLANTED}`;

/** Shows everything that a rule can see, as the most careless rule would. */
const careless: Rule = {
  meta: { ...RULES[0]!.meta, id: 'sources.careless', engines: 'all' },
  check: (_fleet, node) => {
    const all = { ...node, flags: [...node.flags], variables: [...node.variables], routes: [...node.routes] };
    return passed(JSON.stringify(all));
  },
};

test('a planted key is in no output, even where a rule shows all that it was given', async () => {
  const answers = sglangAnswers({
    role: 'prefill',
    version: '0.5.23',
    context: 8192,
    pool: 2048,
    flags: {
      api_key: PLANTED,
      admin_api_key: PLANTED,
      launch_command: `python -m sglang.launch_server --api-key ${PLANTED}`,
    },
    variables: { SGLANG_SECRET: PLANTED, SGLANG_TOKEN: PLANTED },
  });
  const node = await fakeNode(answers, 'OtherPlanted55aa');
  const folder = mkdtempSync(join(tmpdir(), 'cofferdam-secrets-'));
  const files = {
    'a.log': SGLANG_LOG,
    'b.log': VLLM_LOG,
    'c.yaml': MANIFEST,
    'd.environ': ENVIRONMENT,
    'e.sh': COMMAND,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const headers = new Map([[node.url, { authorization: 'Bearer OtherPlanted55aa' }]]);
  const options = { targets: [folder, node.url], commands: [COMMAND], headers, waitMs: 0, advertised: null, pools: [] };
  const judged = { failOn: 'high', required: [], waivers: [], baseline: null } as const;
  const report = await audit({ ...options, ...judged }, { clock, version: '0', rules: [...RULES, careless] });
  const { nodes } = await gather(options, { clock });
  await node.close();
  rmSync(folder, { recursive: true });
  assert.equal(report.nodes.length, 8, report.nodes.map(({ name }) => name).join());
  for (const format of OUTPUT_FORMATS) {
    const text = renderReport(report, format);
    assert.ok(!text.includes(PLANTED), `${format} shows a planted key`);
    assert.ok(!text.includes('OtherPlanted55aa'), `${format} shows the key that was used`);
  }
  // That they were set, and shown by the node, is known all the same.
  const live = nodes.find(({ endpoint }) => endpoint !== null);
  assert.ok(live !== undefined && flagOf(live, 'api-key').state === 'set');
  // The only prefill of the logs is the only live one: they are one node.
  const shown = new Set(live.keysShown.map(({ value }) => value));
  for (const name of ['api_key', 'admin_api_key', 'launch_command', 'server_args.api_key'])
    assert.ok(shown.has(name), name);
  assert.equal(best(nodes.find(({ name }) => name === 'b')!.keysShown)?.value, 'non-default args.api_key');
});

test('names of keys are told from names that only sound like them', () => {
  for (const name of [
    'api_key',
    'api-key',
    'admin_api_key',
    'HF_TOKEN',
    'AWS_SECRET_ACCESS_KEY',
    'password',
    'ssl_keyfile_password',
    'access_key',
    'VLLM_API_KEY',
  ]) {
    assert.ok(isSecretName(name), name);
  }
  for (const name of [
    'max_total_tokens',
    'tokenizer_path',
    'num_reserved_decode_tokens',
    'speculative_num_draft_tokens',
    'ssl_keyfile',
    'tokenizer_worker_num',
    'page_size',
    'model',
  ]) {
    assert.ok(!isSecretName(name), name);
  }
});

test('texts in the form of a key do not pass the last look', () => {
  for (const key of [
    'sk-abcdefgh12345678',
    'hf_abcdefghijklmnop',
    'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefgh',
    'AKIAABCDEFGHIJKLMNOP',
  ]) {
    assert.ok(!secretsGone(`seen ${key} here`).includes(key), key);
  }
  assert.equal(secretsGone('start with `--api-key KEY`'), 'start with `--api-key KEY`');
  assert.equal(secretsGone('task-12345678 risk-assessment'), 'task-12345678 risk-assessment');
});
