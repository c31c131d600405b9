/**
 * Goal: what people and machines parse does not change by accident. Method: whole outputs of three reports, kept under
 * test/golden/findings. `COFFERDAM_GOLDEN=write node --test dist/src/findings/golden.test.js` writes them again.
 */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import { cleanReport, incidentReport, SAMPLE_RULES, uncheckedReport } from '../../test/support/sample-report.js';
import { OUTPUT_FORMATS, type OutputFormat, renderReport } from './render.js';

const FOLDER = fileURLToPath(new URL('../../../test/golden/findings/', import.meta.url));
const WRITE = process.env.COFFERDAM_GOLDEN === 'write';
const ENDINGS: Readonly<Record<OutputFormat, string>> = {
  table: 'txt',
  json: 'json',
  jsonl: 'jsonl',
  sarif: 'sarif',
  junit: 'xml',
  html: 'html',
};
const REPORTS = { incident: incidentReport(), unchecked: uncheckedReport(), clean: cleanReport() };

function compare(name: string, text: string): void {
  if (WRITE) {
    mkdirSync(FOLDER, { recursive: true });
    writeFileSync(FOLDER + name, text);
    return;
  }
  assert.equal(text, readFileSync(FOLDER + name, 'utf8'), `${name} differs; is the change meant?`);
}

for (const [name, report] of Object.entries(REPORTS)) {
  for (const format of OUTPUT_FORMATS) {
    test(`the report \`${name}\` as ${format} is what it was`, () => {
      compare(`${name}.${ENDINGS[format]}`, renderReport(report, format, { rules: SAMPLE_RULES }));
    });
  }
}

test('a narrow terminal gets the nodes as lines', () => {
  compare('incident-60.txt', renderReport(REPORTS.incident, 'table', { width: 60 }));
});

test('every golden file belongs to a test', () => {
  assert.equal(readdirSync(FOLDER).length, Object.keys(REPORTS).length * OUTPUT_FORMATS.length + 1);
});
