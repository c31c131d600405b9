// Builds everything into dist/: a clean folder, one `tsc -b`, and the executable bit on the command.
// Plain JavaScript, because it runs before anything is compiled.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
process.chdir(root);
if (!existsSync('node_modules/typescript')) {
  process.stderr.write('Expected the development packages to be installed; run `npm ci` first.\n');
  process.exit(2);
}
rmSync('dist', { recursive: true, force: true });
const built = spawnSync(process.execPath, ['node_modules/typescript/bin/tsc', '-b', 'tsconfig.json'], {
  stdio: 'inherit',
});
if (built.status !== 0) {
  // A test run that cannot even build still ends with its one line.
  if (process.argv.includes('--for-tests')) process.stdout.write('0 passed, 1 failed\n');
  process.exit(built.status ?? 1);
}
if (existsSync('dist/src/cli/main.js')) chmodSync('dist/src/cli/main.js', 0o755);
