/** What goes to a counting thread, and what comes back. */

export interface CountRequest {
  readonly text: string;
  readonly isWhole: boolean;
}

/** A reason where the text cannot be counted. */
export type CountAnswer = { readonly count: number } | { readonly why: string };
