/** Goal: findings, verdict and page follow from the record. Method: records made by hand, each verdict once. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { renderReport } from '../findings/render.js';
import { probePage } from './page.js';
import { RecordBuilder, type RunRecord, TIME_BINS, timeBin, timeOfBin } from './record.js';
import { probeReport } from './report.js';
import type { ExperimentResult } from './result.js';
import { PROBE_RULES } from './rule-texts.js';
import { samplesPlot } from './plots.js';
import { EXPERIMENTS } from './registry.js';
import { EXPERIMENT_VERDICTS } from './result.js';
import { fragmentChanceBound } from './stats/fragment.js';

function recordOf(results: readonly ExperimentResult[]): RunRecord {
  const builder = new RecordBuilder();
  builder.take({
    record: 'probe',
    version: 1,
    tool: '1.0',
    runId: 'r',
    startedAt: '2026-12-01T00:00:00.000Z',
    endpoint: 'http://h:1',
    model: 'm',
    route: 'completions',
    tenants: ['a', 'b'],
    seed: 1,
    experiments: results.map(({ name }) => name),
    required: results.map(({ name }) => name),
    bound: 0.05,
  });
  for (const result of results) builder.take({ record: 'experiment', ...result });
  builder.take({ record: 'end', why: null });
  return builder.result()!;
}

const result = (
  name: string,
  verdict: ExperimentResult['verdict'],
  over: Partial<ExperimentResult> = {},
): ExperimentResult => ({
  name,
  verdict,
  sent: 10,
  hits: 0,
  bound: 0.04,
  control: 'It worked.',
  evidence: [],
  ...over,
});

test('each verdict has its finding, and the report fails, passes or is not checked as the exit code has it', () => {
  const cases: readonly (readonly [ExperimentResult, string[], string])[] = [
    [result('canary', 'isolated'), [], 'clean'],
    [result('starve', 'starves'), ['probe.starved high'], 'findings'],
    [result('abort-storm', 'leaks'), ['probe.answers-changed critical'], 'findings'],
    [result('handles', 'leaks'), ['probe.handle-accepted critical'], 'findings'],
    [result('prefix-timing', 'leaks'), ['probe.prefix-shared high'], 'findings'],
    [result('restart', 'leaks'), ['probe.leaks critical'], 'findings'],
    [result('canary', 'no-power'), ['probe.no-power medium'], 'not-checked'],
    [result('canary', 'could-not-run'), ['probe.could-not-run medium'], 'not-checked'],
    [
      result('boundary', 'no-power', {
        evidence: ['placeholder: 3 answers at 9 tokens (q-1 and on).', 'empty: 1 answers at 9 tokens (q-2 and on).'],
      }),
      ['probe.answered-beyond-limit critical', 'probe.answered-beyond-limit high', 'probe.no-power medium'],
      'findings',
    ],
  ];
  for (const [one, findings, verdict] of cases) {
    const report = probeReport(recordOf([one]));
    assert.deepEqual(
      report.findings.map(({ id, severity }) => `${id} ${severity}`),
      findings,
      one.name,
    );
    assert.equal(report.verdict, verdict, one.name);
  }
});

test('every rule has its words, and SARIF takes them', () => {
  for (const { why, change, wanted, references } of PROBE_RULES) {
    for (const words of [why, change, wanted]) assert.ok(words.length > 20);
    assert.deepEqual(references, ['docs/PROBE.md']);
  }
  const sarif = renderReport(probeReport(recordOf([result('starve', 'starves')])), 'sarif', { rules: PROBE_RULES });
  assert.ok(sarif.includes('One tenant can cost another its service'));
});

test('distributions are drawn over one axis, with their medians, and a short list is not one', () => {
  const hitMs = [1, 1, 1, 2, 2, 3];
  const missMs = [7, 8, 8, 9, 9, 9];
  const page = probePage(
    recordOf([result('prefix-timing', 'leaks', { figures: { hitMs, missMs, short: [1, 2], p: 0.001 } })]),
  );
  assert.match(page, /hitMs: n = 6, median 1\.5 ms; missMs: n = 6, median 8\.5 ms/);
  assert.ok(!page.includes('short: n ='));
  const bars = (name: string): number =>
    (samplesPlot(new Map([[name, hitMs]]), 'ms').match(/class="fill"/g) ?? []).length;
  assert.equal(bars('hitMs'), 3);
  assert.equal(samplesPlot(new Map([['none', []]]), 'ms'), '');
  assert.match(samplesPlot(new Map([['same', [5, 5, 5]]]), 'ms'), /median 5 ms/);
});

test('times of any size have a bin, and a bin begins where its time says', () => {
  for (const ms of [0, 0.05, 0.1, 1, 37.5, 999, 1e6, 1e12]) {
    const bin = timeBin(ms);
    assert.ok(bin >= 0 && bin < TIME_BINS);
    if (ms >= 0.1 && ms < 1e6) assert.ok(timeOfBin(bin) <= ms * (1 + 1e-9) && ms < timeOfBin(bin + 1));
  }
});

test('the documentation has every experiment, every verdict, and the chance of a false alarm as it is', () => {
  const text = readFileSync('docs/PROBE.md', 'utf8');
  const named = Array.from(text.matchAll(/^\*\*([a-z-]+)\.\*\* /gm), (match) => match[1]);
  assert.deepEqual(
    named,
    EXPERIMENTS.map(({ name }) => name),
  );
  for (const verdict of EXPERIMENT_VERDICTS) assert.match(text, new RegExp(`^\\| \`${verdict}\``, 'm'));
  assert.match(text, /below 1e-6 per marker and million characters/);
  assert.ok(fragmentChanceBound(1_000_000) < 1e-6);
  assert.match(text, /8,192 markers and two million characters of\s+answers, a large run, below 2 %/);
  assert.ok(fragmentChanceBound(2_000_000, 8192) < 0.02);
});
