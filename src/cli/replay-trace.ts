/** `cofferdam replay --trace FILE`: a counterexample of `verify` on the real engine. */
import { readFileSync, statSync } from 'node:fs';
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { parseCounterexample } from '../handoff/counterexample.js';
import { guardsAgainst } from '../handoff/faults.js';
import { ALL_GUARDS, type GuardBits, guardBits, GUARDS } from '../handoff/guards.js';
import { driveCounterexample, type DrivenResult, undriven } from '../replay/trace-replay.js';
import { renderDriven } from '../replay/trace-render.js';
import { type CliIo, EXIT } from './io.js';
import type { ReplayOptions } from './options.js';

/** Bytes; a counterexample has some thousand. */
const FILE_MAX = 4 << 20;

/** Resolves with the exit code: 0 the engine does what `verify` says, 1 it does not, 3 it cannot be driven so. Throws CodedError. */
export function runReplayTrace(path: string, options: ReplayOptions, io: CliIo): number {
  const found = parseCounterexample(textOf(path));
  const reason = undriven(found);
  if (reason !== null) {
    io.err(`incomplete: the engine cannot be driven through ${reason}\n`);
    return EXIT.unchecked;
  }
  const isTable = options.output === 'table';
  if (isTable)
    io.out(`${found.fault}: \`${found.invariant}\` breaks after ${found.steps.length} steps: ${found.words}\n`);
  const results: DrivenResult[] = [];
  const against = guardsAgainst([found.fault]);
  for (const guards of guardSets(options, ALL_GUARDS & ~against)) {
    const result = driveCounterexample(found, { guards, seed: options.seed });
    results.push(result);
    if (isTable) io.out(`\n${renderDriven(result)}`);
  }
  if (!isTable) io.out(`${JSON.stringify(results.map((result) => ({ ...result, guards: byName(result.guards) })))}\n`);
  return results.every(({ isAsExpected }) => isAsExpected) ? EXIT.clean : EXIT.findings;
}

/** Nothing said: as the counterexample has it, and with every guard on. */
function guardSets({ guards, guardsOff }: ReplayOptions, off: GuardBits): GuardBits[] {
  if (guards === null && guardsOff.length === 0) return [off, ALL_GUARDS];
  return [guards === 'off' ? off : ALL_GUARDS & ~guardBits(guardsOff)];
}

const byName = (bits: GuardBits): Record<string, 'on' | 'off'> =>
  Object.fromEntries(GUARDS.map((name, at) => [name, ((bits >> at) & 1) === 1 ? 'on' : 'off']));

function textOf(path: string): string {
  let got: string;
  try {
    const { size } = statSync(path);
    if (size <= FILE_MAX) return readFileSync(path, 'utf8');
    got = `${size} bytes`;
  } catch (error) {
    got = error instanceof Error && 'code' in error ? String(error.code) : String(error);
  }
  throw new CodedError(
    'usage',
    `Expected \`--trace\` to be a file of at most ${FILE_MAX} bytes that can be read, got ${shown(path)} (${got})`,
  );
}
