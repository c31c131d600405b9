/** Goal: exit codes and one-line errors of the command as it is run. Method: the program with an io that remembers. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runProgram } from './program.js';

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function run(...args: string[]): Promise<Ran> {
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
  const code = await runProgram(args, io, { faultNames: () => Promise.resolve(['stale-handle']) });
  return { code, out, err };
}

const USAGE: readonly (readonly [string[], RegExp])[] = [
  [['serv'], /unknown command 'serv' \(Did you mean serve\?\)/],
  [['serve', '--prot', '1'], /unknown option '--prot' \(Did you mean --port\?\)/],
  [['serve', '--port'], /argument missing/],
  [['serve', 'extra'], /too many arguments/],
  [['serve', '--page-size', '12'], /^error: Expected `--page-size` to be a power of two from 8 to 256, got `12`$/],
  [['serve', '--tenant', 'acme=env:NOT_SET'], /the variable `NOT_SET`/],
  [['serve', '--tenant', 'acme=a', '--tenant=globex=a'], /got one key for `acme` and `globex`/],
  [['engine', '--guards=off', '--host=0.0.0.0'], /loopback/],
  [['engine', '--prefill-port', '1'], /got no `--decode-port`/],
  [['replay'], /got none of them/],
  [['replay', 'bad\u001b[2J\nname'], /got `bad\\u001b\[2J\\u000aname`/],
  [['replay', 'stale-handle', '--guard-off', 'x', '--guard-off', 'y'], /got `x`/],
];

for (const [args, words] of USAGE) {
  test(`\`cofferdam ${args.join(' ').replaceAll(/\s|\u001b/g, ' ')}\` is wrong usage: exit code 2, one line`, async () => {
    const { code, out, err } = await run(...args);
    assert.equal(code, 2);
    assert.equal(out, '');
    assert.match(err.trimEnd(), words);
    assert.equal(err.indexOf('\n'), err.length - 1, `more than one line: ${err}`);
  });
}

test('help and version go to standard output with exit code 0', async () => {
  for (const args of [['--help'], ['serve', '--help'], ['--version']]) {
    const { code, out, err } = await run(...args);
    assert.deepEqual([code, err], [0, '']);
    assert.notEqual(out, '');
  }
  assert.match((await run('serve', '--help')).out, /--tenant <NAME=KEY>/);
});

test('no verb at all shows the help on standard error, with exit code 2', async () => {
  const { code, out, err } = await run();
  assert.deepEqual([code, out], [2, '']);
  assert.match(err, /Usage: cofferdam/);
});

test('the command itself exits with the code of the program', () => {
  const main = fileURLToPath(new URL('./main.js', import.meta.url));
  const ran = spawnSync(process.execPath, [main, 'serve', '--page-size', '12'], { encoding: 'utf8', timeout: 20_000 });
  assert.equal(ran.status, 2);
  assert.equal(ran.stderr, 'error: Expected `--page-size` to be a power of two from 8 to 256, got `12`\n');
});
