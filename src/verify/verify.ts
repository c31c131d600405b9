/** The verdicts of `cofferdam verify`: a scope without a fault, and each fault with its guards off and on. */
import { CATALOGUE, type FaultName, FAULTS, faultBit } from '../handoff/faults.js';
import { ALL_GUARDS, guardBits } from '../handoff/guards.js';
import type { Rules } from '../handoff/layout.js';
import { type Exploration, type ExploreOptions, explore } from './explore.js';
import { HandoffModel } from './models/handoff.js';
import { FAULT_SCOPES, SCOPES, type ScopeName } from './scopes.js';

export type FaultVerdict = 'caught' | 'missed' | 'unguarded' | 'incomplete';

export interface FaultReport {
  readonly fault: FaultName;
  readonly scope: ScopeName;
  readonly verdict: FaultVerdict;
  /** The first invariant that breaks with the guards off. */
  readonly invariant: string | null;
  readonly depth: number;
  /** Distinct states of both runs. */
  readonly states: number;
  readonly off: Exploration;
  readonly on: Exploration;
}

export function modelOf(scope: ScopeName, rules: Rules): HandoffModel {
  return new HandoffModel({ ...SCOPES[scope], rules });
}

export const HEALTHY: Rules = { faults: 0, guards: ALL_GUARDS };

export function verifyScope(scope: ScopeName, options: ExploreOptions = {}): Exploration {
  return explore(modelOf(scope, HEALTHY), options);
}

/** The rules under which a fault is looked for: the guards that stop it off, or every guard on. */
export function rulesOf(fault: FaultName, guards: 'off' | 'on'): Rules {
  const off = guardBits(CATALOGUE[fault].guards);
  return { faults: faultBit(fault), guards: guards === 'on' ? ALL_GUARDS : ALL_GUARDS & ~off };
}

/**
 * *Caught*: violated with its guards off, and holding with them on. *Missed*: no violation with guards off. *Unguarded*: violated
 * with guards on. A run that met its bound is `incomplete`, never more.
 */
export function verifyFault(fault: FaultName, options: ExploreOptions = {}, scope?: ScopeName): FaultReport {
  const where = scope ?? FAULT_SCOPES[fault];
  // With a fault on some actions cannot fire any more, so coverage is asked of the run without one.
  const bounded = { ...options, coverage: false };
  const off = explore(modelOf(where, rulesOf(fault, 'off')), bounded);
  const on = explore(modelOf(where, rulesOf(fault, 'on')), bounded);
  return {
    fault,
    scope: where,
    verdict: verdictOf(off, on),
    invariant: off.violation?.invariant ?? null,
    depth: off.violation?.path.length ?? off.depth,
    states: off.distinct + on.distinct,
    off,
    on,
  };
}

function verdictOf(off: Exploration, on: Exploration): FaultVerdict {
  if (on.verdict === 'violated') return 'unguarded';
  if (off.verdict === 'holds') return 'missed';
  return off.verdict === 'violated' && on.verdict === 'holds' ? 'caught' : 'incomplete';
}

export function verifyAllFaults(
  options: ExploreOptions = {},
  onReport: (report: FaultReport) => void = () => {},
): FaultReport[] {
  return FAULTS.map((fault) => {
    const report = verifyFault(fault, options);
    onReport(report);
    return report;
  });
}
