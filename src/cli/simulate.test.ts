/** Goal: `cofferdam verify --simulate` from its flags to its output. Method: the program with an io that remembers; small worlds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FAULTS } from '../handoff/faults.js';
import { runProgram } from './program.js';

async function simulate(...args: string[]): Promise<{ code: number; out: string; err: string }> {
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

test('one seed gives one world, its counts and its hash, the same twice; exit code 0', async () => {
  const args = ['--simulate', '--seed', '5', '--steps', '2000', '--output', 'json'] as const;
  const [one, two] = [await simulate(...args), await simulate(...args)];
  assert.equal(one.code, 0);
  const [report, again] = [JSON.parse(one.out), JSON.parse(two.out)];
  assert.equal(report.verdict, 'holds');
  assert.match(report.runs[0].trace, /^[0-9a-f]{16}$/);
  assert.equal(report.runs[0].trace, again.runs[0].trace);
  assert.deepEqual(report.runs[0].counts, again.runs[0].counts);
  const { out, err } = await simulate('--simulate', '--seed', '5', '--steps', '2000', '--output', 'trace');
  assert.equal(JSON.parse(out.split('\n')[0] ?? '').do, 'world');
  assert.equal(err, `holds; trace ${report.runs[0].trace}\n`);
});

test('a fault is caught: found with its guards off, shrunk, told with the line that replays it; nothing with them on', async () => {
  const { code, out } = await simulate('--simulate', '--seed', '258', '--fault', 'rejected-stays-alive');
  assert.equal(code, 0);
  assert.match(out, /\ncaught\n$/);
  assert.match(out, /noForeignRead: token \d+ of request \d+/);
  const line = /cofferdam (verify --simulate .*)\n/.exec(out)?.[1] ?? '';
  const replayed = await simulate(...line.split(' ').slice(1));
  assert.equal(replayed.code, 1);
  assert.match(replayed.out, /noForeignRead/);
});

test('fresh seeds run on threads for the time asked, and the first seed is printed', async () => {
  const { code, out } = await simulate('--simulate', '--duration', '300ms', '--steps', '1000');
  assert.equal(code, 0);
  assert.match(out, /^seed \d+ and on, every guard on: \d+ worlds, [\d,]+ requests in [\d.]+ s/);
});

const WRONG: readonly (readonly [string, RegExp])[] = [
  ['--simulate --seed x', /`--seed` to be a whole number from 0 to 4294967295, got `x`/],
  ['--simulate --seed 4294967296', /`--seed` to be a whole number/],
  ['--simulate --steps 0', /`--steps` to be a whole number from 1/],
  ['--simulate --requests 1.5', /`--requests` to be a whole number from 1/],
  ['--simulate --duration 5', /`--duration` to be a time from 1ms to 24h/],
  ['--simulate --duration 99h', /`--duration` to be a time from 1ms to 24h/],
  ['--simulate --fault nope', /`--fault` to be one of rejected-stays-alive/],
  ['--simulate --guards half', /`--guards` to be `on` or `off`/],
  ['--simulate --without loss,rain', /`--without` to be some of loss, repeats/],
  ['--simulate --output xml', /`--output` to be `table`, `json` or `trace`/],
  ['--simulate --output trace', /`--output trace` with `--seed`/],
  ['--simulate --seed 1 --fault torn-write --output trace', /`--output trace` with `--guards/],
  ['--simulate --scope small', /`--simulate` without `--scope`/],
  ['--simulate --trace-out x', /`--simulate` without `--trace-out`/],
  ['--simulate --all-faults', /`--simulate` without `--all-faults`/],
  ['--seed 1', /`--seed` with `--simulate`/],
  ['--without loss', /`--without` with `--simulate`/],
];

test('what is asked wrongly is told, and nothing runs; exit code 2', async () => {
  for (const [line, words] of WRONG) {
    const { code, out, err } = await simulate(...line.split(' '));
    assert.deepEqual([line, code, out], [line, 2, '']);
    assert.match(err, words);
  }
});
