/** Gather, then rules, then the report. */
import type { Clock } from '../base/clock.js';
import { type FailOn, makeReport, type Report } from '../findings/report.js';
import { ANSWERS_ID, assess } from './assess.js';
import { changesSince } from './baseline.js';
import { type GatherOptions, gather } from './gather/gather.js';
import { RULES } from './registry.js';
import type { Rule } from './rule.js';
import { type WaiverRow, withWaivers } from './waivers.js';

export interface AuditOptions extends GatherOptions {
  readonly failOn: FailOn;
  /** Groups or ids of rules; what applies of them must have been checked. */
  readonly required: readonly string[];
  readonly waivers: readonly WaiverRow[];
  readonly baseline: Report | null;
}

export interface AuditWorld {
  readonly clock: Clock;
  /** Cofferdam's own. */
  readonly version: string;
  /** @default every rule */
  readonly rules?: readonly Rule[];
}

/** Reads every target, then judges. Throws `CodedError` (`usage`) for a target that names nothing. */
export async function audit(options: AuditOptions, world: AuditWorld): Promise<Report> {
  const fleet = await gather(options, world);
  const assessed = assess(fleet, world.rules ?? RULES);
  const createdAt = new Date(world.clock.wallMs()).toISOString();
  return makeReport({
    tool: { name: 'cofferdam', version: world.version },
    verb: 'audit',
    createdAt,
    failOn: options.failOn,
    required: [...options.required, ...(fleet.nodes.length > 0 ? [ANSWERS_ID] : [])],
    nodes: assessed.nodes,
    findings: withWaivers(assessed.findings, options.waivers, createdAt.slice(0, 10)),
    checks: assessed.checks,
    skipped: assessed.skipped,
    changes: options.baseline === null ? [] : changesSince(options.baseline, assessed.nodes),
  });
}
