/**
 * Goal: no text of a target breaks out of its place in any format. Method: hostile texts in every field of a report; each
 * output is read by a strict reader, and must have the very structure that it has for plain texts.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { incidentReport, SAMPLE_RULES } from '../../test/support/sample-report.js';
import { elementsOf, readMarkup, shapeOf, textOf } from '../../test/support/markup-reader.js';
import { assertSarif } from '../../test/support/sarif-shape.js';
import { escapeControl } from '../base/text.js';
import { HTML_STYLE } from './html-style.js';
import { safeLink } from './markup.js';
import { renderReport } from './render.js';
import { makeReport, type Report } from './report.js';
import { parseReport } from './report-parse.js';

const NASTY = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "' onmouseover='alert(1)",
  '</style><style>*{background:url(http://evil/)}',
  '</title></head><body>',
  '<!-- ',
  '-->',
  ']]>',
  '<![CDATA[',
  '<?xml version="1.0"?>',
  '&lt;script&gt; &amp; &#x3c; &unknown;',
  'javascript:alert(1)',
  'JaVaScRiPt:alert(1)',
  'data:text/html,<script>1</script>',
  'https://user:password@evil/',
  'https://evil/" onclick="alert(1)',
  '[click](javascript:alert(1))',
  '![x](http://evil/x.png)',
  '{0} {{1}}',
  '\u001b[2J\u001b]8;;http://evil\u0007x\u001b]8;;\u0007',
  'a\u202eb\u2066c',
  '\ud800 \udfff \uffff \ufffe \u0000',
  'a\r\nb\tc\u2028d\u0085e',
  '`code` and ` half',
  '│ └┘ ┌',
  '__proto__',
  'constructor',
  '</failure></testcase></testsuite>',
  '\\',
  '\\[x\\](y)',
  '{"kind":"verdict"}\n{"kind":"verdict"}',
  '',
];

const hostile = fc.oneof(fc.constantFrom(...NASTY), fc.string({ unit: 'binary', maxLength: 40 }));

/** The incident with the texts of every finding, node, check, change and skipped source taken from `next`. */
function withTexts(next: (path: string) => string): Report {
  const plain = incidentReport();
  const replace = (value: unknown, path: string): unknown => {
    const kept = /(?:^reportVersion|verdict|failOn|\.severity|\.role|\.status|\.expires)$/;
    if (typeof value === 'string') return kept.test(path) ? value : next(path);
    if (Array.isArray(value)) return value.map((item, index) => replace(item, `${path}.${index}`));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, replace(inner, `${path}.${key}`)]));
  };
  return makeReport({ ...(replace(plain, '') as Report), required: [] });
}

const anyReport: fc.Arbitrary<Report> = fc.array(hostile, { minLength: 1, maxLength: 40 }).map((texts) => {
  let at = 0;
  return withTexts(() => texts[at++ % texts.length]!);
});

/** One text, different in every place, so that nothing is merged that was apart. */
const PLAIN = withTexts((path) => `x${path.replaceAll('.', '-')}`);
const RUNS = { numRuns: process.env.COFFERDAM_LONG === '1' ? 5000 : 150 };

const ATTRIBUTES: Readonly<Record<string, readonly string[]>> = {
  html: ['lang'],
  meta: ['charset', 'http-equiv', 'content', 'name'],
  a: ['href', 'rel'],
  svg: ['width', 'height', 'role', 'aria-label'],
  rect: ['class', 'x', 'y', 'width', 'height'],
};

/** Elements that depend on the texts themselves: code between backticks, links, and rows of checks with one id. */
const OF_TEXTS = ['code', 'a'];
const OF_IDS = ['tr', 'td', ...OF_TEXTS];

test('the page has no script, no handler, nothing to load, and no other element than for plain texts (seed 73)', () => {
  const shape = shapeOf(readMarkup(renderReport(PLAIN, 'html')), OF_IDS);
  fc.assert(
    fc.property(anyReport, (report) => {
      const page = readMarkup(renderReport(report, 'html'));
      assert.deepEqual(shapeOf(page, OF_IDS), shape);
      for (const { name, attributes, text } of elementsOf(page)) {
        for (const attribute of Object.keys(attributes)) {
          assert.ok([...(ATTRIBUTES[name] ?? ['class']), 'class'].includes(attribute), `${name} ${attribute}`);
        }
        if (name === 'a') assert.match(attributes.href!, /^https?:\/\/[^@]*$/);
        if (name === 'style') assert.equal(text, HTML_STYLE);
        assert.ok(!['script', 'link', 'img', 'iframe', 'object', 'embed', 'form', 'base'].includes(name));
      }
      assert.doesNotMatch(HTML_STYLE, /url\(|@import|expression/);
    }),
    { seed: 73, includeErrorInReport: true, ...RUNS },
  );
});

test('the JUnit file is well formed, and its failures and skips are those of plain texts (seed 74)', () => {
  fc.assert(
    fc.property(anyReport, (report) => {
      const suite = readMarkup(renderReport(report, 'junit'));
      const names = new Set(shapeOf(suite));
      for (const name of names) {
        assert.ok(['testsuites', 'testsuite', 'testcase', 'failure', 'skipped', 'error', 'system-out'].includes(name));
      }
      const count = (name: string): number => [...elementsOf(suite)].filter((one) => one.name === name).length;
      const { tests, failures, skipped, errors } = suite.attributes;
      const counted = [count('testcase'), count('failure'), count('skipped'), count('error')];
      assert.deepEqual([tests, failures, skipped, errors], counted.map(String));
      const said = textOf(suite);
      for (const finding of report.findings) assert.ok(said.includes(`change: ${escapeControl(finding.change)}`));
    }),
    { seed: 74, includeErrorInReport: true, ...RUNS },
  );
});

test('SARIF keeps its shape, and none of its texts is a link or moves a terminal (seed 75)', () => {
  fc.assert(
    fc.property(anyReport, (report) => {
      const sarif = renderReport(report, 'sarif', { rules: SAMPLE_RULES });
      assertSarif(sarif);
      assert.doesNotMatch(JSON.stringify(JSON.parse(sarif)), /(?<!\\)(?:\\\\)*\\[bfrt]|[\p{Cc}\p{Cf}\p{Cs}]/u);
    }),
    { seed: 75, includeErrorInReport: true, ...RUNS },
  );
});

test('tables and lines of JSON hold no control character, and a text makes no line of its own (seed 76)', () => {
  const lines = renderReport(PLAIN, 'jsonl').split('\n').length;
  fc.assert(
    fc.property(anyReport, fc.integer({ min: 60, max: 160 }), (report, width) => {
      const table = renderReport(report, 'table', { width });
      assert.doesNotMatch(table.replaceAll('\n', ''), /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/u);
      for (const line of table.split('\n'))
        assert.ok(Array.from(line.replace(/\p{M}/gu, '')).length <= width, `more than ${width} columns: ${line}`);
      const kinds = renderReport(report, 'jsonl').trimEnd().split('\n');
      assert.equal(kinds.length + 1, lines);
      for (const line of kinds) assert.match((JSON.parse(line) as { kind: string }).kind, /^[a-z]+$/);
    }),
    { seed: 76, includeErrorInReport: true, ...RUNS },
  );
});

test('JSON is read back with every text escaped and nothing else changed (seed 77)', () => {
  fc.assert(
    fc.property(anyReport, (report) => {
      const json = renderReport(report, 'json');
      assert.doesNotMatch(json.replaceAll('\n', ''), /[\p{Cc}\p{Cf}\p{Cs}]/u);
      const read = parseReport(json);
      assert.equal(renderReport(read, 'json'), json);
      assert.equal(read.findings.length, report.findings.length);
    }),
    { seed: 77, includeErrorInReport: true, ...RUNS },
  );
});

test('only plain addresses of the web become links', () => {
  assert.equal(safeLink('https://example.org/a?b=c#d'), 'https://example.org/a?b=c#d');
  for (const text of [...NASTY, 'http:/x', ' https://x', 'ftp://x', '//x', 'https://', 'http://[', 'HTTPS://x']) {
    const link = safeLink(text);
    assert.ok(link === null || /^https?:\/\/evil\/[^"<>]*$/.test(link), String(link));
  }
});
