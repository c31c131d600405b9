import type { Finding, Severity } from '../findings/finding.js';
import type { GuardName } from '../handoff/guards.js';
import type { EngineFinding } from '../handoff/engine-port.js';

/** A refusal is the guard's everyday work; a tag that is not one's own means that something wrote where it must not. */
const SEVERITY: Readonly<Record<GuardName, Severity>> = {
  policy: 'info',
  admission: 'info',
  salt: 'info',
  rejection: 'low',
  lease: 'high',
  count: 'high',
  checksum: 'high',
  tag: 'high',
  drain: 'medium',
  fence: 'high',
  usage: 'high',
};

/** What the engine noticed, as a finding. Its words hold numbers and names only. */
export function guardEngineFinding(finding: EngineFinding): Finding {
  return {
    id: `engine.guard-${finding.guard}`,
    severity: SEVERITY[finding.guard],
    title: `The guard \`${finding.guard}\` stopped a request in the embedded engine`,
    where: { node: 'embedded engine', source: `guard ${finding.guard}` },
    observed: finding.words,
    wanted: 'requests that reach only pages of their own',
    change: 'Nothing leaked. Find out what caused it: docs/HANDOFF.md says what each guard compares.',
    references: ['docs/HANDOFF.md'],
    certain: true,
  };
}
