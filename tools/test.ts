/**
 * The whole test run: types, format and lint, typed lint, then every compiled `*.test.js`, two at a time.
 * Each check counts as one test. The last line is `N passed, N failed`, with `, N skipped` where some were.
 *
 *   node dist/tools/test.js              everything
 *   node dist/tools/test.js --long       everything, with COFFERDAM_LONG=1 and longer time limits
 *   node dist/tools/test.js pool cli/    only the test files whose names hold one of these; no checks
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runNode } from './child.js';
import { type Outcome, runTestFile } from './test-file.js';

/** Test files that run at once: the project's budget is two cores. */
const FILES_AT_ONCE = 2;
/** One test file may take this long; the whole of `npm test` has five minutes. */
const FILE_TIMEOUT_MS = 150_000;
const LONG_FILE_TIMEOUT_MS = 3_600_000;
/** A check (types, format, lint) may take this long. */
const CHECK_TIMEOUT_MS = 120_000;

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const CHECKS: readonly { readonly title: string; readonly args: readonly string[] }[] = [
  // The build has done it already; this makes sure of it where the run was started by hand, and is nothing otherwise.
  { title: 'types', args: ['node_modules/typescript/bin/tsc', '-b', 'tsconfig.json'] },
  {
    title: 'format and lint',
    args: ['node_modules/@biomejs/biome/bin/biome', 'check', '--error-on-warnings', '--colors=off', '.'],
  },
  {
    title: 'typed lint',
    args: ['node_modules/oxlint/bin/oxlint', '--type-aware', '--deny-warnings', '--tsconfig', 'tsconfig.json'],
  },
];

async function runCheck(title: string, args: readonly string[]): Promise<Outcome> {
  const child = await runNode(args, CHECK_TIMEOUT_MS);
  const { output, tookMs } = child;
  if (child.code === 0) return { title, passed: 1, skipped: [], failures: [], output, tookMs };
  const how = child.timedOut ? 'did not end in time' : `exit code ${String(child.code)}`;
  return { title, passed: 0, skipped: [], failures: [{ name: `(${title})`, words: how }], output, tookMs };
}

/** Compiled test files, from the project's root. */
function testFiles(): string[] {
  const found: string[] = [];
  for (const part of ['src', 'test', 'tools', 'bench']) {
    let entries: string[];
    try {
      entries = readdirSync(join(ROOT, 'dist', part), { recursive: true, encoding: 'utf8' });
    } catch {
      continue;
    }
    for (const entry of entries) if (entry.endsWith('.test.js')) found.push(join('dist', part, entry));
  }
  return found.map((path) => path.split(sep).join('/')).sort();
}

function indent(text: string): string {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => `      ${line}`)
    .join('\n');
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

function report(outcome: Outcome): void {
  const { title, passed, failures, skipped } = outcome;
  const parts = [`${passed} passed`];
  if (failures.length > 0) parts.push(`${failures.length} failed`);
  if (skipped.length > 0) parts.push(`${skipped.length} skipped`);
  const mark = failures.length > 0 ? 'FAILED' : 'ok    ';
  say(`${mark} ${title}  ${parts.join(', ')}  ${(outcome.tookMs / 1000).toFixed(1)} s`);
  for (const skip of skipped) say(`    skipped: ${skip.name} (${skip.words})`);
  for (const failure of failures) say(`    failed: ${failure.name}\n${indent(failure.words)}`);
  if (failures.length > 0 && outcome.output.trim() !== '') say(`    it printed:\n${indent(outcome.output)}`);
}

async function runFiles(files: readonly string[], timeoutMs: number, done: (outcome: Outcome) => void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'cofferdam-test-'));
  let next = 0;
  const lane = async (): Promise<void> => {
    for (;;) {
      const path = files[next++];
      if (path === undefined) return;
      const title = relative('dist', path).split(sep).join('/').replace(/\.js$/, '.ts');
      done(await runTestFile(path, title, folder, timeoutMs));
    }
  };
  try {
    await Promise.all(Array.from({ length: FILES_AT_ONCE }, lane));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function main(args: readonly string[]): Promise<void> {
  process.chdir(ROOT);
  const long = args.includes('--long');
  if (long) process.env.COFFERDAM_LONG = '1';
  const wanted = args.filter((arg) => !arg.startsWith('--'));
  const total = { passed: 0, failed: 0, skipped: 0 };
  const done = (outcome: Outcome): void => {
    report(outcome);
    total.passed += outcome.passed;
    total.failed += outcome.failures.length;
    total.skipped += outcome.skipped.length;
  };
  const unknown = args.find((arg) => arg.startsWith('--') && arg !== '--long');
  const files = testFiles().filter((path) => wanted.length === 0 || wanted.some((part) => path.includes(part)));
  if (unknown !== undefined || files.length === 0) {
    const words = unknown === undefined ? `no test file matches ${wanted.join(', ')}` : `unknown option ${unknown}`;
    done({ title: 'arguments', passed: 0, skipped: [], failures: [{ name: words, words }], output: '', tookMs: 0 });
  } else {
    if (wanted.length === 0) for (const check of CHECKS) done(await runCheck(check.title, check.args));
    await runFiles(files, long ? LONG_FILE_TIMEOUT_MS : FILE_TIMEOUT_MS, done);
  }
  process.exitCode = total.failed > 0 ? 1 : 0;
  const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : '';
  say(`${total.passed} passed, ${total.failed} failed${skipped}`);
}

await main(process.argv.slice(2));
