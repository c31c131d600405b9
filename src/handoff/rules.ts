import { FAULTS, type FaultName } from './faults.js';
import { GUARDS, type GuardName } from './guards.js';
import type { View } from './layout.js';
import { E, EffectKind, emit, type Out } from './messages.js';

/** Bit numbers, so that the machines compare integers and not names. */
export type BitNumbers<Name extends string> = { readonly [Key in Name]: number };

function numbered<Name extends string>(names: readonly Name[]): BitNumbers<Name> {
  return Object.freeze(Object.fromEntries(names.map((name, index) => [name, index]))) as BitNumbers<Name>;
}

export const FAULT: BitNumbers<FaultName> = numbered(FAULTS);
export const GUARD: BitNumbers<GuardName> = numbered(GUARDS);

export function guarded(view: View, guard: number): boolean {
  return ((view.rules.guards >> guard) & 1) === 1;
}

/** True where the fault is switched on and the guard that would stop it here is off. */
export function deviates(view: View, fault: number, guard: number): boolean {
  return ((view.rules.faults >> fault) & 1) === 1 && ((view.rules.guards >> guard) & 1) === 0;
}

export function faulty(view: View, fault: number): boolean {
  return ((view.rules.faults >> fault) & 1) === 1;
}

/** A guard stopped something of `slot`. */
export function guardHit(out: Out, guard: number, slot: number): void {
  const at = emit(out, EffectKind.guardHit, 0, slot);
  out.cells[at + E.code] = guard;
}
