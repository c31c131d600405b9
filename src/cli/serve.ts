import type { ServeFlags } from './flags.js';
import type { CliIo } from './io.js';
import { parseServeOptions } from './options.js';
import { runServe } from './serve-run.js';

/** `cofferdam serve`; resolves with the exit code. */
export function serve(flags: ServeFlags, faultNames: readonly string[], io: CliIo): Promise<number> {
  const options = parseServeOptions(flags, { variables: io.variables, faultNames });
  for (const warning of options.warnings) io.err(`warning: ${warning}\n`);
  return runServe(options, io);
}
