import type { EngineFlags } from './flags.js';
import type { CliIo } from './io.js';
import { parseEngineOptions } from './options.js';
import { runEngine } from './engine-run.js';

/** `cofferdam engine`; resolves with the exit code. */
export function engine(flags: EngineFlags, faultNames: readonly string[], io: CliIo): Promise<number> {
  const options = parseEngineOptions(flags, { variables: io.variables, faultNames });
  for (const warning of options.warnings) io.err(`warning: ${warning}\n`);
  return runEngine(options, io);
}
