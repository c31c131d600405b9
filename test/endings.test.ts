/** Goal: an end leaves nothing behind and cuts nothing off, however the surroundings went. Method: the real program. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { hangUpMeaning } from '../src/cli/signals.js';
import { runCommand, startProgram, startServe, stopProgram, untilSaid } from './support/program.js';

test('a hang-up that no terminal sent ends nothing, and says that there is nothing to reload', async () => {
  const served = await startServe();
  assert.ok(served.keysPath !== null && existsSync(served.keysPath));
  served.child.kill('SIGHUP');
  await untilSaid(served, () => served.err().includes('SIGHUP: no configuration file was read at the start'));
  assert.equal((await fetch(`${served.facts.url}/health`)).status, 200);
  const ended = await served.stop('SIGTERM');
  assert.deepEqual([ended.code, ended.signal], [0, null], ended.err);
  assert.ok(!existsSync(served.keysPath));
});

test('a hang-up is a terminal that was there and is gone; anything else is somebody who sent the signal', () => {
  const gone = (): boolean => false;
  const there = (): boolean => true;
  assert.deepEqual([hangUpMeaning(true, gone), hangUpMeaning(true, there)], ['end', 'stay']);
  assert.deepEqual([hangUpMeaning(false, gone), hangUpMeaning(false, there)], ['stay', 'stay']);
});

test('a standard output that was closed cuts no stream off at the end', async () => {
  const program = startProgram(['serve', '--port', '0', '--ops-port', '0', '--tenant', 'acme=k1']);
  await untilSaid(program, () => program.out().includes('/v1 '));
  const url = /(http:\S+)\/v1 /.exec(program.out())![1]!;
  program.child.stdout!.destroy();
  program.child.stderr!.destroy();
  const response = await fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { authorization: 'Bearer k1' },
    body: JSON.stringify({ model: 'lab', stream: true, max_tokens: 200, prompt: 'one two one ' }),
  });
  const ended = stopProgram(program, 'SIGTERM');
  assert.match(await response.text(), /data: \[DONE\]\n\n$/);
  assert.equal((await ended).code, 0);
});

test('where the file of fresh keys has no place, one line says so', async () => {
  const variables = { TMPDIR: '/nowhere/at/all' };
  const ended = await runCommand(['serve', '--port', '0', '--ops-port', '0'], variables);
  assert.equal(ended.code, 2);
  assert.match(
    ended.err,
    /^error: Expected a folder for the file of fresh keys in `\/nowhere\/at\/all`, got ENOENT\.[^\n]*\n$/,
  );
});
