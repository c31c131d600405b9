/** Mutants of the protocol that nothing can tell from the protocol, and why. `npm run test:mutation` holds the list, both ways. */
const CLEARED = 'it leaves a flag in a slot that is idle, and the next attempt clears it before anybody reads it';
const UNREAD = 'places of a list behind `held` are never read, and `held` is 0 when this is done';

export const EQUIVALENT: readonly { readonly mutant: string; readonly reason: string }[] = [
  {
    mutant: 'gateway.js onSubmit: cell kept: cells[at + GS.again] = 0;',
    reason: 'every way out of a slot has cleared the flag already, and `open` clears it once more',
  },
  {
    mutant: 'gateway.js send: never: if (kind !== EventKind.start)',
    reason: 'an abort then carries the numbers of the request as well, which no receiver of an abort reads',
  },
  {
    mutant: 'gateway.js settle: never: if (cells[at + GS.phase] !== GatewayPhase.closing)',
    reason: 'both sides count as closed only in a slot that is closing: in the other phases one flag is always 0',
  },
  {
    mutant: 'gateway.js onPrefillClosed: never: if (view.cells[at + GS.phase] === GatewayPhase.idle)',
    reason: CLEARED,
  },
  { mutant: 'gateway.js onDecodeClosed: never: if (view.cells[at + GS.phase] === GatewayPhase.idle)', reason: CLEARED },
  { mutant: 'gateway.js onPeerDown: never: if (phase === GatewayPhase.idle)', reason: CLEARED },
  { mutant: 'prefill.js releaseSource: cell kept: cells[source + place] = 0;', reason: UNREAD },
  { mutant: 'decode-pages.js release: cell kept: cells[list + place] = 0;', reason: UNREAD },
];
