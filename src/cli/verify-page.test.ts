/** Goal: the page of `cofferdam verify` is written where it was asked for, and says the verdict. Method: the program; small scopes. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { FAULTS } from '../handoff/faults.js';
import type { PageData } from '../verify/page/walk.js';
import { runProgram } from './program.js';

async function verify(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const said: Record<'out' | 'err', string> = { out: '', err: '' };
  const say =
    (where: 'out' | 'err') =>
    (text: string): void => {
      said[where] += text;
    };
  const io = {
    out: say('out'),
    err: say('err'),
    variables: {},
    outIsTerminal: false,
  };
  const code = await runProgram(['verify', ...args], io, { faultNames: () => Promise.resolve(FAULTS) });
  return { code, ...said };
}

const dataOf = (page: string): PageData =>
  JSON.parse(/<script type="application\/json" id="data">([^<]*)<\/script>/.exec(page)?.[1] ?? '') as PageData;

test('a fault goes into a file, its counterexample first, and the exit code is that of its verdict', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cofferdam-page-'));
  try {
    const path = join(folder, 'page.html');
    const trace = join(folder, 'trace.jsonl');
    const { code, out } = await verify('--fault', 'stale-handle', '--output', `html=${path}`, '--trace-out', trace);
    assert.ok(readFileSync(trace, 'utf8').length > 0);
    assert.equal(code, 0);
    assert.match(out, /^stale-handle: caught\nthe page is in `[^`]*page\.html`, \d+ bytes\n$/);
    const { title, worlds } = dataOf(readFileSync(path, 'utf8'));
    assert.equal(title, 'stale-handle');
    assert.deepEqual(
      worlds.map(({ rules, path: steps }) => [rules, steps.length]),
      [
        ['stale-handle, guards off: policy, lease, tag', 5],
        ['stale-handle, every guard on', 0],
        ['no fault, every guard on', 0],
      ],
    );
    assert.match(worlds[0]?.found ?? '', /^noForeignRead is broken after 5 steps, and no shorter way leads there: /);
    assert.match(worlds[1]?.found ?? '', /^holds: [\d,]+ distinct states$/);
    assert.match(worlds[2]?.found ?? '', /^Not explored/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a scope goes to standard output, one world each, from its first state', async () => {
  const { code, out } = await verify('--scope', 'restarts', '--output', 'html');
  assert.equal(code, 0);
  assert.match(out, /^<!doctype html>\n/);
  const { title, worlds } = dataOf(out);
  assert.equal(title, 'the scope restarts');
  assert.deepEqual(
    worlds.map(({ path, end }) => [path, end]),
    [[[], null]],
  );
  const off = dataOf((await verify('--scope', 'restarts', '--guards', 'off', '--output', 'html')).out);
  assert.deepEqual([off.worlds[0]?.rules, off.worlds[0]?.scope.rules.guards], ['no fault, every guard off', 0]);
});

const USAGE: readonly (readonly [readonly string[], RegExp])[] = [
  [['--output', 'html='], /Expected `--output` to be .*`html=FILE`, got `html=`/],
  [
    ['--output', 'html=/nowhere/at/all'],
    /Expected `--output html=FILE` to name a file that can be written, got .*ENOENT/,
  ],
  [['--all-faults', '--output', 'html'], /Expected `--output html` with `--fault` or a scope alone/],
  [['--fault', 'torn-write', '--guards', 'off', '--output', 'html'], /Expected a page of both sides of a fault/],
];

for (const [args, words] of USAGE) {
  test(`\`verify ${args.join(' ')}\` is wrong usage: exit code 2`, async () => {
    const { code, out, err } = await verify(...args);
    assert.deepEqual([code, out], [2, '']);
    assert.match(err, words);
  });
}
