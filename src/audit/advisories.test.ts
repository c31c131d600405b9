/** Goal: no version is accused that is out of range, and none in range is let off. Method: examples at every edge, one property. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { compareVersions, parseVersion } from '../upstream/version.js';
import { ADVISORIES } from './advisories.data.js';
import { type AffectedRange, inRange, rangeText } from './advisories.js';
import { RULES } from './registry.js';

const at = (text: string, range: AffectedRange): string => {
  const version = parseVersion(text);
  assert.ok(version !== null, text);
  return inRange(version, range);
};

test('the table holds more than sixty identifiers, once each, with ranges that parse and a source', () => {
  const ids = ADVISORIES.flatMap((row) => row.ids);
  assert.equal(new Set(ids).size, ids.length);
  assert.ok(ids.length > 60 && ADVISORIES.length >= 60, `${ids.length} identifiers in ${ADVISORIES.length} rows`);
  const engines = RULES.find(({ meta }) => meta.id === 'version.advisory')?.meta.engines;
  for (const row of ADVISORIES) {
    for (const id of row.ids)
      assert.match(id, /^(?:CVE-\d{4}-\d{3,7}|GHSA(?:-[0-9a-z]{4}){3}|PYSEC-\d{4}-\d+|JFSA-\d{4}-\d+)$/);
    for (const bound of [row.range.from, row.range.before, row.range.through]) {
      if (bound !== undefined) assert.ok(parseVersion(bound) !== null, `${row.ids[0]}: ${bound}`);
    }
    assert.ok(row.range.before === undefined || row.range.through === undefined, row.ids[0]);
    assert.match(row.source, /^https:\/\//);
    assert.ok(engines !== 'all' && engines?.includes(row.product), row.product);
    assert.ok(!row.certain || rangeText(row.range) !== 'not public', `${row.ids[0]}: certain of what is not public`);
  }
});

for (const [version, range, wanted] of [
  ['0.8.4', { from: '0.6.5', before: '0.8.5' }, 'yes'],
  ['0.6.5', { from: '0.6.5', before: '0.8.5' }, 'yes'],
  ['0.6.4.post1', { from: '0.6.5', before: '0.8.5' }, 'no'],
  ['0.8.5', { from: '0.6.5', before: '0.8.5' }, 'no'],
  ['0.8.5.post1', { before: '0.8.5' }, 'no'],
  ['0.8.5rc1', { before: '0.8.5' }, 'maybe'],
  ['0.8.5.dev12+gabc', { before: '0.8.5' }, 'maybe'],
  ['0.8.4+cu121', { before: '0.8.5' }, 'yes'],
  ['0.10.0', { before: '0.9.0' }, 'no'],
  ['0.5.21', { from: '0.5.13', through: '0.5.21' }, 'yes'],
  ['0.5.21.post1', { through: '0.5.21' }, 'maybe'],
  ['0.5.22.dev20261005+gabc', { through: '0.5.21' }, 'no'],
  ['0.5.21.dev20260930+gabc', { through: '0.5.21' }, 'yes'],
  ['0.3.13.post1', { through: '0.3.13.post1' }, 'yes'],
  ['1.3.0rc15', { through: '1.3.0rc14' }, 'maybe'],
  ['1.3.0rc14', { through: '1.3.0rc14' }, 'yes'],
  ['b9058', { from: 'b4882', through: 'b9058' }, 'yes'],
  ['b9059', { from: 'b4882', through: 'b9058' }, 'no'],
  ['b4881', { from: 'b4882', through: 'b9058' }, 'no'],
  ['1.2.3', { from: 'b4882', through: 'b9058' }, 'maybe'],
  ['0.0.1', {}, 'maybe'],
  ['9.9.9', { all: true }, 'yes'],
] as const) {
  test(`${version} is ${wanted} for what is affected ${rangeText(range)}`, () =>
    assert.equal(at(version, range), wanted));
}

test('a later release never comes back into a range that an earlier one has left (seed 71)', () => {
  const release = fc.tuple(fc.nat(3), fc.nat(30), fc.nat(30)).map((parts) => parts.join('.'));
  fc.assert(
    fc.property(release, release, release, (fix, one, other) => {
      const [a, b] = [parseVersion(one)!, parseVersion(other)!];
      const [older, newer] = compareVersions(a, b)! <= 0 ? [a, b] : [b, a];
      if (inRange(older, { before: fix }) === 'no') assert.equal(inRange(newer, { before: fix }), 'no');
    }),
    { seed: 71 },
  );
});
