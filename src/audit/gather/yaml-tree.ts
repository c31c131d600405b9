/** A YAML document as a tree: keys in their order, scalars as text (null: nothing stands there), each with its line. */
export type Tree =
  | { readonly kind: 'map'; readonly entries: ReadonlyMap<string, Tree>; readonly line: number }
  | { readonly kind: 'list'; readonly items: readonly Tree[]; readonly line: number }
  | { readonly kind: 'scalar'; readonly text: string | null; readonly line: number };
