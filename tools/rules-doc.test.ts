/** Goal: docs/RULES.md and the registry hold the same rules. Method: the made document against the file, and both ways by hand. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ADVISORIES } from '../src/audit/advisories.data.js';
import { RULES } from '../src/audit/registry.js';
import { RULES_DOC, rulesDoc } from './rules-doc.js';

const text = readFileSync(join(fileURLToPath(new URL('../..', import.meta.url)), RULES_DOC), 'utf8');

test('the document is what the rules say of themselves', () => {
  assert.ok(text === rulesDoc(), `${RULES_DOC} is stale: npm run build && node dist/tools/rules-doc.js`);
});

test('every rule has its row and its section with severity and title, and every row and section has a rule', () => {
  const rows = [...text.matchAll(/^\| \[`([a-z.0-9-]+)`\]\(#[a-z0-9-]+\) \| (\w+) \| [^|]+ \| (.+) \|$/gm)];
  assert.deepEqual(
    rows.map(([, id, severity, title]) => [id, severity, title]),
    RULES.map(({ meta }) => [meta.id, meta.severity, meta.title]),
  );
  const sections = [...text.matchAll(/^### (\S+)\n\n\*\*(.+)\*\* \((\w+); /gm)];
  assert.equal(sections.length, RULES.length);
  assert.deepEqual(
    new Map(sections.map(([, id, title, severity]) => [id, `${severity} ${title}`])),
    new Map(RULES.map(({ meta }) => [meta.id, `${meta.severity} ${meta.title}`])),
  );
});

test('every advisory is listed', () => {
  for (const { ids } of ADVISORIES) for (const id of ids) assert.ok(text.includes(id), id);
});
