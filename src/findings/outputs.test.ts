/** Goal: each output goes where it was asked to, whole or not at all. Method: the parser by example, files in a folder of their own. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { cleanReport, incidentReport } from '../../test/support/sample-report.js';
import { CodedError } from '../base/errors.js';
import type { Finding } from './finding.js';
import { checkOutputs, convertReport, OUTPUTS_MAX, parseOutputs, writeOutputs } from './outputs.js';
import { OUTPUT_FORMATS, renderReport } from './render.js';
import { renderFindingsTable, TABLE_FINDINGS_MAX } from './render-table.js';

const FOLDER = mkdtempSync(join(tmpdir(), 'cofferdam-outputs-'));
after(() => rmSync(FOLDER, { recursive: true, force: true }));
const path = (name: string): string => join(FOLDER, name);

function refusal(...texts: string[]): string {
  try {
    parseOutputs(texts);
  } catch (error) {
    assert.ok(error instanceof CodedError && error.code === 'usage', String(error));
    return error.message;
  }
  return assert.fail('it was let through');
}

const isUsage = (words: RegExp) => (error: unknown) =>
  error instanceof CodedError && error.code === 'usage' && words.test(error.message);

test('outputs are formats with a file or without; none means a table', () => {
  assert.deepEqual(parseOutputs([]), [{ format: 'table', file: null }]);
  assert.deepEqual(parseOutputs(['table', 'sarif=a.sarif', 'html=b=c.html', 'json=./d']), [
    { format: 'table', file: null },
    { format: 'sarif', file: 'a.sarif' },
    { format: 'html', file: 'b=c.html' },
    { format: 'json', file: './d' },
  ]);
  assert.deepEqual(parseOutputs(['junit=-']), [{ format: 'junit', file: null }]);
  assert.equal(parseOutputs(OUTPUT_FORMATS.map((format) => `${format}=x.${format}`)).length, 6);
});

test('what is no output is refused in words', () => {
  assert.match(refusal('xml'), /`--output` to be one of table, json, jsonl, sarif, junit, html, .*got `xml`/);
  assert.match(refusal('xml=a'), /got `xml`/);
  assert.match(refusal('JSON'), /got `JSON`/);
  assert.match(refusal(''), /got ``/);
  assert.match(refusal('json='), /Expected a file after `--output json=`/);
  assert.match(refusal('json', 'table'), /at most one `--output` without `=FILE`, got a second: `table`/);
  assert.match(refusal('json=-', 'table'), /at most one/);
  assert.match(refusal('json=a', 'html=./a'), /a file of its own, got `\.\/a` twice/);
  assert.match(refusal(...Array<string>(OUTPUTS_MAX + 1).fill('json')), /at most 16 times/);
});

test('one run writes every format it was asked for, and standard output gets its own', async () => {
  const report = incidentReport();
  const targets = parseOutputs(['table', ...OUTPUT_FORMATS.map((format) => `${format}=${path(`all.${format}`)}`)]);
  await checkOutputs(targets);
  const said: string[] = [];
  await writeOutputs(report, targets, (text) => said.push(text), { colour: true, width: 100 });
  assert.equal(said.join(''), renderReport(report, 'table', { colour: true, width: 100 }));
  for (const format of OUTPUT_FORMATS) {
    assert.equal(readFileSync(path(`all.${format}`), 'utf8'), renderReport(report, format), format);
  }
  assert.ok(
    readdirSync(FOLDER).every((name) => !name.endsWith('.tmp')),
    'a temporary file was left',
  );
});

test('a file that was there is replaced, and a link stays a link', async () => {
  writeFileSync(path('real.json'), 'old');
  symlinkSync(path('real.json'), path('link.json'));
  const report = cleanReport();
  await writeOutputs(report, parseOutputs([`json=${path('link.json')}`]), () => {});
  assert.ok(lstatSync(path('link.json')).isSymbolicLink());
  assert.equal(readFileSync(path('real.json'), 'utf8'), renderReport(report, 'json'));
});

test('a file that cannot be written is refused before the work, and leaves nothing behind', async () => {
  mkdirSync(path('folder'));
  const wrong =
    /Expected `--output json=…` to name a file that can be written, got `.*` \((?:ENOENT|it is a folder|ENOTDIR)\)/;
  writeFileSync(path('plain'), '');
  for (const file of [path('nowhere/x.json'), path('folder'), path('plain/x.json')]) {
    const targets = parseOutputs([`json=${file}`]);
    await assert.rejects(checkOutputs(targets), isUsage(wrong), file);
    await assert.rejects(
      writeOutputs(cleanReport(), targets, () => {}),
      isUsage(wrong),
      file,
    );
  }
  assert.ok(!existsSync(path('nowhere')));
});

// The same holds for a device; a test that fails must not be able to replace one of the machine's.
test('a pipe is written to as it is', () => {
  execFileSync('mkfifo', [path('pipe')]);
  const script = `import('${new URL('./outputs.js', import.meta.url).href}').then(async (outputs) => {
    const { makeReport } = await import('${new URL('./report.js', import.meta.url).href}');
    const report = makeReport({ tool: { name: 't', version: '1' }, verb: 'probe', failOn: 'high', required: [], findings: [] });
    await outputs.writeOutputs(report, outputs.parseOutputs(['jsonl=${path('pipe')}']), () => {});
  })`;
  const command = `cat '${path('pipe')}' & "${process.execPath}" -e "$SCRIPT"; wait`;
  const said = execFileSync('sh', ['-c', command], {
    encoding: 'utf8',
    timeout: 10_000,
    env: { ...process.env, SCRIPT: script },
  });
  assert.equal(said.trim().split('\n').length, 2);
  assert.ok(lstatSync(path('pipe')).isFIFO());
});

test('a saved report is rendered again, and its verdict is drawn from what stands in it', async () => {
  const report = incidentReport();
  writeFileSync(path('saved.json'), renderReport(report, 'json'));
  const said: string[] = [];
  const read = await convertReport(path('saved.json'), parseOutputs(['html']), (text) => said.push(text));
  assert.deepEqual(read, report);
  assert.equal(said.join(''), renderReport(report, 'html'));

  writeFileSync(path('edited.json'), renderReport({ ...report, verdict: 'clean' }, 'json'));
  const edited = await convertReport(path('edited.json'), parseOutputs(['json']), () => {});
  assert.equal(edited.verdict, 'findings');
});

test('what cannot be converted is refused in words', async () => {
  const convert = (file: string): Promise<unknown> => convertReport(file, parseOutputs([]), () => {});
  await assert.rejects(
    convert(path('missing.json')),
    isUsage(/`--convert` to name a report that can be read, got .*ENOENT/),
  );
  await assert.rejects(convert(FOLDER), isUsage(/EISDIR/));
  writeFileSync(path('text.txt'), 'no report');
  await assert.rejects(convert(path('text.txt')), isUsage(/Expected a report as JSON/));
});

test('a table of very many findings shows the worst thousand, and says how many more there are', () => {
  const findings = Array.from(
    { length: TABLE_FINDINGS_MAX + 7 },
    (_, i): Finding => ({
      id: 'capacity.pool-margin',
      severity: i === 1005 ? 'critical' : 'low',
      title: `finding ${i}`,
      where: { node: `n${i}`, source: 's' },
      observed: 'o',
      wanted: 'w',
      change: 'c',
      references: [],
      certain: true,
    }),
  );
  const text = renderFindingsTable(findings);
  assert.ok(text.includes('finding 1005'), 'the worst was cut off');
  assert.match(text, /\n7 more, none worse/);
  assert.match(text, /1 critical, 1006 low\n$/);
});
