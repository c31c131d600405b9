/** Goal: verdicts, exit codes and the shape of `cofferdam verify`. Method: the program with an io that remembers; small scopes. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { FAULTS } from '../handoff/faults.js';
import { runProgram } from './program.js';

async function verify(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let out = '';
  let err = '';
  const io = {
    out: (text: string): void => {
      out += text;
    },
    err: (text: string): void => {
      err += text;
    },
    variables: {},
    outIsTerminal: false,
  };
  const code = await runProgram(['verify', ...args], io, { faultNames: () => Promise.resolve(FAULTS) });
  return { code, out, err };
}

test('a scope that holds says so with its bounds, its coverage and what was seen; exit code 0', async () => {
  const { code, out } = await verify('--scope', 'alone');
  assert.equal(code, 0);
  assert.match(out, /^scope alone: one request of two chunks/);
  assert.match(out, /12,241 distinct states, 40,648 generated, depth 21/);
  assert.match(out, /1 client that leaves; 1 message lost; 1 prefill that gives up/);
  assert.match(out, /actions: deliver [\d,]+, lose/);
  assert.match(out, /seen: a request streams \(after \d+\)/);
  assert.match(out, /a fingerprint collision has a probability of/);
  assert.match(out, /\nholds: /);
});

test('a fault is told with its counterexample, as a diagram and in words; caught is exit code 0', async () => {
  const { code, out } = await verify('--fault', 'silent-abort');
  assert.equal(code, 0);
  assert.match(out, /noForeignRead is broken after 10 steps/);
  assert.match(out, /page \d of decode was leased to A at step \d+/);
  assert.match(out, /step +client +gateway +prefill +decode +prefill +decode/);
  assert.match(out, /\nsilent-abort: caught\n$/);
});

test('one side of a fault is a run of its own: with its guards off a violation is exit code 1', async () => {
  const off = await verify('--fault', 'stale-handle', '--guards', 'off');
  assert.deepEqual([off.code, off.out.endsWith('violated.\n')], [1, true]);
  const on = await verify('--fault', 'stale-handle', '--guards', 'on');
  assert.deepEqual([on.code, on.out.includes('holds: ')], [0, true]);
});

test('JSON has exactly the fields that are documented', async () => {
  const { code, out } = await verify('--fault', 'rejected-stays-alive', '--output', 'json');
  const parsed = JSON.parse(out) as Record<string, unknown> & { faults: Record<string, unknown>[] };
  assert.equal(code, 0);
  assert.deepEqual(Object.keys(parsed), ['scope', 'verdict', 'distinct', 'generated', 'depth', 'rate', 'faults']);
  assert.deepEqual(
    [parsed.scope, parsed.verdict, parsed.distinct, parsed.generated, parsed.depth],
    ['oversized', 'holds', 691, 1651, 20],
  );
  assert.deepEqual(parsed.faults, [
    { fault: 'rejected-stays-alive', verdict: 'caught', invariant: 'noForeignRead', depth: 11, states: 596 },
  ]);
});

test('a bound of memory that is too small makes the run incomplete: exit code 3', async () => {
  const { code, out } = await verify('--scope', 'alone', '--memory', '1M');
  assert.equal(code, 3);
  assert.match(out, /incomplete .*the bound of 1048576 bytes was reached/);
});

const USAGE: readonly (readonly [readonly string[], RegExp])[] = [
  [['--scope', 'huge'], /Expected `--scope` to be one of small, default, .*, got `huge`/],
  [['--fault', 'rain'], /Expected `--fault` to be one of rejected-stays-alive, .*, got `rain`/],
  [['--memory', 'lots'], /Expected `--memory` to be from 1M to 64G, got `lots`/],
  [['--guards', 'some'], /Expected `--guards` to be `on` or `off`, got `some`/],
  [['--all-faults', '--guards', 'off'], /Expected `--guards` with `--fault` or a scope alone/],
  [['--all-faults', '--trace', 'x'], /Expected one of `--fault`, `--all-faults` and `--trace`/],
  [['--trace', 'x', '--scope', 'small'], /Expected `--trace` without `--scope`, got both/],
  [['--trace', 'x', '--symmetry'], /Expected `--trace` without `--symmetry`, got both/],
  [['--output', 'xml'], /Expected `--output` to be `table`, `json`, .*, got `xml`/],
  [
    ['--trace', '/nowhere/at/all'],
    /Expected `--trace` to be a file that can be read, got `\/nowhere\/at\/all` \(ENOENT\)/,
  ],
];

for (const [args, words] of USAGE) {
  test(`\`verify ${args.join(' ')}\` is wrong usage: exit code 2`, async () => {
    const { code, out, err } = await verify(...args);
    assert.deepEqual([code, out], [2, '']);
    assert.match(err, words);
  });
}

const HEAD = '{"trace":"cofferdam-handoff","version":1}';
const LIFE = '{"n":1,"actor":"gateway","life":1,"peer":1,"slots":1}';
const GONE = '{"n":2,"actor":"gateway","event":"clientGone","effects":[]}';
const STARTED = '{"n":2,"actor":"gateway","event":"started","attempt":1,"from":1,"effects":[]}';
const END = '{"end":true,"records":2}';

const TRACES: readonly (readonly [string, readonly string[], number, RegExp])[] = [
  ['that conforms', [HEAD, LIFE, GONE, END], 0, /^holds; 1 steps conform/],
  ['that is cut', [HEAD, LIFE, GONE], 3, /^incomplete: the trace is cut, its last line is missing; 1 steps conform/],
  [
    'in which nothing happens',
    [HEAD, LIFE, END.replace('2', '1')],
    3,
    /^incomplete: no step was taken in it; 0 steps conform/,
  ],
  ['with an unexplained message', [HEAD, LIFE, STARTED, END], 1, /^violated: no allowed order explains record 2: /],
];

for (const [what, lines, wanted, words] of TRACES) {
  test(`a trace ${what}: exit code ${wanted}`, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'cofferdam-trace-'));
    try {
      const path = join(folder, 'run.jsonl');
      writeFileSync(path, `${lines.join('\n')}\n`);
      const { code, out } = await verify('--trace', path);
      assert.equal(code, wanted);
      assert.match(out, words);
      const json = JSON.parse((await verify('--trace', path, '--output', 'json')).out) as Record<string, unknown>;
      assert.deepEqual(Object.keys(json), ['trace', 'verdict', 'explained', 'deviation']);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
}

test('a trace of another version is wrong usage: exit code 2', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cofferdam-trace-'));
  try {
    const path = join(folder, 'run.jsonl');
    writeFileSync(path, `${HEAD.replace('1}', '9}')}\n`);
    const { code, err } = await verify('--trace', path);
    assert.equal(code, 2);
    assert.match(err, /line 1 of the trace to be of version 1, got `9`/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
