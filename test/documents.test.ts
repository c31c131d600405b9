/** Goal: the map shows the country. Method: names behind arrows, the table of folders and the verbs are looked up in the code. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ARROWS } from '../tools/tidy.js';
import { runCommand } from './support/program.js';

const map = readFileSync('docs/ARCHITECTURE.md', 'utf8');
const readme = readFileSync('README.md', 'utf8');
const quoted = (text: string): string[] => Array.from(text.matchAll(/`([^`]+)`/g), (match) => match[1] ?? '');

/** Whether `text` declares `name`: as a function, class, constant, type, method or private member. */
function declares(text: string, name: string): boolean {
  const escaped = name.replaceAll('$', '\\$');
  const member = `^ {2}(?:static |async |readonly |get )*${escaped}[(<:]`;
  const top = `(?:function|class|const|interface|type) ${escaped}\\b`;
  return new RegExp(`${member}|${top}`, 'm').test(text);
}

test('every file and name behind an arrow of the map is in the code', () => {
  const lines = map.split('\n').filter((line) => line.startsWith('→ '));
  assert.ok(lines.length >= 30, `only ${lines.length} arrows`);
  for (const line of lines) {
    const [path, ...names] = quoted(line);
    assert.ok(path !== undefined && existsSync(path), `${line}: there is no such file`);
    assert.ok(names.length > 0, `${line}: names nothing`);
    const text = readFileSync(path, 'utf8');
    for (const name of names) assert.ok(declares(text, name), `${path} declares no \`${name}\``);
  }
});

test('a name that is only used, or not there, is seen', () => {
  const text = 'export class A {\n  #b(): void {\n    this.c();\n  }\n}\nexport const D = 1;\n';
  assert.deepEqual(
    ['A', '#b', 'D', 'c', 'E'].map((name) => declares(text, name)),
    [true, true, true, false, false],
  );
});

test('the table of folders has a row for each folder, with the arrows that the tidy test holds', () => {
  const rows = new Map<string, string>();
  for (const match of map.matchAll(/^\| `src\/(\w+)\/` \| .* \| (.*?) ?\|$/gm))
    rows.set(match[1] ?? '', match[2] ?? '');
  const folders = readdirSync('src', { withFileTypes: true }).filter((entry) => entry.isDirectory());
  assert.deepEqual([...rows.keys()].sort(), folders.map(({ name }) => name).sort());
  for (const [folder, cell] of rows) {
    const arrows = ARROWS[folder];
    if (arrows === 'everything') assert.equal(cell, 'everything');
    else assert.deepEqual(quoted(cell), arrows, folder);
  }
});

test('the readme has the two commands as they are, and a row for each verb', async () => {
  for (const command of ['npm ci && npm start', 'npm ci && npm test']) assert.ok(readme.includes(`\n${command}\n`));
  const { out } = await runCommand(['--help']);
  const verbs = Array.from(out.matchAll(/^ {2}(\w+) .*\[/gm), (match) => match[1] ?? '').filter(
    (verb) => verb !== 'help',
  );
  const rows = Array.from(readme.matchAll(/^\| `(\w+)` \| /gm), (match) => match[1]);
  assert.deepEqual(rows, verbs);
});

test('every guarantee names code that exists, and a test by its words', () => {
  const text = readFileSync('docs/ISOLATION.md', 'utf8');
  const code = Array.from(text.matchAll(/^- code: (.*)$/gm), (match) => match[1] ?? '').flatMap(quoted);
  assert.ok(code.length > 15);
  for (const file of code) assert.ok(existsSync(file), file);
  const tests = Array.from(text.matchAll(/^- test: `([^`]+)`: (.*)$/gm), ([, file, words]) => ({ file, words }));
  assert.ok(tests.length > 12);
  for (const { file, words } of tests)
    assert.ok(readFileSync(file ?? '', 'utf8').includes(words ?? ''), `${file}: ${words}`);
});
