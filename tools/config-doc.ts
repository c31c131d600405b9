/**
 * Writes docs/cofferdam.schema.json, and the table of docs/CONFIGURATION.md, from the description of the configuration.
 *
 *   node dist/tools/config-doc.js
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { CONFIG_SCHEMA_DESCRIPTION, CONFIG_SCHEMA_TITLE, SERVE_SHAPE } from '../src/cli/config-shape.js';
import { type Json, jsonSchema } from '../src/config/json-schema.js';
import { fieldTable } from '../src/config/table.js';

export const SCHEMA_FILE = 'docs/cofferdam.schema.json';
export const CONFIG_DOC = 'docs/CONFIGURATION.md';
const BEGIN = '<!-- Made by `node dist/tools/config-doc.js`; a test holds it to the code. -->';
const END = '<!-- End of what is made. -->';

export function configSchema(): Json {
  return jsonSchema(SERVE_SHAPE, CONFIG_SCHEMA_TITLE, CONFIG_SCHEMA_DESCRIPTION);
}

/** The document with its table made anew. */
export function configDoc(text: string): string {
  const begin = text.indexOf(BEGIN);
  const end = text.indexOf(END);
  if (begin < 0 || end < begin) throw new Error(`${CONFIG_DOC} has lost its marks ${BEGIN} and ${END}`);
  return `${text.slice(0, begin)}${BEGIN}\n\n${fieldTable(SERVE_SHAPE)}\n\n${text.slice(end)}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(SCHEMA_FILE, `${JSON.stringify(configSchema(), null, 2)}\n`);
  writeFileSync(CONFIG_DOC, configDoc(readFileSync(CONFIG_DOC, 'utf8')));
}
