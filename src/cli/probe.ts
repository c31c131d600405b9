import { type CliIo, EXIT } from './io.js';
import { withProbeConfig } from './probe-config.js';
import type { ProbeFlags } from './probe-flags.js';
import { parseProbeOptions, parseProbeOutputs } from './probe-options.js';
import { convertProbe } from './probe-report.js';
import { runProbeVerb } from './probe-run.js';

/** `cofferdam probe`; resolves with the exit code. */
export async function probeVerb(url: string | null, flags: ProbeFlags, io: CliIo, version: string): Promise<number> {
  if (flags.convert !== undefined) return convertProbe(flags.convert, parseProbeOutputs(flags.output), io);
  const given = withProbeConfig(url, flags);
  if (!('flags' in given)) {
    for (const line of given) io.err(`error: ${line}\n`);
    return EXIT.usage;
  }
  return runProbeVerb(parseProbeOptions(given.url, given.flags, io.variables), io, version);
}
