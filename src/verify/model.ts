/**
 * What the checker explores: a record of `width` bytes that actions change. Actions are numbers in a fixed order, so that two runs are
 * the same run. A model owns one record, `cells`; the explorer loads a state into it, asks, and lets an action change it in place.
 */

/** An action's number is `kind * ACTION_INDEX_MAX + index`; `kind` indexes `Model.kinds`. */
export const ACTION_INDEX_MAX = 32;
/** The most actions that are possible in one state. */
export const ACTIONS_MAX = 256;

export interface ActionKind {
  readonly name: string;
  /** The system's own doing. Only such actions count as a way to settle: nobody is to wait for a client to leave or a node to die. */
  readonly isProgress: boolean;
  /** The scope allows it; a run in which it never fires proves less than it says. */
  readonly isExpected: boolean;
}

export interface Sometimes {
  readonly name: string;
  holds(): boolean;
}

export interface Broken {
  /** The name of the invariant, the same in every run. */
  readonly invariant: string;
  readonly words: string;
}

export interface Model {
  /** Bytes of the record; a multiple of 4. */
  readonly width: number;
  /** The record that everything here reads and writes. Its buffer is exactly as wide. */
  readonly cells: Uint8Array;
  readonly kinds: readonly ActionKind[];
  readonly properties: {
    /** Null, or the first invariant that does not hold. Asked once of every new state. */
    always(): Broken | null;
    /** Reached at least once in a run that means something. At most 31. */
    readonly sometimes: readonly Sometimes[];
    /** Nothing is open: from every reachable state such a state has to be reachable by progress. */
    settled(): boolean;
  };
  init(): void;
  /** Words of the record that are in use; what lies behind them is not part of the state. */
  wordsUsed(): number;
  /** Writes the actions possible in the state and returns how many. */
  actions(into: Int32Array): number;
  next(action: number): void;
  /** False: the state is not explored further, and the verdict says so. */
  boundary(): boolean;
  /** The action in words, told in the state before it. */
  inWords(action: number): string;
  /**
   * The state under another naming of what is interchangeable, written over `cells`; `count` such images, the first the state itself.
   * The explorer loads the state again before each. Absent: nothing is interchangeable.
   */
  readonly symmetry?: { readonly count: number; image(index: number): void };
}
