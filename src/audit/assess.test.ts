/** Goal: one broken rule spoils nothing else, and what was not read is never passed. Method: rules made for it, and the real ones. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readCommandText } from '../upstream/command/read.js';
import { assess } from './assess.js';
import type { Fleet } from './facts.js';
import { fleetOf } from './gather/gather.js';
import { RULES } from './registry.js';
import { failed, passed, RULE_GROUPS, type Rule } from './rule.js';

const meta = RULES[0]!.meta;
const rule = (id: string, over: Partial<Rule> & Partial<{ engines: Rule['meta']['engines'] }> = {}): Rule => ({
  meta: { ...meta, id, engines: over.engines ?? 'all' },
  check: over.check ?? ((): ReturnType<Rule['check']> => passed('seen')),
});

function fleet(command: string): Fleet {
  const pieces = readCommandText(command).map((reading) => ({
    reading,
    source: { kind: 'command', name: 'c' } as const,
    place: '',
    name: 'n',
  }));
  return fleetOf(pieces, [], { advertised: null, pools: [] });
}

test('a rule that throws is not checked, and the others still run', () => {
  const broken = rule('capacity.broken', {
    check: () => {
      throw new TypeError('secret text of a target');
    },
  });
  const { checks, findings } = assess(fleet('vllm serve m'), [broken, rule('capacity.fine')]);
  const status = (id: string): string | undefined => checks.find((check) => check.id === id)?.status;
  assert.deepEqual([status('capacity.broken'), status('capacity.fine'), findings.length], ['not-checked', 'passed', 0]);
  const why = checks.find(({ id }) => id === 'capacity.broken')?.why ?? '';
  assert.ok(why.includes('TypeError') && !why.includes('secret'), why);
});

test('a rule for other engines does not apply, and is not checked where no engine is known', () => {
  const only = rule('capacity.only', { engines: ['sglang'] });
  const nobody = fleetOf(
    [{ reading: { engine: null, facts: [] }, source: { kind: 'environment', name: 'e' }, place: '', name: 'n' }],
    [],
    { advertised: null, pools: [] },
  );
  assert.equal(assess(fleet('vllm serve m'), [only]).checks[1]?.status, 'not-applicable');
  assert.equal(assess(nobody, [only]).checks[1]?.status, 'not-checked');
});

test('a finding takes from its rule what it does not say itself, with the standards among the references', () => {
  const one = rule('capacity.one', {
    check: () => failed({ at: null, observed: 'o', wanted: 'w' }),
  });
  const [finding] = assess(fleet('vllm serve m'), [one]).findings;
  assert.deepEqual([finding?.title, finding?.severity, finding?.certain], [meta.title, meta.severity, true]);
  assert.ok(finding?.references.includes('OWASP AISVS C5.5.5') && finding.references.includes('CWE-226'));
});

test('a command line that bounds nothing passes no capacity rule', () => {
  const commands = [
    'python -m sglang.launch_server --model-path m --context-length 8192',
    'vllm serve m --max-model-len 8192',
  ];
  for (const command of commands) {
    const { checks } = assess(fleet(command), RULES);
    const wrong = checks.filter(({ id, status }) => /pool-(?:below|margin)/.test(id) && status === 'passed');
    assert.deepEqual(wrong, [], command);
  }
});

test('a flag that caps the pool below the context is enough for a finding', () => {
  const command = 'python -m sglang.launch_server --model-path m --context-length 8192 --max-total-tokens 4096';
  const [finding] = assess(fleet(command), RULES).findings;
  assert.deepEqual([finding?.id, finding?.severity], ['capacity.pool-below-context', 'high']);
});

test('every rule has an id of its own that begins with its group, and says all that `explain` shows', () => {
  const ids = RULES.map((one) => one.meta.id);
  assert.equal(new Set(ids).size, ids.length);
  for (const one of RULES) {
    assert.match(one.meta.id, /^[a-z]+\.[a-z0-9-]+$/);
    assert.ok(RULE_GROUPS.includes(one.meta.group) && one.meta.id.startsWith(`${one.meta.group}.`), one.meta.id);
    for (const text of [one.meta.title, one.meta.why, one.meta.how, one.meta.change])
      assert.ok(text.length > 10, one.meta.id);
    assert.ok(one.meta.references.length > 0, one.meta.id);
  }
});
