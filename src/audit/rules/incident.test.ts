/** Goal: the public incident's deployment is found for what it is, and its remedy is left alone. Method: facts of both, through all rules. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isAtLeast, sortFindings } from '../../findings/finding.js';
import { assess } from '../assess.js';
import { RULES } from '../registry.js';
import { fleet, type NodeSpec, POLICY } from './fixtures.js';

const CONTEXT = 1048576;
const POOL = 681280;
const MODEL = 'zai-org/GLM-5.3';
const FLAGS = { 'model-path': MODEL, 'context-length': String(CONTEXT), 'tp-size': '8' } as const;

const incident = (role: 'prefill' | 'decode', pool?: number): NodeSpec => ({
  name: role,
  role,
  version: '0.5.18',
  model: MODEL,
  context: CONTEXT,
  ...(pool === undefined ? {} : { pool, limit: Math.min(CONTEXT, pool) - 7 }),
  flags: { ...FLAGS, 'disaggregation-mode': role },
  vars: {},
});

const REMEDY: NodeSpec = {
  version: '0.5.23',
  model: MODEL,
  context: CONTEXT,
  pool: 2040000,
  limit: CONTEXT - 7,
  page: 64,
  vars: {
    SGLANG_DISAGGREGATION_DEFERRED_DECODE_KV_RELEASE: '1',
    SGLANG_MOONCAKE_MAX_TRANSFER_BATCH_INDICES: '512',
  },
};

const remedied = (role: 'prefill' | 'decode', over: NodeSpec = {}): NodeSpec => ({
  ...REMEDY,
  name: role,
  role,
  flags: {
    ...FLAGS,
    'disaggregation-mode': role,
    'api-key': '(set)',
    'enable-metrics': 'true',
    'disaggregation-enable-kv-checksum': 'true',
    'kv-canary': 'log',
  },
  listens: '127.0.0.1:30000',
  ...over,
});

const audit = (...specs: readonly NodeSpec[]): ReturnType<typeof assess> => assess(fleet(...specs), RULES);

test('the incident’s deployment: the critical capacity finding comes first, with both numbers as plain digits', () => {
  const findings = sortFindings(audit(incident('prefill', POOL), incident('decode', 1835008)).findings);
  const [first] = findings;
  assert.deepEqual(
    [first?.id, first?.severity, first?.where.node, first?.certain],
    ['capacity.pool-below-context', 'critical', 'prefill', true],
  );
  assert.ok(first?.title.includes(`${POOL}`) && first.title.includes(`${CONTEXT}`), first?.title);
  const ids = findings.map(({ id, where }) => `${where.node} ${id}`);
  for (const id of [
    'prefill rejection.handed-off',
    'decode rejection.handed-off',
    'prefill rejection.decode-not-told',
    'decode release.deferred-off',
    'prefill release.batch-uncapped',
  ]) {
    assert.ok(ids.includes(id), `${id} is missing`);
  }
});

test('a command line alone: nothing bounds the context by the pool, the pool is not checked, and one command settles it', () => {
  const { checks } = audit(incident('prefill'));
  const capacity = checks.filter(({ id }) => id.startsWith('capacity.'));
  assert.equal(capacity[0]?.id, 'capacity.pool-below-context');
  assert.equal(capacity[0]?.status, 'not-checked');
  const why = capacity[0]?.why ?? '';
  assert.match(why, /nothing here bounds the context \(1048576 tokens\) by the pool/);
  assert.match(why, /the pool is not checked: .*`cofferdam audit http:\/\/\S+` would settle it$/);
});

for (const [what, over] of [
  ['on loopback', {}],
  ['behind a policy', { listens: '0.0.0.0:30000', exposure: POLICY }],
] as const) {
  test(`the remedied deployment ${what}: nothing above info, and everything that is required by default was checked`, () => {
    const { findings, checks } = audit(remedied('prefill', over), remedied('decode', over));
    const grave = findings.filter(({ severity }) => isAtLeast(severity, 'low'));
    assert.deepEqual(
      grave.map(({ id, title }) => `${id}: ${title}`),
      [],
    );
    const open = checks.filter(
      ({ id, status }) => status === 'not-checked' && /^(?:capacity|version|rejection)\./.test(id),
    );
    assert.deepEqual(open, []);
    const infos = new Map(findings.map((one) => [`${one.where.node} ${one.id}`, one.title]));
    for (const role of ['prefill', 'decode']) {
      assert.match(infos.get(`${role} detection.coverage`) ?? '', /checksum and canary may not cover/);
      assert.match(infos.get(`${role} detection.unproven`) ?? '', /^Nothing printed shows that/);
    }
  });
}

test('one thing of the remedy undone is found again', () => {
  const undone: readonly (readonly [string, NodeSpec])[] = [
    ['capacity.pool-below-context', { pool: POOL }],
    ['rejection.handed-off', { version: '0.5.19' }],
    ['release.deferred-off', { vars: { SGLANG_DISAGGREGATION_DEFERRED_DECODE_KV_RELEASE: '0' } }],
    ['release.batch-uncapped', { vars: {} }],
    ['detection.checksum-off', { flags: { ...FLAGS, 'disaggregation-mode': 'prefill' } }],
    ['exposure.no-key', { flags: { ...FLAGS, host: '0.0.0.0' }, listens: '0.0.0.0:30000' }],
  ];
  for (const [id, over] of undone) {
    const { findings } = audit(remedied('prefill', over), remedied('decode'));
    assert.ok(
      findings.some((one) => one.id === id && isAtLeast(one.severity, 'medium')),
      `${id} was not found`,
    );
  }
});
