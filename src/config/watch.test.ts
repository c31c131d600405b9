/** Goal: a file is read within bounds, and a change of it is seen once and whole. Method: real files, and a clock that moves when told. */
import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ManualClock, SystemClock, sleep } from '../base/clock.js';
import { readSmallFile } from './file.js';
import { FileWatch, LOOK_EVERY_MS } from './watch.js';

test('only a file is read, within its bound, and a pipe holds nothing up', () => {
  const folder = mkdtempSync(join(tmpdir(), 'cofferdam-config-'));
  try {
    writeFileSync(join(folder, 'a'), 'abc');
    assert.deepEqual(readSmallFile(join(folder, 'a'), 3), Buffer.from('abc'));
    assert.equal(readSmallFile(join(folder, 'a'), 2), '3 bytes');
    assert.equal(readSmallFile(folder, 9), 'a folder');
    assert.equal(readSmallFile(join(folder, 'b'), 9), 'none');
    assert.equal(readSmallFile('/dev/zero', 9), 'something that is no file');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a change is taken when two looks saw the same, once, and nothing is after the stop', async () => {
  const clock = new ManualClock();
  let holds = 'a';
  let changes = 0;
  const watch = new FileWatch({ clock, paths: () => ['f'], digestOf: async () => holds, changed: () => changes++ });
  const look = async (): Promise<number> => {
    clock.advance(LOOK_EVERY_MS);
    await new Promise<void>((resolve) => new SystemClock().soon(resolve));
    return changes;
  };
  assert.deepEqual([await look(), await look(), await look()], [0, 1, 1], 'the beginning is one change');
  holds = 'half';
  assert.equal(await look(), 1);
  holds = 'whole';
  assert.deepEqual([await look(), await look(), await look()], [1, 2, 2]);
  watch.stop();
  holds = 'more';
  assert.deepEqual([await look(), await look()], [2, 2]);
  assert.equal(clock.waiting, 0);
});

test('a file that is written within one tick of its clock, or replaced, or gone, has changed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cofferdam-watch-'));
  const path = join(folder, 'a');
  const clock = new ManualClock();
  const real = new SystemClock();
  let changes = 0;
  writeFileSync(path, 'one');
  utimesSync(path, 0, 0);
  const watch = new FileWatch({ clock, paths: () => [path], changed: () => changes++ });
  // A look goes through the file system, which takes as long as it takes: the next timer stands when it is over.
  const look = async (): Promise<void> => {
    clock.advance(LOOK_EVERY_MS);
    while (clock.waiting === 0) await sleep(real, 1);
  };
  const settle = async (): Promise<number> => {
    await look();
    await look();
    return changes;
  };
  try {
    assert.equal(await settle(), 1);
    writeFileSync(path, 'two');
    utimesSync(path, 0, 0);
    assert.equal(await settle(), 2, 'same size, same time');
    writeFileSync(join(folder, 'b'), 'three');
    renameSync(join(folder, 'b'), path);
    assert.equal(await settle(), 3);
    rmSync(path);
    assert.deepEqual([await settle(), await settle()], [4, 4]);
  } finally {
    watch.stop();
    rmSync(folder, { recursive: true });
  }
});
