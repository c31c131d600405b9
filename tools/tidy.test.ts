/** Goal: the source keeps its own rules. Method: each check over the whole tree, and over one planted violation. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ERROR_TABLE } from '../src/base/errors.js';
import { functionsOf, importsOf, maskText, type SourceFile } from './source.js';
import * as tidy from './tidy.js';
import { AWAITED, LENGTH_EXCEPTIONS } from './tidy-exceptions.js';
import { compile, WASM_MODULES } from './wasm.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
process.chdir(ROOT);

function filesUnder(folder: string, ending: string): SourceFile[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name).split(sep).join('/'))
    .filter((path) => path.endsWith(ending) && !path.includes('node_modules/'))
    .sort()
    .map((path) => ({ path, text: readFileSync(path, 'utf8') }));
}

const generated = (path: string): boolean => path.endsWith('.wasm.ts') || path.endsWith('.data.ts');
const all = ['src', 'test', 'tools', 'bench'].flatMap((folder) => filesUnder(folder, '.ts'));
const written = all.filter(({ path }) => !generated(path));
const edges = tidy.edgesOf(written);
const file = (path: string, text: string): SourceFile => ({ path, text });
const none = (violations: readonly string[]): void => {
  if (violations.length > 0) throw new Error(`\n${violations.join('\n')}`);
};

test('the tree was found, and every import in it names a file', () => {
  assert.ok(all.length > 10, 'hardly any source was found');
  none(tidy.danglingImports(all, edges));
  assert.equal(tidy.danglingImports([], tidy.edgesOf([file('src/kv/a.ts', `import './b.js';`)])).length, 1);
});

test('imports follow the arrows', () => {
  none(tidy.wrongArrows(edges));
});

test('an import against the arrows is seen, types and all', () => {
  const wrong = (path: string, text: string): number => tidy.wrongArrows(tidy.edgesOf([file(path, text)])).length;
  assert.equal(wrong('src/base/a.ts', `import type { X } from '../kv/pool.js';`), 1);
  assert.equal(wrong('src/kv/a.ts', `export { x } from '../engine/run.js';`), 1);
  assert.equal(wrong('src/kv/a.ts', `const x = await import('../engine/run.js');`), 1);
  assert.equal(wrong('src/kv/a.ts', `import { x } from '../../tools/wasm.js';`), 1);
  assert.equal(wrong('src/kv/a.ts', `import { x } from './pool.test.js';`), 1);
  assert.equal(wrong('src/nowhere/a.ts', `import { x } from './b.js';`), 1);
  assert.equal(wrong('src/kv/a.ts', `import { x } from '../handoff/layout.js'; import fs from 'node:fs';`), 0);
  assert.equal(wrong('src/kv/a.test.ts', `import { x } from '../engine/run.js';`), 0);
});

test('no file imports itself, however long the way', () => {
  none(tidy.cycles(edges));
  const ring = [file('src/kv/a.ts', `import './b.js';`), file('src/kv/b.ts', `import type { A } from './a.js';`)];
  assert.deepEqual(tidy.cycles(tidy.edgesOf(ring)), ['src/kv/a.ts -> src/kv/b.ts -> src/kv/a.ts']);
});

test('every file is imported by somebody, or is an entry', () => {
  none(tidy.unimported(all, edges, true, AWAITED));
  const pair = [file('src/kv/a.ts', ''), file('src/kv/a.test.ts', `import './a.js';`), file('src/kv/b-worker.ts', '')];
  assert.deepEqual(tidy.unimported([file('src/kv/a.ts', '')], [], true, []), ['src/kv/a.ts: nobody imports it']);
  assert.deepEqual(tidy.unimported(pair, tidy.edgesOf(pair), true, []), []);
  assert.equal(tidy.unimported(pair, tidy.edgesOf(pair), true, ['src/kv/a.ts']).length, 1);
  assert.equal(tidy.unimported(pair, tidy.edgesOf(pair), false, []).length, 1);
});

test('time and chance come in through base, and only the command exits', () => {
  none(written.flatMap(tidy.bannedCalls));
});

for (const call of ['Date.now()', 'performance.now()', 'Math.random()', 'setTimeout(f, 1)', 'setInterval(f, 1)']) {
  test(`a call of ${call} outside base is seen, with its replacement`, () => {
    const [words] = tidy.bannedCalls(file('src/kv/a.ts', `\nconst x = ${call};`));
    assert.match(words ?? '', /^src\/kv\/a\.ts:2: `.*` is banned here, use .*(clock|Prng)/);
    assert.deepEqual(tidy.bannedCalls(file('src/base/a.ts', `const x = ${call};`)), []);
    assert.deepEqual(tidy.bannedCalls(file('src/kv/a.ts', `// ${call}\nconst x = '${call}';`)), []);
  });
}

test('the other ways to a timer or out of the process are seen, and look-alikes are not', () => {
  const count = (text: string, path = 'src/kv/a.ts'): number => tidy.bannedCalls(file(path, text)).length;
  assert.equal(count('setImmediate(f); process.hrtime.bigint(); globalThis.setTimeout(f);'), 3);
  assert.equal(count('items.map(setTimeout);'), 1);
  assert.equal(count(`import { setTimeout as wait } from 'node:timers/promises';`), 2);
  assert.equal(count('process.exit(1);'), 1);
  assert.equal(count('process.exit(1);', 'src/cli/main.ts'), 0);
  assert.equal(count('socket.setTimeout(5); process.exitCode = 1; ({ setTimeout: 1 });'), 0);
});

test('nothing is left over', () => {
  none(written.flatMap(tidy.leftovers));
  const left = (text: string): number => tidy.leftovers(file('src/kv/a.test.ts', text)).length;
  assert.equal(left(`// ${'FIX'.concat('ME')}: later`), 1);
  assert.equal(left(`test.${'only'}('x', f);`), 1);
  assert.equal(left(`it.${'skip'}('x', f);`), 1);
  assert.equal(left(`t.${'skip'}();`), 1);
  assert.equal(left(`test('x', { skip: ${String(true)} }, f);`), 1);
  assert.equal(left(`t.skip('no shared memory here'); test('x', { skip: 'why' }, f);`), 0);
});

test('functions and files stay short, or are listed with a reason', () => {
  none(tidy.lengths(written, LENGTH_EXCEPTIONS));
});

test('what is too long is seen, and so is an exception that nobody needs', () => {
  const long = file('src/kv/a.ts', `export function f(): void {\n${'  g();\n'.repeat(60)}}\n`);
  const reason = 'a table that reads best as one piece';
  assert.equal(tidy.lengths([long], []).length, 1);
  assert.equal(tidy.lengths([long], [{ path: long.path, function: 'f', reason }]).length, 0);
  assert.equal(tidy.lengths([long], [{ path: long.path, function: 'f', reason: '' }]).length, 1);
  assert.equal(tidy.lengths([], [{ path: long.path, function: 'f', reason }]).length, 1);
  assert.equal(tidy.lengths([file('src/kv/b.ts', 'x;\n'.repeat(401))], []).length, 1);
  assert.equal(tidy.lengths([file('src/kv/b.ts', 'x;\n'.repeat(400))], []).length, 0);
});

test('every error code is documented, and every documented code exists', () => {
  none(tidy.errorDocs(readFileSync('docs/ERRORS.md', 'utf8'), ERROR_TABLE));
  const table = { a: { status: 400, type: 'server_error' }, b: { status: 0, type: 'server_error' } } as const;
  assert.deepEqual(tidy.errorDocs('| `a` | 400 | w | h |\n| `b` | none | w | h |', table), []);
  assert.equal(tidy.errorDocs('| `a` | 400 | w | h |', table).length, 1);
  assert.equal(tidy.errorDocs('| `a` | 401 | w | h |\n| `b` | none | w | h |', table).length, 1);
  assert.equal(tidy.errorDocs('| `a` | 400 | w | h |\n| `b` | none | w | h |\n| `c` | 1 | w | h |', table).length, 1);
  assert.equal(tidy.errorDocs('| `a` | 400 | w | |\n| `b` | none | w | h |', table).length, 1);
});

test('documents name files that exist', () => {
  const documents = filesUnder('docs', '.md');
  if (existsSync('README.md')) documents.push(file('README.md', readFileSync('README.md', 'utf8')));
  none(documents.flatMap((document) => tidy.missingPaths(document, existsSync)));
  const seen = tidy.missingPaths(file('docs/A.md', 'see `src/kv/x.ts`, dist/src/cli/main.js and src/kv/'), existsSync);
  assert.deepEqual(seen, ['docs/A.md:1: names src/kv/x.ts, which does not exist']);
});

for (const module of WASM_MODULES) {
  const skip = existsSync(module.source) ? false : `${module.source} is not written yet`;
  test(`${module.target} is what ${module.source} compiles to`, { skip }, async () => {
    assert.ok(existsSync(module.target), `${module.target} is missing: npm run wasm`);
    const fresh = await compile(module);
    assert.ok(readFileSync(module.target, 'utf8') === fresh, `${module.target} is stale: npm run wasm`);
  });
}

test('comments, strings, templates and regular expressions are no code, and code within templates is', () => {
  const masked = maskText('a(`b $' + '{c("}")} d`); // e\nf(/g\\/[/"]h/, \'i\\\'j\'); k / l / m;');
  assert.equal(masked.replaceAll(/\s+/g, ' '), 'a(` $' + '{c(" ")} `); f(/ /, \' \'); k / l / m;');
});

test('imports of every form are found', () => {
  const text = [
    `import a, { b } from './a.js';`,
    `import type { C } from './c.js';`,
    `import './d.js';`,
    `export * from './e.js';`,
    `export const notAnImport = 'from';`,
    `const f = await import('./f.js');`,
    `const g = new URL('./g-worker.js', import.meta.url);`,
    `// import h from './h.js';`,
  ].join('\n');
  const found = importsOf(file('src/kv/x.ts', text));
  assert.equal(found.map(({ specifier }) => specifier.slice(2, 3)).join(''), 'acdefg');
  assert.deepEqual(
    found.filter(({ typeOnly }) => typeOnly).map(({ line }) => line),
    [2],
  );
});

test('functions of every form are found, and other braces are not', () => {
  const text = [
    'export function one(a: { x: number }): { y: number } {\n\n}',
    'class A<T> { two(): Map<string, { z: T }> {\n } }',
    'const three = async (a = {}): Promise<void> => {\n};',
    'if (a) { } for (;;) { } switch (x) { case f(1): { } }',
    'const four = (a ? (b) : { c: 1 });',
    'function five(x: unknown): x is Five {\n}',
    'const o = { six(this: void, ...a: number[]) {\n} };',
    'run(() => {\n});',
    'interface S { seven(a: number): void }',
  ].join('\n');
  const names = functionsOf(file('src/kv/x.ts', text)).map(({ name, lines }) => `${name}:${lines}`);
  assert.deepEqual(names, ['one:3', 'two:2', 'three:2', 'five:2', 'six:2', 'anonymous:2']);
});
