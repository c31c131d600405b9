/** Gather, then rules, then the report. */
import type { AuditReport } from '../findings/report.js';
import { type AssessOptions, assess } from './assess.js';
import { type GatherOptions, type GatherWorld, gather } from './gather/gather.js';
import { RULES } from './registry.js';

export interface AuditOptions extends GatherOptions, AssessOptions {}

/** Reads every target, then judges. Throws `CodedError` (`usage`) for a target that names nothing. */
export async function audit(options: AuditOptions, world: GatherWorld): Promise<AuditReport> {
  return assess(await gather(options, world), RULES, options);
}
