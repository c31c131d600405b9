import { parseAuditOptions } from './audit-options.js';
import { runAudit, runConvert } from './audit-run.js';
import type { AuditFlags } from './flags.js';
import type { CliIo } from './io.js';

/** `cofferdam audit`; resolves with the exit code. */
export function auditVerb(targets: readonly string[], flags: AuditFlags, io: CliIo, version: string): Promise<number> {
  const options = parseAuditOptions(targets, flags, io.variables);
  return options.convert === null ? runAudit(options, io, version) : runConvert(options, options.convert, io);
}
