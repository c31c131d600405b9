/** Names longer than this are no slip of the hand. */
const NAME_CHARACTERS_MAX = 64;

/** The known name that is closest to `name`; null where none is within a third of its letters. */
export function nearest(name: string, known: readonly string[]): string | null {
  if (name === '' || name.length > NAME_CHARACTERS_MAX) return null;
  const flat = (text: string): string => text.toLowerCase().replaceAll(/[_\s-]/g, '');
  let best: { readonly name: string; readonly distance: number } | null = null;
  for (const each of known) {
    const distance = editDistance(flat(name), flat(each));
    if (distance <= Math.max(1, Math.floor(each.length / 3)) && (best === null || distance < best.distance)) {
      best = { name: each, distance };
    }
  }
  return best?.name ?? null;
}

/** Letters to add, take out, change or exchange with the next. */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      const exchanged = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const exchange = exchanged ? before[j - 2]! + 1 : Number.POSITIVE_INFINITY;
      next.push(Math.min(change, exchange, row[j]! + 1, next[j - 1]! + 1));
    }
    before = row;
    row = next;
  }
  return row[b.length]!;
}
