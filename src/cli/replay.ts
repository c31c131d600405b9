import type { ReplayFlags } from './flags.js';
import type { CliIo } from './io.js';
import { parseReplayOptions } from './options.js';
import { runReplay } from './replay-run.js';

/** `cofferdam replay`; resolves with the exit code. */
export function replay(
  fault: string | undefined,
  flags: ReplayFlags,
  faultNames: readonly string[],
  io: CliIo,
): Promise<number> {
  return runReplay(parseReplayOptions(fault, flags, { variables: io.variables, faultNames }), io);
}
