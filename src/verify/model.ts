/** A model over flat records: every state is `width` cells. Actions are numbers, in a fixed order, so that runs repeat. */
export interface Model {
  readonly width: number;
  init(cells: Uint8Array, at: number): void;
  /** Writes the actions possible in the state into `into` and returns how many. */
  actions(cells: Uint8Array, at: number, into: Int32Array): number;
  /** Writes the next state to `next[nextAt…]`; false where the action changes nothing. */
  next(cells: Uint8Array, at: number, action: number, next: Uint8Array, nextAt: number): boolean;
  /** Null, or the invariant that is broken here. */
  broken(cells: Uint8Array, at: number): string | null;
  /** Reached at least once in a run that means something. */
  readonly sometimes: readonly { readonly name: string; holds(cells: Uint8Array, at: number): boolean }[];
  /** Nothing is open: from every reachable state such a state must be reachable. */
  settled(cells: Uint8Array, at: number): boolean;
  inWords(action: number, cells: Uint8Array, at: number): string;
}
