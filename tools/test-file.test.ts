/** Goal: nothing that did not pass is counted as passed. Method: files that fail in each way known, run for real. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { type Outcome, runTestFile } from './test-file.js';

const folder = mkdtempSync(join(tmpdir(), 'cofferdam-runner-'));
after(() => rmSync(folder, { recursive: true, force: true }));

async function run(name: string, body: string, timeoutMs = 20_000): Promise<Outcome> {
  const path = join(folder, `${name}.mjs`);
  writeFileSync(path, `import { test, describe } from 'node:test';\n${body}\n`);
  return runTestFile(path, name, folder, timeoutMs);
}

test('passed, failed and skipped tests are counted apart, and suites are not tests', async () => {
  const outcome = await run(
    'mixed',
    `test('good', () => {});
     test('bad', () => { throw new Error('the words of it'); });
     test('away', { skip: 'a reason' }, () => {});
     describe('a suite', () => { test('inside', () => {}); });`,
  );
  assert.equal(outcome.passed, 2);
  assert.deepEqual(outcome.skipped, [{ name: 'away', words: 'a reason' }]);
  assert.equal(outcome.failures.length, 1);
  assert.equal(outcome.failures[0]?.name, 'bad');
  assert.match(outcome.failures[0]?.words ?? '', /the words of it/);
});

const WAYS: readonly (readonly [string, string, RegExp])[] = [
  ['a file that throws before its first test', `throw new Error('at the top');`, /ran no test/],
  ['a file without a test', 'void test; void describe;', /ran no test/],
  [
    'a file that leaves early with exit code 0',
    `test('a', () => {}); test('b', () => process.exit(0));`,
    /no test|over/,
  ],
  ['a file that a signal ends', `test('a', () => process.kill(process.pid, 'SIGKILL'));`, /SIGKILL/],
  ['a suite that throws in its body', `describe('s', () => { throw new Error('boom'); });`, /boom/],
  ['an error thrown after the tests', `test('a', () => {}); process.on('exit', () => { process.exitCode = 3; });`, /3/],
];

for (const [name, body, words] of WAYS) {
  test(`${name} has failed`, async () => {
    const outcome = await run(name.replaceAll(' ', '-'), body);
    assert.ok(outcome.failures.length >= 1, 'nothing failed');
    assert.match(outcome.failures.map((failure) => failure.words).join('\n'), words);
  });
}

test('a file that does not end is killed with all it started, and has failed', async () => {
  const outcome = await run(
    'endless',
    `import { spawn } from 'node:child_process';
     test('a', () => { spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' }); });`,
    1500,
  );
  assert.match(outcome.failures[0]?.words ?? '', /did not end within 1.5 s/);
});
