/**
 * Every figure, one after the other, each bench in a process of its own: `npm run bench`. `npm run bench -- NAME [ARGS]` runs one
 * with its arguments. docs/BENCHMARKS.md says what each measures. Exit code 1 where one failed, 2 for a name that is not here.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** In the order of docs/BENCHMARKS.md. */
const BENCHES: readonly string[] = [
  'gateway',
  'guards',
  'prefix',
  'model-speed',
  'model-llamacpp',
  'kv',
  'markers',
  'tokenizer',
  'probe',
];
const LLAMA = new URL('../../test/oracle/node_modules/node-llama-cpp/package.json', import.meta.url);
/** Needs packages that `npm ci` does not install. */
const WITH_ORACLE = 'model-llamacpp';

/** True if it ran to its end. */
function run(name: string, args: readonly string[]): boolean {
  process.stdout.write(`\n== ${name}\n`);
  const file = fileURLToPath(new URL(`${name}.js`, import.meta.url));
  const { status, signal } = spawnSync(process.execPath, [file, ...args], { stdio: 'inherit' });
  if (status === 0) return true;
  process.stderr.write(`error: Expected the bench \`${name}\` to end with 0, got ${status ?? signal}.\n`);
  return false;
}

function runAll(): boolean {
  const failed = BENCHES.filter((name) => {
    if (name !== WITH_ORACLE || existsSync(LLAMA)) return !run(name, []);
    process.stdout.write(
      `\n== ${name}\nleft out: the packages of test/oracle are not installed; \`npm run bench -- ${name}\` installs them (83 MB)\n`,
    );
    return false;
  });
  return failed.length === 0;
}

const [name, ...args] = process.argv.slice(2);
if (name === undefined) {
  process.exitCode = runAll() ? 0 : 1;
} else if (BENCHES.includes(name)) {
  process.exitCode = run(name, args) ? 0 : 1;
} else {
  process.stderr.write(`error: Expected one of ${BENCHES.join(', ')}, got \`${name}\`.\n`);
  process.exitCode = 2;
}
