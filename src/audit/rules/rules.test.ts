/**
 * Goal: every rule accuses where it should, and nowhere else. Method: fixtures of each rule against what must come of them (codes,
 * never prose); nodes of which nothing is known, which must never pass; the shape of what rules give.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RULE_CASES } from '../../../test/cases/audit/all.js';
import type { Case } from '../../../test/cases/audit/case.js';
import { compareSeverity, SEVERITIES } from '../../findings/finding.js';
import { ENGINES } from '../../upstream/reading.js';
import { RULES } from '../registry.js';
import { RULE_GROUPS, type Rule, type RuleOutcome } from '../rule.js';
import { fleet, type NodeSpec } from './fixtures.js';

function outcomeOf(rule: Rule, ...specs: readonly NodeSpec[]): RuleOutcome {
  const gathered = fleet(...specs);
  const [node] = gathered.nodes;
  assert.ok(node !== undefined);
  const { engines } = rule.meta;
  assert.ok(
    engines === 'all' || engines.includes(node.engine ?? 'sglang'),
    `a fixture of ${rule.meta.id} is of no engine of it`,
  );
  return rule.check(gathered, node);
}

/** The worst severity with `?` when no finding of it is certain, or the status. */
function codeOf(rule: Rule, outcome: RuleOutcome): string {
  if (outcome.status !== 'failed') return outcome.status;
  const severities = outcome.findings.map(({ severity }) => severity ?? rule.meta.severity);
  const [worst] = severities.sort(compareSeverity);
  const sure = outcome.findings.some(
    ({ severity, certain }) => (severity ?? rule.meta.severity) === worst && certain !== false,
  );
  return `${worst}${sure ? '' : '?'}`;
}

const isFinding = ([expected]: Case): boolean => SEVERITIES.some((severity) => expected.startsWith(severity));

test('every rule has a failing, a passing and a benign fixture, and every fixture has a rule', () => {
  assert.deepEqual(Object.keys(RULE_CASES).sort(), RULES.map(({ meta }) => meta.id).sort());
  for (const [id, { bad }] of Object.entries(RULE_CASES))
    assert.ok(isFinding(bad), `the bad fixture of ${id} finds nothing`);
});

for (const rule of RULES) {
  const { id, severity } = rule.meta;
  const cases = RULE_CASES[id];
  if (cases === undefined) continue;
  test(`${id}: what its fixtures must give`, () => {
    const all: readonly (readonly [string, Case])[] = [
      ['bad', cases.bad],
      ['good', cases.good],
      ['benign', cases.benign],
      ...(cases.more ?? []).map((one, index) => [`more[${index}]`, one] as const),
    ];
    for (const [name, [expected, ...specs]] of all) {
      const outcome = outcomeOf(rule, ...specs);
      assert.equal(codeOf(rule, outcome), expected, `${id} ${name}: ${JSON.stringify(outcome)}`);
      if (outcome.status !== 'failed') assert.ok(outcome.why.length > 0);
      else {
        for (const one of outcome.findings) {
          assert.ok(one.observed.length > 0 && one.wanted.length > 0, `${id}: an empty text`);
          assert.ok(compareSeverity(severity, one.severity ?? severity) <= 0, `${id}: graver than its meta says`);
        }
      }
    }
    // A look-alike may be shown, but never as grave as what it looks like.
    const order = (one: Case): number =>
      isFinding(one) ? SEVERITIES.findIndex((name) => one[0].startsWith(name)) : SEVERITIES.length;
    assert.ok(order(cases.benign) > order(cases.bad) && order(cases.good) > order(cases.bad));
  });
}

test('a node of which nothing is known passes nothing, whatever it is', () => {
  for (const rule of RULES) {
    for (const engine of rule.meta.engines === 'all' ? ENGINES : rule.meta.engines) {
      for (const role of ['prefill', 'decode', 'single', 'router', 'unknown'] as const) {
        const { status } = outcomeOf(rule, { engine, role });
        const wanted =
          engine === 'sglang-mini-lb' ? ['failed', 'not-checked', 'not-applicable'] : ['not-checked', 'not-applicable'];
        assert.ok(wanted.includes(status), `${rule.meta.id} is ${status} on an unknown ${engine} ${role}`);
      }
    }
  }
});

test('a version that nobody has seen is never found safe by its defaults alone', () => {
  for (const version of ['0.9.0', '1.0.0rc1']) {
    for (const role of ['prefill', 'decode'] as const) {
      const rule = RULES.find(({ meta }) => meta.id === 'release.deferred-off');
      assert.ok(rule !== undefined);
      assert.equal(outcomeOf(rule, { role, version, vars: {} }).status, 'not-checked');
    }
  }
});

test('ids name their group and are used once; texts are there; references are addresses or identifiers', () => {
  const ids = RULES.map(({ meta }) => meta.id);
  assert.equal(new Set(ids).size, ids.length);
  assert.ok(ids.length >= 45);
  for (const { meta } of RULES) {
    assert.match(meta.id, /^[a-z]+(?:\.[a-z0-9-]+)$/);
    assert.ok(RULE_GROUPS.includes(meta.group) && meta.id.startsWith(`${meta.group}.`), meta.id);
    for (const text of [meta.title, meta.why, meta.how, meta.change]) assert.ok(text.length > 10, meta.id);
    assert.ok(!meta.title.endsWith('.'), `${meta.id}: a title is no sentence`);
    assert.ok(meta.needs.length > 0 && meta.references.length > 0, meta.id);
    for (const reference of meta.references) assert.match(reference, /^https:\/\/\S+$/, meta.id);
    for (const id of meta.cwe ?? []) assert.match(id, /^CWE-\d+$/);
    for (const id of meta.aisvs ?? []) assert.match(id, /^C\d+\.\d+\.\d+$/);
  }
});

test('what has a flag for it names the flag in what to change', () => {
  for (const { meta } of RULES) {
    if (!meta.needs.includes('flags') || meta.severity === 'info') continue;
    assert.match(meta.change, /`[^`]+`|Upgrade|gateway|NetworkPolicy/, meta.id);
  }
});
