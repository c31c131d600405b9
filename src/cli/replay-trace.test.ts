/** Goal: `verify --trace-out` and `replay --trace` fit each other, and say clearly what they cannot do. Method: both verbs, on files of the test's own. */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { FAULTS } from '../handoff/faults.js';
import { runProgram } from './program.js';

const folder = mkdtempSync(join(tmpdir(), 'cofferdam-replay-'));
const at = (name: string): string => join(folder, name);
after(() => rmSync(folder, { recursive: true }));

async function cofferdam(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ['', ''];
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
  const code = await runProgram(args, io, { faultNames: () => Promise.resolve(FAULTS) });
  return { code, out, err };
}

test('a counterexample is written, replayed with its guards off and on, and told in words and in JSON', async () => {
  const path = at('torn.jsonl');
  const verified = await cofferdam('verify', '--fault', 'torn-write', '--guards', 'off', '--trace-out', path);
  assert.deepEqual([verified.code, verified.err], [1, '']);
  const both = await cofferdam('replay', '--trace', path);
  assert.equal(both.code, 0, both.out + both.err);
  assert.match(
    both.out,
    /guards off: checksum\n[\s\S]*lands torn\n[\s\S]*only the header arrived\.\n[\s\S]*LEAKED, as `verify` says/,
  );
  assert.match(both.out, /every guard on\n[\s\S]*failed closed, as the guards promise\.\n$/);
  const one = await cofferdam('replay', '--trace', path, '--guard-off', 'tag', '--output', 'json');
  const [result] = JSON.parse(one.out) as { outcome: string; guards: Record<string, string>; isStopped: boolean }[];
  assert.deepEqual([one.code, result?.outcome, result?.isStopped], [0, 'failed-closed', true]);
  assert.deepEqual([result?.guards.tag, result?.guards.checksum], ['off', 'on']);
});

test('what is wrong with the flags or the file is said, with its exit code', async () => {
  const wrong: readonly (readonly [readonly string[], RegExp])[] = [
    [['replay', '--trace', at('nothing.jsonl')], /`--trace` to be a file .*ENOENT/],
    [
      ['replay', 'torn-write', '--trace', at('torn.jsonl')],
      /one of FAULT, `--list`, `--matrix` and `--trace`, got 2 of them/,
    ],
    [['verify', '--scope', 'small', '--trace-out', at('x.jsonl')], /`--trace-out` with `--fault`/],
    [['verify', '--fault', 'torn-write', '--trace-out', at('no/such/x.jsonl')], /`--trace-out` to be a file .*ENOENT/],
  ];
  for (const [args, words] of wrong) {
    const { code, err } = await cofferdam(...args);
    assert.equal(code, 2, args.join(' '));
    assert.match(err, words);
  }
  // With every guard on nothing breaks, and nothing is written over.
  const path = at('held.jsonl');
  const held = await cofferdam('verify', '--fault', 'stale-handle', '--guards', 'on', '--trace-out', path);
  assert.match(held.err, /nothing broke/);
  assert.ok(!existsSync(path) || readFileSync(path, 'utf8') === '');
  const restart = readFileSync(at('torn.jsonl'), 'utf8').replace('"do":"decodeAdmit"', '"do":"decodeRestart"');
  writeFileSync(at('restart.jsonl'), restart);
  const incomplete = await cofferdam('replay', '--trace', at('restart.jsonl'));
  assert.equal(incomplete.code, 3);
  assert.match(incomplete.err, /^incomplete: the engine cannot be driven through step 3 /);
});
