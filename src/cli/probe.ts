import type { CliIo } from './io.js';
import type { ProbeFlags } from './probe-flags.js';
import { parseProbeOptions } from './probe-options.js';
import { runProbeVerb } from './probe-run.js';

/** `cofferdam probe`; resolves with the exit code. */
export function probeVerb(url: string | null, flags: ProbeFlags, io: CliIo, version: string): Promise<number> {
  return runProbeVerb(parseProbeOptions(url, flags, io.variables), io, version);
}
