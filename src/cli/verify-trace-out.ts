/** `cofferdam verify --fault NAME --trace-out FILE`: the counterexample as a file, for `cofferdam replay --trace FILE`. */
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { counterexampleText } from '../handoff/counterexample.js';
import type { JobResult } from '../verify/campaign.js';
import { counterexampleOf } from '../verify/counterexample.js';
import type { CliIo } from './io.js';

/** Throws CodedError `usage` where the file cannot be written: before anything is explored. */
export function checkTraceOut(path: string | null): void {
  if (path !== null) writing(path, () => closeSync(openSync(path, 'a')));
}

/** `broken`: what broke; null, and nothing is written: nothing did. */
export function writeTraceOut(path: string | null, broken: JobResult | null, io: CliIo): void {
  if (path === null) return;
  const found = broken === null ? null : counterexampleOf(broken);
  if (found === null) io.err('warning: nothing broke, so there is no counterexample to write\n');
  else writing(path, () => writeFileSync(path, counterexampleText(found)));
}

function writing(path: string, act: () => void): void {
  try {
    act();
  } catch (error) {
    const got = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new CodedError(
      'usage',
      `Expected \`--trace-out\` to be a file that can be written, got ${shown(path)} (${got})`,
    );
  }
}
