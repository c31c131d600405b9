import type { LabFlags } from './flags.js';
import type { CliIo } from './io.js';
import { parseLabOptions } from './lab-options.js';
import { runLab } from './lab-run.js';

/** `cofferdam lab`; the exit code. */
export function lab(dir: string, flags: LabFlags, io: CliIo): number {
  const options = parseLabOptions(dir, flags);
  for (const warning of options.warnings) io.err(`warning: ${warning}\n`);
  return runLab(options, io);
}
