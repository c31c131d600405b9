/** Goal: SARIF that scanners take, whose alerts stay the same from run to run. Method: the shape of the standard, examples. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  cleanReport,
  incidentReport,
  SAMPLE_RULES,
  sampleFinding,
  uncheckedReport,
} from '../../test/support/sample-report.js';
import { assertSarif } from '../../test/support/sarif-shape.js';
import type { Finding, FindingPlace } from './finding.js';
import { fingerprints, renderSarif } from './render-sarif.js';
import type { Report } from './report.js';
import { isFilePlace, locationOf } from './sarif-location.js';
import { messageText } from './sarif-text.js';

interface Result {
  readonly ruleId: string;
  readonly level: string;
  readonly message: { readonly text: string };
  readonly partialFingerprints: Readonly<Record<string, string>>;
  readonly suppressions?: readonly object[];
}

interface Rule {
  readonly id: string;
  readonly help: { readonly text: string };
  readonly properties: Readonly<Record<string, unknown>>;
}

interface Run {
  readonly tool: { readonly driver: { readonly rules: readonly Rule[] } };
  readonly results: readonly Result[];
  readonly invocations: readonly {
    readonly executionSuccessful: boolean;
    readonly toolExecutionNotifications: readonly {
      readonly level: string;
      readonly message: { readonly text: string };
    }[];
  }[];
}

function runOf(report: Report): Run {
  return (JSON.parse(renderSarif(report, SAMPLE_RULES)) as { runs: Run[] }).runs[0]!;
}

function prints(findings: readonly Finding[]): string[] {
  const { results } = runOf(incidentReport({ findings }));
  return results
    .map(({ ruleId, partialFingerprints }) => `${ruleId} ${partialFingerprints['cofferdamFinding/v1']}`)
    .sort();
}

test('every log has the shape of SARIF 2.1.0', () => {
  for (const report of [incidentReport(), uncheckedReport(), cleanReport()])
    assertSarif(renderSarif(report, SAMPLE_RULES));
});

test('a result has its level itself, and its rule the severity as a number', () => {
  const run = runOf(incidentReport());
  assert.deepEqual(
    run.results.map(({ level }) => level),
    ['error', 'error', 'error', 'error', 'warning', 'note'],
  );
  const scores = new Map(run.tool.driver.rules.map(({ id, properties }) => [id, properties['security-severity']]));
  assert.equal(scores.get('capacity.pool-below-context'), '9.5');
  assert.equal(scores.get('sharing.prefix-unsalted'), '5.5');
  assert.equal(scores.get('detection.verification-unseen'), '0.0');
  assert.match(run.tool.driver.rules[0]!.help.text, /may not fit the pool.*\n\nWhat to change: .*\n\nSee https/);
});

test('a fingerprint depends on neither order, line, time nor any number seen (seed 72)', () => {
  const findings = incidentReport().findings;
  const plain = prints(findings);
  fc.assert(
    fc.property(fc.shuffledSubarray([...findings], { minLength: findings.length }), fc.nat(500), (shuffled, number) => {
      const moved = shuffled.map((finding) => ({
        ...finding,
        title: `${finding.title} ${number}`,
        observed: `pool ${number}`,
        where:
          finding.where.line === undefined ? finding.where : { ...finding.where, line: finding.where.line + number },
      }));
      assert.deepEqual(prints(moved), plain);
    }),
    { seed: 72, numRuns: 30 },
  );
});

test('a fingerprint tells rules, nodes, sources and several in one file apart', () => {
  const at = (where: Partial<FindingPlace>, id = 'a.b'): Finding =>
    sampleFinding({ id, where: { node: 'n', source: 's.yaml', ...where } });
  const all = [at({}), at({}, 'a.c'), at({ node: 'm' }), at({ source: 't.yaml' }), at({ line: 4 }), at({ line: 9 })];
  assert.equal(new Set(prints(all)).size, all.length);
});

test('several findings in one file keep their fingerprints by the order of their lines, whatever they say', () => {
  const at = (line: number, title: string): Finding =>
    sampleFinding({ title, where: { node: 'n', source: 's.yaml', line } });
  const byLine = (findings: readonly Finding[]): [number, string][] =>
    [...fingerprints(findings)]
      .map(([{ where }, print]): [number, string] => [where.line!, print])
      .sort((a, b) => a[0] - b[0]);
  assert.deepEqual(byLine([at(4, 'a'), at(9, 'b')]), byLine([at(4, 'z'), at(9, 'b')]));
});

test('a waived finding is suppressed with its reason, one whose waiver is over is not', () => {
  const { results } = runOf(incidentReport());
  const keys = results.filter(({ ruleId }) => ruleId === 'exposure.no-api-key');
  assert.deepEqual(
    keys.map(({ suppressions }) => suppressions?.length),
    [1, 0],
  );
  assert.match(JSON.stringify(keys[0]!.suppressions), /"accepted".*waived until 2027-01-31: the mesh/);
  assert.match(keys[1]!.message.text, /its waiver ended on 2026-06-30/);
  const none = runOf(incidentReport({ findings: [sampleFinding()] })).results[0]!;
  assert.ok(!('suppressions' in none));
});

test('what was not checked is a notification, and a run that lacks what was required was no success', () => {
  const [invocation] = runOf(uncheckedReport()).invocations;
  assert.equal(invocation?.executionSuccessful, false);
  assert.deepEqual(
    invocation.toolExecutionNotifications.map(({ level, message }) => [level, message.text]),
    [
      ['note', 'Not checked: detection.kv-canary on prefill. /server_info has no field for it before 0.5.20'],
      ['warning', 'Not checked: rejection.deferred-release on decode. the command line of decode was not given'],
    ],
  );
  assert.equal(runOf(incidentReport()).invocations[0]?.executionSuccessful, true);
});

test('files are told from endpoints, metrics and routes', () => {
  const file = (source: string, line?: number): boolean =>
    isFilePlace({ node: '', source, ...(line === undefined ? {} : { line }) });
  for (const source of ['a.yaml', 'k8s/decode.yml', './x/y.log', '/etc/x.json', 'C:\\x\\y.yaml'])
    assert.ok(file(source), source);
  for (const source of [
    '/server_info',
    'http://h:1/x.json',
    '/v1/models',
    'vllm:cache_config_info',
    '--command',
    'a b',
    '',
  ]) {
    assert.ok(!file(source), source);
  }
  assert.ok(file('Dockerfile', 3));
});

test('the address of a file is a plain path, whatever its name', () => {
  const uri = (source: string): string =>
    /"uri":"([^"]*)"/.exec(JSON.stringify(locationOf({ node: 'n', source, line: 1 })))![1]!;
  assert.equal(uri('./k8s/a b.yaml'), 'k8s/a%20b.yaml');
  assert.equal(uri('javascript:alert(1).yaml'), 'javascript%3Aalert(1).yaml');
  assert.equal(uri('/etc/a?b#c.yaml'), 'file:///etc/a%3Fb%23c.yaml');
  assert.equal(uri('//evil/x.yaml'), 'file:///evil/x.yaml');
  assert.equal(uri('C:\\k8s\\a.yaml'), 'file:///C%3A/k8s/a.yaml');
  assert.match(JSON.stringify(locationOf({ node: '../../x y', source: '/server_info' })), /"uri":"endpoints\/x-y"/);
});

test('no text becomes a link, a placeholder or HTML in a message', () => {
  assert.equal(messageText('[a](http://x)'), '\\[a\\](http://x)');
  assert.equal(messageText('\\[a\\](http://x)'), '\\\\\\[a\\\\\\](http://x)');
  assert.equal(messageText('{0} {"a":1}'), '{{0}} {{"a":1}}');
  assert.equal(messageText('<script>x</script> a<b 1 < 2'), '< script>x< /script> a< b 1 < 2');
  assert.equal(messageText('javascript:alert(1) metadata:x'), 'javascript :alert(1) metadata:x');
  assert.equal(messageText('\\u001b stays'), '\\u001b stays');
});
