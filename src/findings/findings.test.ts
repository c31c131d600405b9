/** Goal: findings are counted, ordered and shown the same everywhere, and cannot move a terminal. Method: examples, one property. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ManualClock, SystemClock } from '../base/clock.js';
import { type Finding, isAtLeast, isSeverity, SEVERITIES, sortFindings } from './finding.js';
import { FindingLog } from './finding-log.js';
import { renderFindingsJson, renderLogJson } from './render-json.js';
import { renderFindingsTable, severityCounts, wrap } from './render-table.js';

function finding(over: Partial<Finding> = {}): Finding {
  return {
    id: 'capacity.advertised-above-pool',
    severity: 'high',
    title: 'The advertised context is larger than the prefill pool',
    where: { node: 'prefill-0', source: '/server_info' },
    observed: 'context 4096, prefill pool 2048',
    wanted: 'a pool of at least 4096 tokens',
    change: 'Raise `--prefill-pool` to 4096 or lower `--context` to 2048',
    references: ['docs/ERRORS.md'],
    certain: true,
    ...over,
  };
}

const anyFinding = fc
  .record({
    id: fc.constantFrom('a', 'b', 'c'),
    severity: fc.constantFrom(...SEVERITIES),
    node: fc.constantFrom('n1', 'n2'),
    line: fc.option(fc.nat(3), { nil: undefined }),
  })
  .map(({ id, severity, node, line }) =>
    finding({ id, severity, where: { node, source: 's', ...(line === undefined ? {} : { line }) } }),
  );

test('findings come worst first, in one order whatever order they were found in (seed 41)', () => {
  fc.assert(
    fc.property(fc.array(anyFinding), (findings) => {
      const sorted = sortFindings(findings);
      assert.deepEqual(sortFindings([...findings].reverse()), sorted);
      for (let i = 1; i < sorted.length; i++) {
        assert.ok(SEVERITIES.indexOf(sorted[i - 1]!.severity) <= SEVERITIES.indexOf(sorted[i]!.severity));
      }
    }),
    { seed: 41 },
  );
});

test('a threshold takes in what is as bad and what is worse', () => {
  assert.deepEqual(
    SEVERITIES.map((severity) => isAtLeast(severity, 'high')),
    [true, true, false, false, false],
  );
  assert.ok(isSeverity('low') && !isSeverity('LOW') && !isSeverity('toString'));
});

test('a finding seen again at the same place is counted, and one at another place is kept apart', () => {
  const clock = new ManualClock();
  const log = new FindingLog(clock);
  assert.equal(log.record(finding()), true);
  clock.advance(50);
  assert.equal(log.record(finding({ observed: 'context 4096, prefill pool 1024' })), false);
  assert.equal(log.record(finding({ where: { node: 'prefill-1', source: '/server_info' } })), true);
  assert.equal(log.record(finding({ where: { node: 'prefill-0', source: '/server_info', line: 3 } })), true);
  const [first, ...others] = log.list();
  assert.deepEqual([first?.count, first?.firstMs, first?.lastMs], [2, 0, 50]);
  assert.equal(first?.observed, 'context 4096, prefill pool 1024');
  assert.equal(others.length, 2);
});

test('a repeat that is less severe does not hide the worse one', () => {
  const log = new FindingLog(new ManualClock());
  log.record(finding({ severity: 'critical' }));
  log.record(finding({ severity: 'low' }));
  assert.deepEqual(
    log.list().map(({ severity, count }) => [severity, count]),
    [['critical', 2]],
  );
});

test('a full log drops the least severe, then the one seen longest ago, and says how many', () => {
  const log = new FindingLog(new ManualClock(), 3);
  log.record(finding({ id: 'grave', severity: 'critical' }));
  log.record(finding({ id: 'old', severity: 'low' }));
  log.record(finding({ id: 'fresh', severity: 'low' }));
  log.record(finding({ id: 'old', severity: 'low' }));
  log.record(finding({ id: 'new', severity: 'low' }));
  assert.deepEqual(
    log.list().map(({ id }) => id),
    ['grave', 'new', 'old'],
  );
  for (let i = 0; i < 5000; i++) log.record(finding({ id: `flood-${i}`, severity: 'medium' }));
  assert.equal(log.size, 3);
  assert.equal(log.list()[0]?.id, 'grave');
  assert.equal(log.dropped, 5001);
});

test('the log as JSON holds counts, times and what was dropped', () => {
  const clock = new ManualClock();
  const log = new FindingLog(clock, 1);
  clock.advance(7);
  log.record(finding());
  log.record(finding({ id: 'z', severity: 'info' }));
  const parsed: unknown = JSON.parse(renderLogJson(log));
  assert.deepEqual(parsed, { findings: [{ ...finding(), count: 1, firstMs: 7, lastMs: 7 }], dropped: 1 });
});

test('strings from outside reach neither table nor JSON with control characters in them', () => {
  const evil = 'x\u001b[2J\u0007\u202e\ny';
  const hostile = finding({
    id: evil,
    title: evil,
    where: { node: evil, source: evil },
    observed: evil,
    wanted: evil,
    change: evil,
    references: [evil],
  });
  for (const text of [renderFindingsTable([hostile]).replaceAll('\n', ''), renderFindingsJson([hostile])]) {
    assert.doesNotMatch(text, /[\p{Cc}\p{Cf}]/u);
    assert.match(text, /u001b/);
  }
});

test('the table tells severity, place, what was seen, what was wanted and what to change, with counts below', () => {
  const table = renderFindingsTable([finding({ severity: 'info', certain: false }), finding()], { width: 200 });
  for (const part of [
    'prefill-0 /server_info',
    'observed: context 4096, prefill pool 2048',
    'wanted: a pool',
    'change: ',
  ]) {
    assert.ok(table.includes(part), part);
  }
  assert.match(table, /a sign, not a proof/);
  assert.ok(table.indexOf('high') < table.indexOf('info'), 'the worst does not come first');
  assert.ok(table.endsWith('1 high, 1 info\n'));
  assert.equal(renderFindingsTable([]), 'nothing found\n');
  assert.equal(severityCounts([]), 'nothing found');
});

test('colours come only when asked for', () => {
  assert.doesNotMatch(renderFindingsTable([finding()]), /\u001b/);
  assert.match(renderFindingsTable([finding()], { colour: true }), /\u001b\[31mhigh/);
});

test('the table keeps to its width, and a long text is cut visibly', () => {
  const table = renderFindingsTable([finding({ observed: 'word '.repeat(1000), change: 'y'.repeat(1000) })], {
    width: 80,
  });
  for (const line of table.split('\n')) assert.ok(line.length <= 80, `${line.length} columns`);
  assert.match(table, /…/);
});

test('twenty findings with the longest texts are rendered in less than two seconds', () => {
  const long = finding({ observed: 'y'.repeat(1000), wanted: '漢'.repeat(1000), change: 'word '.repeat(1000) });
  const clock = new SystemClock();
  const startMs = clock.nowMs();
  renderFindingsTable(Array<Finding>(20).fill(long), { width: 80 });
  assert.ok(clock.nowMs() - startMs < 2000, `took ${clock.nowMs() - startMs} ms`);
});

test('wrapping loses no character but blanks at the ends of lines, and no line is too long (seed 42)', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', ' ', '漢', '🙂', '-'), maxLength: 80 });
  fc.assert(
    fc.property(text, fc.integer({ min: 4, max: 20 }), (words, width) => {
      const lines = wrap(words, width).split('\n');
      assert.equal(lines.join('').replaceAll(' ', ''), words.replaceAll(' ', ''));
      for (const line of lines) {
        const columns = Array.from(line, (char) => (char >= '\u1100' ? 2 : 1)).reduce(
          (sum: number, one) => sum + one,
          0,
        );
        assert.ok(columns <= width, `${columns} columns of ${width}`);
      }
    }),
    { seed: 42 },
  );
  assert.equal(wrap('one two three', 8), 'one two\nthree');
});
