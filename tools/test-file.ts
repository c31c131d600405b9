/** One test file in a process of its own. Whatever does not say that it passed has failed. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ChildResult, runNode } from './child.js';
import type { TestRecord } from './record-reporter.js';

export interface Failure {
  readonly name: string;
  readonly words: string;
}

/** What one check or one test file came to. */
export interface Outcome {
  readonly title: string;
  readonly passed: number;
  readonly skipped: readonly Failure[];
  readonly failures: readonly Failure[];
  /** What it printed; shown when something failed. */
  readonly output: string;
  readonly tookMs: number;
}

const REPORTER = fileURLToPath(new URL('./record-reporter.js', import.meta.url));

function readRecords(text: string): TestRecord[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as TestRecord);
}

/** What was wrong with the process itself, beside its failed tests; null when nothing was. */
function processFailure(child: ChildResult, records: readonly TestRecord[], timeoutMs: number): Failure | null {
  const name = '(the whole file)';
  const tests = records.filter((record) => record.kind === 'test');
  if (child.timedOut) return { name, words: `did not end within ${timeoutMs / 1000} s and was killed` };
  if (child.signal !== null) return { name, words: `was ended by ${child.signal}` };
  if (tests.length === 0) return { name, words: `ran no test, exit code ${String(child.code)}` };
  if (!records.some((record) => record.kind === 'end')) {
    return { name, words: `ended before its tests were over, exit code ${String(child.code)}` };
  }
  const failed = tests.some((record) => record.outcome === 'failed');
  if (child.code !== 0 && !failed) return { name, words: `every test passed, but the exit code is ${child.code}` };
  return null;
}

/** `recordsText`: what the reporter wrote. */
export function outcomeOf(title: string, child: ChildResult, recordsText: string, timeoutMs: number): Outcome {
  // A process killed while it wrote may leave half a line: it is lost, and the missing end line fails the file.
  const whole = recordsText.slice(0, recordsText.lastIndexOf('\n') + 1);
  const records = readRecords(whole);
  const failures: Failure[] = [];
  const skipped: Failure[] = [];
  let passed = 0;
  for (const record of records) {
    if (record.kind === 'end') continue;
    if (record.outcome === 'passed') passed++;
    else (record.outcome === 'failed' ? failures : skipped).push({ name: record.name, words: record.words });
  }
  const broken = processFailure(child, records, timeoutMs);
  if (broken !== null) failures.push(broken);
  return { title, passed, skipped, failures, output: child.output, tookMs: child.tookMs };
}

/** Runs the compiled test file at `path`; records go through `folder`. */
export async function runTestFile(path: string, title: string, folder: string, timeoutMs: number): Promise<Outcome> {
  const destination = join(folder, `${title.replaceAll(/[^\w.-]/g, '_')}.jsonl`);
  const child = await runNode(
    [
      '--enable-source-maps',
      '--expose-gc',
      `--test-reporter=${REPORTER}`,
      `--test-reporter-destination=${destination}`,
      path,
    ],
    timeoutMs,
  );
  return outcomeOf(title, child, existsSync(destination) ? readFileSync(destination, 'utf8') : '', timeoutMs);
}
