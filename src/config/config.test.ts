/**
 * Goal: a file is read as it stands or refused in words with places, and its description says everywhere the same. Method: a small
 * description by example, and the schema held to the check over the same values.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { stringify } from 'yaml';
import { type Checked, checkTree } from './check.js';
import { exampleOf } from './example.js';
import { type Json, jsonSchema } from './json-schema.js';
import { MISTAKES_SHOWN_MAX, mistakeLines } from './mistake.js';
import { nearest } from './nearest.js';
import { flagProperty, leavesOf } from './settings.js';
import { countText, fieldsOf, parseTime, type RecordShape, timeText } from './shape.js';
import { fieldTable } from './table.js';
import { FILE_BYTES_MAX, readTree } from './tree.js';

const SMALL: RecordShape = {
  kind: 'record',
  fields: [
    {
      name: 'inner',
      words: 'What is inside',
      live: true,
      shape: {
        kind: 'record',
        fields: [
          { name: 'size', words: 'How large', default: 4096, shape: count(1, 8192, true) },
          { name: 'wait', words: 'How long', default: 30_000, shape: { kind: 'time', minMs: 100, maxMs: 60_000 } },
        ],
      },
    },
    { name: 'port', words: 'Where', default: 80, flag: '--port', shape: count(0, 65_535, false) },
    { name: 'page', words: 'A page', default: 16, shape: { ...count(8, 256, false), powerOfTwo: true } },
    { name: 'mode', words: 'Which', default: 'fast', shape: { kind: 'choice', of: ['fast', 'slow'] } },
    { name: 'loud', words: 'Whether', default: false, shape: { kind: 'switch' } },
    { name: 'key', words: 'A key', shape: { kind: 'secret' }, example: ['key: env:KEY'] },
    {
      name: 'rows',
      words: 'Some rows',
      shape: {
        kind: 'list',
        min: 0,
        max: 2,
        item: {
          kind: 'record',
          fields: [
            {
              name: 'name',
              words: 'Its name',
              required: true,
              shape: { kind: 'text', pattern: '[a-z]{1,5}', words: 'up to five of a-z' },
            },
          ],
        },
      },
      example: ['rows: []'],
    },
    {
      name: 'backs',
      words: 'What is behind',
      default: [{ kind: 'one' }],
      shape: {
        kind: 'list',
        min: 1,
        max: 1,
        item: {
          kind: 'tagged',
          tag: 'kind',
          variants: {
            one: {
              kind: 'record',
              fields: [
                {
                  name: 'kind',
                  words: 'Which kind',
                  required: true,
                  default: 'one',
                  shape: { kind: 'choice', of: ['one'] },
                },
                { name: 'size', words: 'How large', default: 5, shape: count(1, 9, false) },
              ],
            },
            two: {
              kind: 'record',
              fields: [
                { name: 'kind', words: 'Which kind', required: true, shape: { kind: 'choice', of: ['two'] } },
                { name: 'size', words: 'How large', default: 5, shape: count(1, 9, false) },
                { name: 'word', words: 'A secret', shape: { kind: 'secret', whole: true } },
              ],
            },
          },
        },
      },
    },
  ],
};

function count(
  min: number,
  max: number,
  suffixes: boolean,
): { kind: 'count'; min: number; max: number; unit: string; suffixes: boolean } {
  return { kind: 'count', min, max, unit: '', suffixes };
}

function check(text: string | Uint8Array): Checked {
  const { tree, mistakes } = readTree(typeof text === 'string' ? Buffer.from(text) : text);
  return tree === null ? { value: {}, places: new Map(), mistakes } : checkTree(tree, SMALL);
}

const lines = (text: string | Uint8Array): string[] => mistakeLines('f', check(text).mistakes);

test('what fits comes in its normal form, with the place of each value', () => {
  const { value, places, mistakes } = check(
    'inner:\n  size: 2k\n  wait: 5s\nloud: true\nrows:\n  - name: abc\nbacks: [{kind: one}]\n',
  );
  assert.deepEqual(mistakes, []);
  assert.deepEqual(value, {
    inner: { size: 2048, wait: 5000 },
    loud: true,
    rows: [{ name: 'abc' }],
    backs: [{ kind: 'one' }],
  });
  assert.deepEqual(places.get('rows[0].name'), { line: 6, column: 11 });
  assert.deepEqual(
    check('inner:\nrows:\nport: 1').mistakes,
    [],
    'a heading without anything below it means nothing wrong',
  );
});

const WRONG: readonly (readonly [what: string, text: string, words: RegExp])[] = [
  [
    'a text for a number',
    'port: "80"',
    /^f:1:7: Expected `port` to be a whole number from 0 to 65535, got the text `80`\. Write/,
  ],
  ['a number out of bounds', 'port: 65536', /^f:1:7: .* got `65536`/],
  ['a fraction', 'port: 1.5', /^f:1:7: .* got `1\.5`/],
  ['a number beyond what is exact', 'inner: {size: 99999999999999999999}', /^f:1:15: /],
  ['a suffix where there is none', 'port: 8k', /^f:1:7: /],
  ['no power of two', 'page: 24', /^f:1:7: Expected `page` to be a power of two from 8 to 256, got `24`/],
  ['a time without a unit', 'inner: {wait: 30}', /^f:1:15: .* a time from 100ms to 1m, got `30`\. .*`30s`/],
  ['a word for a switch', 'loud: yes', /^f:1:7: Expected `loud` to be `true` or `false`, got the text `yes`/],
  ['another word', 'mode: fats', /^f:1:7: .* got the text `fats`\. Did you mean `fast`\?/],
  ['nothing', 'mode:', /^f:1:6: Expected `mode` to be .* got nothing/],
  [
    'a list for a mapping',
    'inner: [1]',
    /^f:1:8: Expected `inner` to be a mapping .* got a list\. Known here: `size`, `wait`\.$/,
  ],
  ['a mapping for a list', 'rows: {name: a}', /^f:1:7: Expected `rows` to be a list of at most 2, got a mapping/],
  ['too many', 'rows: [{name: a}, {name: b}, {name: c}]', /^f:1:7: .* at most 2, got 3/],
  [
    'an unknown name',
    'inner:\n  siez: 1',
    /^f:2:3: Expected only known names in `inner`, got `siez`\. Did you mean `size`\?/,
  ],
  ['a name twice', 'port: 1\nport: 2', /^f:2:1: Expected `port` once, got it again; the first is in line 1/],
  [
    'a needed name that is missing',
    'rows:\n  - {}',
    /^f:2:5: Expected `rows\[0\]\.name` to be .* got nothing\. Add `name:` here/,
  ],
  [
    'an unknown kind',
    'backs: [{kind: six}]',
    /^f:1:16: Expected `backs\[0\]\.kind` to be one of `one`, `two`, got the text `six`\. Known here: `one`, `two`/,
  ],
  ['no kind', 'backs: [{size: 1}]', /^f:1:9: Expected `backs\[0\]\.kind` .* got nothing/],
  ['the name of what every object has', 'backs: [{kind: constructor}]', /^f:1:16: Expected `backs\[0\]\.kind`/],
  ['a name that every object has', '__proto__: {a: 1}', /^f:1:1: Expected only known names, got `__proto__`/],
  ['a tab', 'inner:\n\tsize: 1', /^f:2:1: Expected blanks at the beginning of a line, got a tab/],
  ['an alias', 'inner: {size: *x}', /^f:1:15: Expected values that are written out, got an alias/],
  ['an anchor', 'port: &x 1', /^f:1:\d+: Expected values that are written out, got an anchor/],
  ['a tag', 'port: !!int 1', /^f:1:\d+: Expected a value without a tag, got a tag/],
  ['a tag nobody knows', 'port: !run 1', /^f:1:\d+: Expected a value without a tag, got a tag/],
  ['a second document', 'port: 1\n---\nport: 2', /^f:2:1: Expected one document, got a second one/],
  ['a quote that is left open', 'mode: "fast', /^f:1:\d+: Expected a closing quote/],
  ['a list at the top', '- a', /^f:1:1: Expected the file to be a mapping .* got a list/],
  ['a name that is no text', '? [a]\n: 1', /^f:1:\d+: Expected a plain name before the colon/],
  ['an empty file', '', /^f:1:1: Expected a configuration, got an empty file\. .*`cofferdam init`/],
  ['comments only', '# port: 1\n\n', /^f:1:1: Expected a configuration, got an empty file/],
  ['brackets without end', `port: ${'['.repeat(50_000)}`, /^f:1:57: Expected at most 50 open brackets/],
  [
    'levels without end',
    Array.from({ length: 400 }, (_, i) => `${' '.repeat(i)}a:`).join('\n'),
    /^f:\d+:\d+: Expected at most 20 levels/,
  ],
];

for (const [what, text, words] of WRONG) {
  test(`${what} is refused in words, with line and column`, () => {
    const [first = '', ...more] = lines(text);
    assert.match(first, words);
    for (const each of [first, ...more]) assert.match(each, /^f:\d+:\d+: Expected .+, got .+\. .+[.?]$/);
  });
}

test('a bomb of aliases is refused where it stands, and grows nothing', () => {
  const bomb = ['a: &a [x, x]', ...Array.from({ length: 30 }, (_, i) => `b${i}: &b${i} [*a, *a]`)].join('\n');
  const said = lines(bomb);
  assert.ok(said.length > MISTAKES_SHOWN_MAX / 2 && said.length <= MISTAKES_SHOWN_MAX + 1);
  assert.ok(said.some((line) => line.includes('got an alias')));
});

test('bytes that are no UTF-8 are refused at their place, and a mark at the beginning is none of them', () => {
  assert.match(lines(Buffer.from('port: 1\nmode: "f\xe9"', 'latin1'))[0] ?? '', /^f:2:9: Expected text in UTF-8/);
  assert.match(lines(Buffer.from('\ufeffport: 1', 'utf16le'))[0] ?? '', /^f:1:1: Expected text in UTF-8/);
  assert.deepEqual(lines('\ufeffport: 1'), []);
  assert.match(lines(Buffer.alloc(FILE_BYTES_MAX + 1, '#'))[0] ?? '', /at most 262144 bytes/);
});

test('every mistake of a file is said, in the order of the file, within a bound', () => {
  const said = lines('mode: x\nport: -1\nrows:\n  - name: "1"\n  - nmae: a\n');
  assert.deepEqual(
    said.map((line) => /^f:(\d+)/.exec(line)?.[1]),
    ['1', '2', '4', '5', '5'],
  );
  const many = lines(Array.from({ length: 200 }, (_, index) => `x${index}: 1`).join('\n'));
  assert.equal(many.length, MISTAKES_SHOWN_MAX + 1);
  assert.match(many.at(-1) ?? '', /and 150 more mistakes/);
});

test('what may be a key is in no message, wherever it stands', () => {
  for (const text of [
    'key: sk-0123',
    'key: [sk-0123]',
    'key: {a: sk-0123}',
    'rows: sk-0123',
    'inner: sk-0123',
    'key: "sk-0123',
    'key: env:sk-0123',
  ]) {
    const said = lines(text).join('\n');
    assert.match(said, /Expected/, text);
    assert.ok(!said.includes('sk-0123'), said);
  }
});

test('any text at all is read or refused, and never more than that', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: 'binary', maxLength: 200 }),
        fc.json().map((json) => stringify(JSON.parse(json))),
      ),
      (text) => {
        for (const line of lines(text)) assert.match(line, /^f:\d+:\d+: Expected |^f: and \d+ more/s);
      },
    ),
    { numRuns: 300 },
  );
});

test('the nearest name is found for a slip, and none for another word', () => {
  const known = ['host', 'port', 'open-per-tenant'];
  assert.deepEqual(
    ['prot', 'Port', 'open_per_tenants', 'zzz', ''].map((name) => nearest(name, known)),
    ['port', 'port', 'open-per-tenant', null, null],
  );
});

test('times and counts are written as they are read', () => {
  for (const ms of [0, 1, 500, 1000, 90_000, 3_600_000]) assert.equal(parseTime(timeText(ms)), ms);
  assert.deepEqual(['30', '1d', '-1s', '1.5s', ''].map(parseTime), [null, null, null, null, null]);
  assert.deepEqual(
    [4096, 1000, 8_388_608, 0].map((value) => countText(value, true)),
    ['4k', '1000', '8M', '0'],
  );
});

test('the example holds every field, is fine itself, and says the defaults', () => {
  const text = exampleOf(SMALL, ['head']);
  const { value, mistakes } = check(text);
  assert.deepEqual(mistakes, []);
  for (const leaf of leavesOf(SMALL, value)) {
    if (leaf.given) assert.deepEqual(leaf.value, leaf.field.default, leaf.path);
    else assert.match(text, new RegExp(`^ *# ${leaf.field.name}:`, 'm'), leaf.path);
  }
});

test('leaves say what holds, and whether a reload applies it', () => {
  const leaves = leavesOf(SMALL, { port: 9 });
  const of = (path: string): unknown[] =>
    leaves.filter((leaf) => leaf.path === path).map(({ live, given, value }) => [live, given, value]);
  assert.deepEqual(
    [of('port'), of('inner.size'), of('backs[0].size'), of('key')],
    [[[false, true, 9]], [[true, false, 4096]], [[false, false, 5]], [[false, false, undefined]]],
  );
  assert.deepEqual(['--ops-port', '--no-prefix-cache'].map(flagProperty), ['opsPort', 'prefixCache']);
});

test('the table has a row for every field that takes a value', () => {
  const rows = fieldTable(SMALL).split('\n').slice(2);
  const named = fieldsOf(SMALL).filter(({ field }) => field.shape.kind !== 'record');
  assert.equal(rows.length, new Set(named.map(({ path }) => path)).size, 'kinds that share a field share its row');
  assert.match(rows.find((row) => row.includes('backs[].kind')) ?? '', /\| `one` or `two` \|.*\| Which kind \|$/);
  assert.match(rows.find((row) => row.includes('backs[].size')) ?? '', /\| How large \|$/);
  assert.match(
    rows.find((row) => row.includes('backs[].word')) ?? '',
    /`env:NAME` or `file:PATH`.*\| A secret \(`two`\) \|$/,
  );
  assert.match(rows[0] ?? '', /^\| `inner\.size` \| .* \| `4k` \| {2}\| at once \| How large \|$/);
});

/** What is used of JSON Schema, evaluated: enough to see whether a value fits. */
function fits(schema: Json, value: unknown): boolean {
  const rules = schema as Readonly<Record<string, Json>>;
  const types = rules.type === undefined ? null : ([rules.type].flat() as string[]);
  const type =
    value === null ? 'null' : Array.isArray(value) ? 'array' : Number.isInteger(value) ? 'integer' : typeof value;
  if (types !== null && !types.includes(type)) return false;
  if (rules.enum !== undefined && !(rules.enum as Json[]).includes(value as Json)) return false;
  if (rules.oneOf !== undefined) return (rules.oneOf as Json[]).filter((each) => fits(each, value)).length === 1;
  if (rules.const !== undefined && rules.const !== value) return false;
  if (rules.anyOf !== undefined && !(rules.anyOf as Json[]).some((each) => fits(each, value))) return false;
  if (typeof value === 'number' && (value < Number(rules.minimum ?? value) || value > Number(rules.maximum ?? value)))
    return false;
  if (typeof value === 'string' && rules.pattern !== undefined && !new RegExp(rules.pattern as string, 'u').test(value))
    return false;
  if (Array.isArray(value)) {
    if (value.length < Number(rules.minItems ?? 0) || value.length > Number(rules.maxItems ?? 1e9)) return false;
    return value.every((each) => fits(rules.items ?? {}, each));
  }
  if (type !== 'object') return true;
  const properties = (rules.properties ?? {}) as Readonly<Record<string, Json>>;
  const needed = (rules.required ?? []) as readonly string[];
  const own = Object.entries(value as object);
  return (
    needed.every((name) => own.some(([each]) => each === name)) &&
    own.every(([name, each]) => Object.hasOwn(properties, name) && fits(properties[name]!, each))
  );
}

test('an editor that has the schema accepts and refuses what the check does', () => {
  const schema = jsonSchema(SMALL, 't', 'd');
  const samples: readonly unknown[] = [
    { port: 1 },
    { port: '1' },
    { port: -1 },
    { port: 1.5 },
    { prt: 1 },
    { inner: null },
    { backs: [{ kind: 'two', size: 9, word: 'env:A' }] },
    { backs: [{ kind: 'two', word: `sha256:${'a'.repeat(64)}` }] },
    { backs: [{ kind: 'one', word: 'env:A' }] },
    { inner: { size: '4k' } },
    { inner: { size: 9000 } },
    { inner: { size: 'x' } },
    { inner: { wait: '5s' } },
    { inner: { wait: 5 } },
    { inner: [] },
    { page: 16 },
    { page: 24 },
    { mode: 'slow' },
    { mode: 'no' },
    { mode: null },
    { loud: true },
    { loud: 'true' },
    { key: 'env:A' },
    { key: 'literal' },
    { key: 'sha256:12' },
    { rows: [] },
    { rows: null },
    { rows: [{ name: 'a' }] },
    { rows: [{}] },
    { rows: [{ name: 'A' }] },
    { rows: [{ name: 'a' }, { name: 'b' }, { name: 'c' }] },
    { rows: ['a'] },
    { backs: [{ kind: 'one', size: 9 }] },
    { backs: [{ kind: 'two' }] },
    { backs: [{ size: 1 }] },
    { backs: [] },
    { backs: {} },
  ];
  for (const sample of samples) {
    const said = lines(stringify(sample));
    assert.equal(fits(schema, sample), said.length === 0, `${JSON.stringify(sample)}: ${said.join('\n')}`);
  }
});
