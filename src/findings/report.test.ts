/** Goal: the verdict is never better than what was seen, and a saved report is read back exactly or refused in words. Method: examples, one property. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { cleanReport, incidentReport, sampleFinding, uncheckedReport } from '../../test/support/sample-report.js';
import { CodedError } from '../base/errors.js';
import { sortFindings } from './finding.js';
import { renderReportJson } from './render-json.js';
import * as reports from './report.js';
import { parseReport, REPORT_DEPTH_MAX } from './report-parse.js';

function refusal(json: string): string {
  try {
    parseReport(json);
  } catch (error) {
    assert.ok(error instanceof CodedError && error.code === 'usage', String(error));
    return error.message;
  }
  return assert.fail('it was read');
}

/** The saved incident with one field of its JSON (`nodes.0.pool`) put to a value; undefined takes it away. */
function changed(path: string, value: unknown): string {
  const report: object = JSON.parse(renderReportJson(incidentReport()));
  const names = path.split('.');
  const last = names.pop()!;
  const owner = names.reduce<object>((inner, name) => Reflect.get(inner, name), report);
  Reflect.set(owner, last, value);
  return JSON.stringify(report);
}

test('among findings equally bad, capacity comes before versions, and these before the rest', () => {
  const ids = ['access.open', 'version.old', 'capacity.small', 'capacities.other', 'capacity.big'];
  const sorted = sortFindings(ids.map((id) => sampleFinding({ id })));
  assert.deepEqual(
    sorted.map(({ id }) => id),
    ['capacity.big', 'capacity.small', 'version.old', 'access.open', 'capacities.other'],
  );
  const graver = sortFindings([sampleFinding({ severity: 'high' }), sampleFinding({ id: 'access.open' })]);
  assert.equal(graver[0]?.id, 'access.open');
});

test('the verdict follows from what counts and from what had to be checked', () => {
  const verdict = (over: Partial<reports.Report>): string => incidentReport(over).verdict;
  const high = sampleFinding({ severity: 'high' });
  const waiver = { reason: 'known', expires: '2027-01-31', expired: false };
  const required: readonly string[] = [];
  assert.equal(verdict({ findings: [high], required }), 'findings');
  assert.equal(verdict({ findings: [high], required, failOn: 'critical' }), 'clean');
  assert.equal(verdict({ findings: [high], required, failOn: 'none' }), 'clean');
  assert.equal(verdict({ findings: [{ ...high, waiver }], required }), 'clean');
  assert.equal(verdict({ findings: [{ ...high, waiver: { ...waiver, expired: true } }], required }), 'findings');
  assert.deepEqual(reports.VERDICTS.map(reports.exitCodeOfVerdict), [0, 1, 3]);
});

test('what was required and not checked is not clean, also when nothing spoke of it', () => {
  const check = { id: 'capacity.pool-below-context', node: 'a', status: 'passed', why: '' } as const;
  const verdict = (checks: readonly reports.ReportCheck[], required: readonly string[]): string =>
    incidentReport({ findings: [], checks, required }).verdict;
  assert.equal(verdict([check], ['capacity']), 'clean');
  assert.equal(verdict([check], ['capacity.pool-below-context']), 'clean');
  assert.equal(verdict([check, { ...check, node: 'b', status: 'not-checked' }], ['capacity']), 'not-checked');
  assert.equal(verdict([{ ...check, status: 'not-applicable' }], ['capacity']), 'clean');
  assert.equal(verdict([check], ['version']), 'not-checked');
  assert.equal(verdict([check], ['cap']), 'not-checked', 'a group is a whole word');
  assert.equal(verdict([], ['capacity']), 'not-checked');
  assert.equal(incidentReport().verdict, 'findings', 'a finding weighs more than what was not checked');
  assert.equal(reports.judgeAgain(incidentReport(), 'none', ['rejection']).verdict, 'not-checked');
});

test('a ratio below one never looks like one', () => {
  const texts = [1, 0.999999, 0.29, 0.649719, 2, 0].map(reports.ratioText);
  assert.deepEqual(texts, ['1.00', '0.99', '0.29', '0.64', '2.00', '0.00']);
  assert.equal(reports.ratioText(reports.poolRatio(null, 5)), 'unknown');
  assert.equal(reports.poolRatio(5, 0), null);
});

test('a saved report is read back as it was', () => {
  for (const report of [incidentReport(), uncheckedReport(), cleanReport()]) {
    assert.deepEqual(parseReport(renderReportJson(report)), report);
  }
});

test('a saved report without the lists that a probe does not have is read', () => {
  const { nodes: _nodes, checks: _checks, changes: _changes, skipped: _skipped, ...rest } = cleanReport();
  assert.deepEqual(parseReport(JSON.stringify(rest)), cleanReport());
});

test('a field that is wrong is named, with what was expected and what came', () => {
  const cases: [string, unknown, RegExp][] = [
    ['reportVersion', 2, /`reportVersion` of the report to be 1, .*got `2`/],
    ['reportVersion', undefined, /`reportVersion` .*got nothing/],
    ['nodes.0.pool', '681280', /`nodes\[0\]\.pool` .*a whole number from 0 up, got `681280`/],
    ['nodes.1.ratio', -1, /`nodes\[1\]\.ratio`/],
    ['nodes.1.role', 'both', /`nodes\[1\]\.role` .*one of prefill, decode, .*got `both`/],
    ['findings.0.severity', 'bad', /`findings\[0\]\.severity` .*got `bad`/],
    ['findings.0.where.line', 0, /`findings\[0\]\.where\.line` .*from 1 up, got `0`/],
    ['findings.0.where', null, /`findings\[0\]\.where` .*an object, got `null`/],
    ['findings.0.references', 'x', /`findings\[0\]\.references` .*a list/],
    ['findings.0.title', 'x'.repeat(70_000), /`findings\[0\]\.title` .*at most 65536 characters/],
    ['findings', undefined, /`findings` .*a list, got nothing/],
    ['checks.0.status', 'ok', /`checks\[0\]\.status`/],
    ['findings.2.waiver', {}, /`findings\[2\]\.waiver\.reason`/],
  ];
  for (const [path, value, words] of cases) assert.match(refusal(changed(path, value)), words);
});

test('what is no report is refused without being quoted', () => {
  assert.match(
    refusal('sk-secret-key'),
    /^Expected a report as JSON, as `--output json` writes it, got something else$/,
  );
  assert.match(refusal('[]'), /Expected a report to be an object, got an array/);
  assert.match(refusal('['.repeat(REPORT_DEPTH_MAX + 1)), /nested at most 16 deep/);
  assert.match(refusal(`{"a":${'['.repeat(5_000_000)}`), /nested at most/);
  assert.match(refusal(`"${'['.repeat(100)}"`), /an object, got/);
});

test('nothing unknown is carried along', () => {
  const saved = changed('nodes.0.extra', 1).replace('{', '{"extra":1,"__proto__":{"headline":"from nowhere"},');
  const read = parseReport(saved);
  assert.deepEqual(read, incidentReport());
});

test('a report of any texts is the same after saving and reading twice (seed 71)', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 30 }), (text) => {
      const report = incidentReport({ headline: text, findings: [sampleFinding({ title: text })] });
      const once = renderReportJson(report);
      assert.equal(renderReportJson(parseReport(once)), once);
    }),
    { seed: 71, numRuns: 50 },
  );
});

test('docs/REPORT.md has a row for every field of a report, and no other', () => {
  const page = readFileSync(new URL('../../../docs/REPORT.md', import.meta.url), 'utf8');
  const documented = Array.from(page.matchAll(/^\| `([A-Za-z]+)`/gm), ([, name]) => name);
  assert.deepEqual(documented, Object.keys(incidentReport()));
});
