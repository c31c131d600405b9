// Goal: what a killed process leaves behind is gone with the next start, and nothing else is. Method: folders by hand, and a process that is over.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeFreshKeys, removeLeftKeys, writeKeysFile } from './fresh-keys.js';

test('the keys file of a process that is gone is removed; one of a living process, and other folders, stay', () => {
  const root = mkdtempSync(join(tmpdir(), 'cofferdam-test-'));
  try {
    const { pid } = spawnSync(process.execPath, ['--version']);
    const [left, living, other] = [`cofferdam-keys-${pid}-aB3xYz`, `cofferdam-keys-${process.pid}-aB3xYz`, 'else'].map(
      (name) => join(root, name),
    ) as [string, string, string];
    for (const folder of [left, living, other]) mkdirSync(folder);
    writeFileSync(join(left, 'keys'), 'acme=gone\n');
    assert.equal(removeLeftKeys(root), 1);
    assert.deepEqual(
      [left, living, other].map((folder) => existsSync(folder)),
      [false, true, true],
    );
    assert.equal(removeLeftKeys(root), 0);
  } finally {
    rmSync(root, { recursive: true });
  }
});

test('a keys file is readable by its owner alone, and goes when it is told to', () => {
  const { keys } = makeFreshKeys();
  const file = writeKeysFile(keys);
  assert.equal(statSync(file.path).mode & 0o777, 0o600);
  assert.equal(readFileSync(file.path, 'utf8').split('\n').length, keys.size + 1);
  file.remove();
  assert.equal(existsSync(file.path), false);
});
