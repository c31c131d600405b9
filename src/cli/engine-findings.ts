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
  if (finding.guard === 'sweep') return sweepFinding(finding);
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

function sweepFinding(finding: EngineFinding): Finding {
  return {
    id: 'engine.sweep',
    severity: 'high',
    title: 'The sweep found a write that no lease explains in the embedded engine',
    where: { node: 'embedded engine', source: 'sweep' },
    observed: finding.words,
    wanted: 'pages that hold what their owner wrote, and free pages that nobody writes to',
    change:
      'Find the writer: the tag in the page names it. docs/ENGINE.md says what the sweep can see and what it cannot.',
    references: ['docs/ENGINE.md'],
    certain: true,
  };
}
