/** Goal: what editors and people are told of the configuration is what the code checks. Method: both made anew and compared. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { CONFIG_DOC, configDoc, configSchema, SCHEMA_FILE } from './config-doc.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const AGAIN = 'is stale: npm run build && node dist/tools/config-doc.js';

test('the schema for editors is what the description gives, and goes with the package', () => {
  assert.deepEqual(JSON.parse(read(SCHEMA_FILE)), configSchema(), `${SCHEMA_FILE} ${AGAIN}`);
  const { files } = JSON.parse(read('package.json')) as { files: string[] };
  assert.ok(files.includes('docs'));
});

test('the table of the document has every field, and is what the description gives', () => {
  const text = read(CONFIG_DOC);
  assert.ok(configDoc(text) === text, `${CONFIG_DOC} ${AGAIN}`);
  for (const path of ['listen.port', 'tenants[].keys', 'upstreams[].prefill-pool', 'drain.timeout']) {
    assert.match(text, new RegExp(`^\\| \`${path.replaceAll(/[[\].]/g, '\\$&')}\` \\| `, 'm'));
  }
});
