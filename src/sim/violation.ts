/** What a simulated world must never show. */
export type SimInvariant =
  | 'noForeignRead'
  | 'noForeignPrefix'
  | 'answersAreRight'
  | 'everyRequestSettlesOnce'
  | 'everythingComesToRest'
  | 'countsAreTheGateways'
  | 'recordsHold';

/** Thrown where it is seen, caught by the world that runs. Numbers and names, never a prompt. */
export class Violation extends Error {
  override readonly name = 'Violation';
  readonly invariant: SimInvariant;

  constructor(invariant: SimInvariant, words: string) {
    super(words);
    this.invariant = invariant;
  }
}
