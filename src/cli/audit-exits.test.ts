/** Goal: the exit code says what was found, whatever stands between. Method: the verb, and the real program on a broken pipe. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { fixture, report, run, withFolder } from '../../test/support/audit-verb.js';
import { fakeNode, sglangAnswers } from '../../test/support/fake-node.js';
import { ADVISORIES } from '../audit/advisories.data.js';
import { RULES } from '../audit/registry.js';

const INCIDENT_LOGS = [fixture('incident/prefill.log'), fixture('incident/decode.log')];
const MAIN = fileURLToPath(new URL('./main.js', import.meta.url));

test('exit codes: 2 for wrong usage, 1 before 3, 3 for a node that did not answer, 0 with nothing to fail on', async () => {
  const gone = await fakeNode({});
  await gone.close();
  for (const args of [
    ['audit'],
    ['audit', '/no/such/file'],
    ['audit', '--command', 'echo hello'],
    ['audit', ...INCIDENT_LOGS, '--pool', 'router=1'],
    ['audit', ...INCIDENT_LOGS, '--fail-on', 'never'],
    ['audit', ...INCIDENT_LOGS, '--wait', 'long'],
    ['audit', gone.url, '--api-key-env', 'NOT_SET'],
    ['audit', ...INCIDENT_LOGS, '--api-key-env', 'HOME'],
    ['explain', 'no.such-rule'],
  ]) {
    const { code, err } = await run(args);
    assert.equal(code, 2, args.join(' '));
    assert.equal(err.trimEnd().split('\n').length, 1, err);
  }
  assert.equal((await run(['audit', gone.url, '--require', 'none'])).code, 3);
  assert.equal((await run(['audit', gone.url, ...INCIDENT_LOGS])).code, 1);
  assert.equal((await run(['audit', ...INCIDENT_LOGS, '--fail-on', 'none', '--require', 'none'])).code, 0);
});

test('no error says a key that stood on the command line', async () => {
  for (const args of [
    ['--command', 'API_KEY=PlantedKey7f3a9c echo --api-key PlantedKey7f3a9c'],
    ['http://127.0.0.1:1', '--api-key-env', 'PlantedKey7f3a9c'],
    ['http://127.0.0.1:1', '--header', 'X-Key PlantedKey7f3a9c'],
    ['http://127.0.0.1:1', '--header', 'http://127.0.0.1:2=X-Key: PlantedKey7f3a9c'],
    ['http://user:PlantedKey7f3a9c@127.0.0.1:1'],
    ['http://127.0.0.1:99999/?key=PlantedKey7f3a9c'],
  ]) {
    const { code, err } = await run(['audit', ...args]);
    assert.equal(code, 2, args.join(' '));
    assert.ok(!err.includes('PlantedKey7f3a9c'), err);
  }
});

test(
  'a waiver takes a finding out until its day, and an expired one fails',
  withFolder(async (folder) => {
    const file = join(folder, 'waivers.yaml');
    const waive = (expires: string): void => {
      const ids = [
        ...RULES.map(({ meta }) => meta.id).filter((id) => id !== 'version.advisory'),
        ...ADVISORIES.map((row) => `version.advisory, advisory: ${row.ids.at(-1)}`),
      ];
      const rows = ids.map((id) => `- {id: ${id}, reason: the pool is doubled in May, expires: ${expires}}`);
      writeFileSync(file, `waivers:\n${rows.join('\n')}\n`);
    };
    const args = [...INCIDENT_LOGS, '--waivers', file, '--require', 'none'];
    waive('9999-12-31');
    const held = await report(args);
    assert.equal(held.code, 0);
    assert.equal(held.findings[0]?.waiver?.reason, 'the pool is doubled in May');
    waive('2020-01-01');
    const over = await report(args);
    assert.equal(over.code, 1);
    assert.equal(over.findings[0]?.waiver?.expired, true);
    // Who took a small thing on until a day has to look again, although it would not fail by itself.
    writeFileSync(file, 'waivers:\n- {id: capacity.replicas-differ, expires: 2020-01-01, reason: x}\n');
    const replicas = [50, 40].map((pool, index) => {
      const name = join(folder, `decode-${index}.server_info.json`);
      const shape = { role: 'null', version: '0.5.23', context: 100, pool } as const;
      writeFileSync(name, sglangAnswers(shape)['/server_info']?.body ?? '');
      return name;
    });
    const small = await report([...replicas, '--waivers', file, '--require', 'none', '--fail-on', 'critical']);
    assert.equal(small.code, 1);
    assert.equal((await run(['audit', ...replicas, '--require', 'none', '--fail-on', 'critical'])).code, 0);
    for (const row of ['id: a, expires: soon, reason: x', 'id: version.advisory, expires: 2099-01-01, reason: x']) {
      writeFileSync(file, `waivers:\n- {${row}}\n`);
      assert.equal((await run(['audit', ...args])).code, 2, row);
    }
  }),
);

test(
  'a waiver of one advisory, by any of its ids, silences that one',
  withFolder(async (folder) => {
    const file = join(folder, 'waivers.yaml');
    writeFileSync(
      file,
      'waivers:\n- {id: version.advisory, advisory: PYSEC-2026-4000, reason: no tenant sends bad words, expires: 2099-01-01}\n',
    );
    const command = ['--command', 'docker run vllm/vllm-openai:v0.28.0 vllm serve m'];
    const saved = join(folder, 'version.json');
    writeFileSync(saved, '{"version":"0.28.0"}');
    const made = await report([saved, ...command, '--waivers', file, '--require', 'none']);
    const advisories = made.findings.filter(({ id }) => id === 'version.advisory');
    assert.ok(advisories.length > 2, JSON.stringify(made.findings));
    assert.deepEqual(
      advisories.filter(({ waiver }) => waiver !== undefined).map(({ subject }) => subject),
      ['CVE-2026-93989'],
    );
    assert.equal(made.code, 1, 'the other advisories went with it');
  }),
);

for (const [count, told, code] of [
  [1, [], 0],
  [4, ['--command', 'llama-server -m m.gguf -np 4 -c 16384'], 0],
  [4, [], 3],
  [4, ['--command', 'llama-server -m m.gguf -c 4096'], 1],
] as const) {
  test(`a live llama-server of ${count} slots, ${told.length === 0 ? 'alone' : told[1]}, ends with ${code}`, async () => {
    const props = {
      default_generation_settings: { n_ctx: 4096 },
      total_slots: count,
      build_info: 'b12700-0123abcd',
      model_alias: 'm',
    };
    const models = {
      object: 'list',
      data: [{ id: 'm', object: 'model', owned_by: 'llamacpp', meta: { n_ctx: 4096, n_ctx_train: 4096 } }],
    };
    const node = await fakeNode({
      '/props': { body: JSON.stringify(props) },
      '/v1/models': { body: JSON.stringify(models) },
    });
    const made = await report([node.url, ...told, '--fail-on', code === 1 ? 'high' : 'critical']);
    await node.close();
    const why = JSON.stringify(made.checks.filter(({ id }) => id.startsWith('capacity.')));
    assert.equal(made.code, code, why);
    const slots = made.checks.find(({ id }) => id === 'capacity.slots-overcommitted');
    if (code === 3) assert.match(slots?.why ?? '', /4 slots of 4096 tokens each, and not whether they share one pool/);
  });
}

test('a live vLLM that tells context, pool and version ends with 0, and without its metrics with 3', async () => {
  const models = { object: 'list', data: [{ id: 'm', object: 'model', owned_by: 'vllm', max_model_len: 4096 }] };
  const metrics = readFileSync(fixture('captures/vllm-0.32.0-cpu/02-metrics-idle-pool-large.txt'), 'utf8');
  for (const [body, code] of [
    [metrics, 0],
    [null, 3],
  ] as const) {
    const node = await fakeNode({
      '/v1/models': { body: JSON.stringify(models) },
      '/version': { body: '{"version":"0.33.0"}' },
      ...(body === null ? {} : { '/metrics': { body } }),
    });
    const made = await report([node.url]);
    await node.close();
    assert.equal(made.code, code, JSON.stringify(made.checks.filter(({ status }) => status === 'not-checked')));
  }
});

test('a reader that goes away early changes nothing about the exit code', async () => {
  for (const [args, code] of [
    [[...INCIDENT_LOGS], 1],
    [[fixture('manifests/incident.yaml'), '--fail-on', 'none'], 3],
  ] as const) {
    const child = spawn(process.execPath, [MAIN, 'audit', ...args, '--output', 'json'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    child.stdout.destroy();
    const [ended] = (await once(child, 'exit')) as [number | null];
    assert.equal(ended, code, args.join(' '));
  }
});
