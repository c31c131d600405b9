/** Goal: what `cofferdam replay` prints and exits with. Method: the verb with an io that remembers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FAULTS } from '../handoff/faults.js';
import { runProgram } from './program.js';

async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
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
  const code = await runProgram(['replay', ...args], io, { faultNames: () => Promise.resolve(FAULTS) });
  return { code, out, err };
}

const json = (text: string): Record<string, unknown> => JSON.parse(text) as Record<string, unknown>;

test('the list has one line a fault, with its public source', async () => {
  const { code, out } = await run('--list');
  assert.equal(code, 0);
  const lines = out.trimEnd().split('\n');
  assert.deepEqual(
    lines.map((line) => line.split(' ')[0]),
    [...FAULTS],
  );
  for (const line of lines) assert.match(line, /#\d+|CVE-|arXiv|v0\.5\.19/);
});

test('a fault that does not exist is wrong usage, and the error names those that do', async () => {
  const { code, out, err } = await run('rejected');
  assert.deepEqual([code, out], [2, '']);
  for (const fault of FAULTS) assert.ok(err.includes(fault));
});

test('without guards named a fault is shown with every guard off, then with every guard on', async () => {
  const { code, out } = await run('stale-handle');
  assert.equal(code, 0);
  assert.match(out, /every guard off\n.*KVC-.*LEAKED, as the catalogue says\.\n\n.*every guard on\n.*`policy`/s);
  assert.ok(out.split('\n\n').every((part) => part.split('\n').length <= 10));
  const both = JSON.parse((await run('stale-handle', '--output', 'json')).out) as { outcome: string }[];
  assert.deepEqual(
    both.map(({ outcome }) => outcome),
    ['leaked', 'refused'],
  );
});

test('one set of guards gives one JSON object, with every guard named', async () => {
  const { code, out } = await run('stale-handle', '--guards', 'off', '--output', 'json', '--seed', '3');
  assert.equal(code, 0);
  const result = json(out);
  assert.deepEqual(Object.keys(result), ['fault', 'source', 'guards', 'outcome', 'status', 'stoppedBy', 'evidence']);
  assert.deepEqual([result.outcome, result.status, result.stoppedBy], ['leaked', 200, null]);
  assert.equal(Object.values(result.guards as object).filter((state) => state === 'off').length, 11);
});

test('a guard that is off by name leaves the others on', async () => {
  const { code, out } = await run('stale-handle', '--guard-off', 'policy', '--output', 'json');
  assert.equal(code, 0);
  const result = json(out);
  assert.deepEqual([result.outcome, result.stoppedBy], ['refused', 'lease']);
  const off = Object.entries(result.guards as Record<string, string>).filter(([, state]) => state === 'off');
  assert.deepEqual(off, [['policy', 'off']]);
});

test('a fault whose guards are all off by name may do its harm: that is no finding', async () => {
  const { code, out } = await run('torn-write', '--guard-off', 'checksum');
  assert.equal(code, 0);
  assert.match(out, /guards off: checksum\n.*LEAKED\./s);
});
