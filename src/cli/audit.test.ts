/** Goal: the audit's verdicts on the public incident and on what came after it, from every kind of source. Method: the verb. */
import assert from 'node:assert/strict';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fixture, report, run, withFolder } from '../../test/support/audit-verb.js';
import { fakeNode, sglangAnswers } from '../../test/support/fake-node.js';
import { RULES } from '../audit/registry.js';

const POOL_BELOW = 'capacity.pool-below-context';
const BOTH_NUMBERS = /681280.*1048576|1048576.*681280/;

const INCIDENT_LOGS = [fixture('incident/prefill.log'), fixture('incident/decode.log')];

test('the incident’s logs give the critical finding first, with both numbers in its title', async () => {
  const made = await report(['--advertised', '1048576', ...INCIDENT_LOGS]);
  assert.equal(made.code, 1);
  const [first] = made.findings;
  assert.deepEqual([first?.id, first?.severity, first?.where.node], [POOL_BELOW, 'critical', 'prefill']);
  assert.match(first?.title ?? '', BOTH_NUMBERS);
  assert.deepEqual(
    made.nodes.map(({ name, role, advertised, pool, acceptLimit }) => [name, role, advertised, pool, acceptLimit]),
    [
      ['prefill', 'prefill', 1048576, 681280, 681273],
      ['decode', 'decode', 1048576, 1835008, 1048569],
    ],
  );
});

test('the incident’s live nodes give the same', async () => {
  const shape = { version: '0.5.18', context: 1048576 } as const;
  const prefill = await fakeNode(sglangAnswers({ ...shape, role: 'prefill', pool: 681280 }));
  const decode = await fakeNode(sglangAnswers({ ...shape, role: 'decode', pool: 1835008 }));
  const made = await report([prefill.url, decode.url]);
  await prefill.close();
  await decode.close();
  assert.equal(made.code, 1);
  assert.deepEqual([made.findings[0]?.id, made.findings[0]?.severity], [POOL_BELOW, 'critical']);
  assert.match(made.findings[0]?.title ?? '', BOTH_NUMBERS);
  assert.equal(made.nodes[0]?.version, '0.5.18');
});

const COMMAND = 'python -m sglang.launch_server --model-path m --context-length 1048576 --disaggregation-mode prefill';

for (const [what, args] of [
  ['a command line alone', ['--command', COMMAND]],
  ['a manifest alone', [fixture('manifests/incident.yaml')]],
] as const) {
  test(`${what} says first that nothing bounds the context by the pool, and which command would settle it`, async () => {
    const { code, out } = await run(['audit', ...args, '--require', 'capacity', '--fail-on', 'none']);
    assert.equal(code, 3);
    const flat = out.replaceAll(/\s+/g, ' ');
    const line = /not checked: (capacity[^;]*;[^;]*;[^;]*)/.exec(flat)?.[1] ?? '';
    assert.match(
      line,
      /^capacity\.pool-below-context .*nothing here bounds the context \(1048576 tokens\) by the pool/,
    );
    assert.match(line, /the pool is not checked: .* `cofferdam audit http/);
    assert.doesNotMatch(out, /681280/);
  });
}

test('a manifest with `--pool prefill=681280`, or with a log beside it, gives the critical finding', async () => {
  for (const args of [['--pool', 'prefill=681280'], INCIDENT_LOGS]) {
    const made = await report([fixture('manifests/incident.yaml'), ...args]);
    assert.equal(made.code, 1);
    assert.equal(made.nodes.length, 2, 'the log was not matched with its workload');
    assert.deepEqual([made.findings[0]?.id, made.findings[0]?.where.node], [POOL_BELOW, 'glm-prefill']);
    assert.match(made.findings[0]?.title ?? '', BOTH_NUMBERS);
    assert.equal(made.nodes[0]?.version, '0.5.18', 'the image’s version was lost');
  }
});

test('the remedied deployment has nothing above info, and exit code 0', async () => {
  const variables = {
    SGLANG_DISAGGREGATION_DEFERRED_DECODE_KV_RELEASE: 'True',
    SGLANG_MOONCAKE_MAX_TRANSFER_BATCH_INDICES: '128',
  };
  const flags = {
    disaggregation_enable_kv_checksum: true,
    kv_canary: 'log',
    kv_canary_real_data: 'partial',
    enable_metrics: true,
  };
  const shape = { version: '0.5.23', context: 1048576, pool: 2040000, flags, variables } as const;
  const key = 'planted-key-0123456789';
  const prefill = await fakeNode(sglangAnswers({ ...shape, role: 'prefill' }), key);
  const decode = await fakeNode(sglangAnswers({ ...shape, role: 'decode' }), key);
  // Until rules of these groups exist, only what exists is required.
  const groups = [...new Set(RULES.map(({ meta }) => meta.group))].filter((group) =>
    ['capacity', 'version', 'rejection'].includes(group),
  );
  const made = await report([prefill.url, decode.url, '--api-key-env', 'ENGINE_KEY', '--require', groups.join(',')], {
    ENGINE_KEY: key,
  });
  await prefill.close();
  await decode.close();
  assert.deepEqual(
    made.findings.filter(({ severity }) => severity !== 'info').map(({ id, title }) => `${id}: ${title}`),
    [],
  );
  assert.equal(made.code, 0, JSON.stringify(made.checks.filter(({ status }) => status === 'not-checked')));
});

test('the pair of a real SGLang 0.5.18 is told apart by its files, and its numbers are the captured ones', async () => {
  const made = await report([fixture('captures/sglang-0.5.18-pd-cpu')]);
  assert.deepEqual(
    made.nodes.map(({ name, engine, version, role, pool, acceptLimit }) => [
      name,
      engine,
      version,
      role,
      pool,
      acceptLimit,
    ]),
    [
      ['decode', 'sglang', '0.5.18', 'decode', 8192, 8185],
      ['prefill', 'sglang', '0.5.18', 'prefill', 2048, 2041],
    ],
  );
  assert.equal(made.findings[0]?.id, POOL_BELOW);
  assert.ok(
    made.findings.every(({ id }) => id !== 'sources.disagree'),
    'one start disagrees with itself',
  );
});

test('real vLLM and llama-server are read with their own numbers, and a refused start is not taken for a pool', async () => {
  const vllm = await report([fixture('captures/vllm-0.32.0-cpu'), '--require', 'none']);
  const rows = vllm.nodes.map(({ name, version, advertised, pool }) => [name, version, advertised, pool]);
  // The null block is never given out: 32768 blocks of 128, less one.
  assert.deepEqual(rows, [
    ['override', '0.32.0', 4096, null],
    ['pool-large', '0.32.0', 4096, 4194176],
  ]);
  const llama = await report([fixture('captures/llama-server-b11434'), '--require', 'none']);
  assert.deepEqual(
    llama.nodes.map(({ engine, advertised, acceptLimit }) => [engine, advertised, acceptLimit]),
    [['llamacpp', 4096, 4095]],
  );
});

test(
  'a file of no known kind is skipped and changes nothing',
  withFolder(async (folder) => {
    writeFileSync(join(folder, 'notes.txt'), 'buy milk\n');
    writeFileSync(join(folder, 'prefill.log'), readFileSync(INCIDENT_LOGS[0]!));
    symlinkSync('/etc/hostname', join(folder, 'out.log'));
    const made = await report([folder]);
    const alone = await report([INCIDENT_LOGS[0]!]);
    assert.deepEqual(made.nodes, alone.nodes);
    assert.deepEqual(made.findings, alone.findings);
    assert.deepEqual(
      made.skipped.map(({ source, why }) => [source, why]),
      [
        ['out.log', 'a link out of the folder'],
        ['notes.txt', 'of no kind that is read here'],
      ],
    );
  }),
);

test(
  'two sources of one node that disagree are themselves a finding',
  withFolder(async (folder) => {
    writeFileSync(join(folder, 'prefill.log'), readFileSync(INCIDENT_LOGS[0]!));
    const metrics =
      'sglang:max_total_num_tokens{engine_type="prefill"} 700000.0\nsglang:context_len{engine_type="prefill"} 1048576.0\n';
    writeFileSync(join(folder, 'prefill.metrics.txt'), metrics);
    const made = await report([folder]);
    assert.equal(made.nodes.length, 1);
    const finding = made.findings.find(({ id }) => id === 'sources.disagree');
    assert.match(finding?.title ?? '', /the KV pool: 700000 and 681280/);
  }),
);

test(
  'a baseline says what changed: pool, version, flags',
  withFolder(async (folder) => {
    const shape = { role: 'prefill', version: '0.5.18', context: 1048576, pool: 681280 } as const;
    const file = join(folder, 'prefill.server_info.json');
    const saved = join(folder, 'before.json');
    writeFileSync(file, sglangAnswers(shape)['/server_info']?.body ?? '');
    await run(['audit', file, '--output', `json=${saved}`]);
    const after = { ...shape, version: '0.5.23', pool: 2040000, flags: { kv_canary: 'log' } };
    writeFileSync(file, sglangAnswers(after)['/server_info']?.body ?? '');
    const made = await report([file, '--baseline', saved]);
    const changes = new Map(made.changes.map(({ field, before, after: now }) => [field, `${before} -> ${now}`]));
    assert.equal(changes.get('pool'), '681280 -> 2040000');
    assert.equal(changes.get('version'), '0.5.18 -> 0.5.23');
    assert.equal(changes.get('--kv-canary'), 'not there -> log');
    assert.ok(!changes.has('advertised'));
  }),
);

test(
  'several formats come out of one run, and a saved report renders again',
  withFolder(async (folder) => {
    const [json, sarif, html] = ['a.json', 'a.sarif', 'a.html'].map((name) => join(folder, name));
    const outputs = ['table', `json=${json}`, `sarif=${sarif}`, `html=${html}`].flatMap((one) => ['--output', one]);
    const { code, out } = await run(['audit', ...INCIDENT_LOGS, ...outputs]);
    assert.equal(code, 1);
    assert.match(out, /681280/);
    assert.match(readFileSync(sarif!, 'utf8'), /"version": ?"2\.1\.0"/);
    assert.match(readFileSync(html!, 'utf8'), /<!doctype html>/i);
    const again = await run(['audit', '--convert', json!, '--output', 'table']);
    assert.deepEqual([again.code, again.out], [1, out]);
  }),
);

test('`explain` says of every rule what, why, how and what to change', async () => {
  const list = await run(['explain']);
  assert.equal(list.code, 0);
  for (const { meta } of RULES) {
    assert.ok(list.out.includes(meta.id));
    const { code, out } = await run(['explain', meta.id]);
    assert.equal(code, 0);
    const flat = out.replaceAll(/\s+/g, ' ');
    for (const part of [meta.title, meta.why, meta.how, meta.change, ...meta.references]) {
      assert.ok(flat.includes(part.replaceAll(/\s+/g, ' ')), `${meta.id}: ${part}`);
    }
  }
});

test('what stands in front of engines is judged too: Dynamo’s frontend and its stores, llm-d’s picker and sidecar', async () => {
  const made = await report([fixture('manifests/routers.yaml'), '--require', 'none']);
  const found = (id: string): readonly (readonly [string, string])[] =>
    made.findings.filter((one) => one.id === id).map(({ where, severity }) => [where.node, severity] as const);
  assert.deepEqual(found('exposure.control-plane'), [['nats', 'high']]);
  assert.deepEqual(found('exposure.picker-fails-open'), [['picker', 'medium']]);
  assert.deepEqual(found('rejection.prefill-fallback'), [['engine/sidecar', 'high']]);
  assert.deepEqual(found('release.cancel-not-passed'), [['frontend', 'medium']]);
  assert.equal(
    made.nodes.find(({ name }) => name === 'worker')?.version,
    null,
    'Dynamo’s version was taken for vLLM’s',
  );
  assert.ok(
    made.findings.every(({ id, where }) => where.node !== 'worker' || !id.startsWith('exposure.')),
    'a Dynamo worker was accused of a port that it does not open',
  );
});

test('a router alone is no engine that was checked', async () => {
  const made = await report(['--command', 'sglang-router --api-key k --host 127.0.0.1 --worker-urls http://a:1']);
  assert.equal(made.code, 3, JSON.stringify(made.findings));
});
