/** Mutants of the protocol that nothing can tell from the protocol, and why. `npm run test:mutation` holds the list, both ways. */
export const EQUIVALENT: readonly { readonly mutant: string; readonly reason: string }[] = [];
