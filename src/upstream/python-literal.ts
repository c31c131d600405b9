/** Python's printed values, as engines log their configuration: `Args(a=1, b='x')` and `{'a': 1, 'b': ['x']}`. */

/** Pairs of one literal that are kept: SGLang 0.5.23 has 531 flags. */
export const PAIRS_MAX = 2000;

/**
 * The top-level pairs that begin at `start` (just behind the opening bracket), up to its closing one. Values as text: strings
 * without quotes, `true`, `false`, null for `None`, everything else as printed. Null: it is none, or it is cut off.
 */
export function parsePairs(text: string, start: number, separator: '=' | ':'): Map<string, string | null> | null {
  const pairs = new Map<string, string | null>();
  let at = start;
  while (pairs.size < PAIRS_MAX) {
    while (text[at] === ' ' || text[at] === ',') at++;
    if (text[at] === ')' || text[at] === '}') return pairs;
    const nameEnd = text.indexOf(separator, at);
    if (nameEnd < 0 || nameEnd - at > 200) return null;
    const name = unquote(text.slice(at, nameEnd).trim());
    const end = valueEnd(text, nameEnd + 1);
    if (end < 0 || name === '') return null;
    pairs.set(name, literal(text.slice(nameEnd + 1, end).trim()));
    at = end;
  }
  return null;
}

/** Where the value that begins at `start` ends: at a comma or closing bracket of the same depth; −1 when it never does. */
function valueEnd(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const char = text[at]!;
    if (char === "'" || char === '"') {
      at = stringEnd(text, at);
      if (at < 0) return -1;
    } else if (char === '(' || char === '[' || char === '{') depth++;
    else if (char === ')' || char === ']' || char === '}') {
      if (depth === 0) return at;
      depth--;
    } else if (char === ',' && depth === 0) return at;
  }
  return -1;
}

function stringEnd(text: string, start: number): number {
  const quote = text[start];
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === quote) return at;
  }
  return -1;
}

function unquote(text: string): string {
  const first = text[0];
  if ((first !== "'" && first !== '"') || text.length < 2 || text.at(-1) !== first) return text;
  return text.slice(1, -1).replaceAll(/\\(.)/g, '$1');
}

function literal(text: string): string | null {
  if (text === 'None') return null;
  if (text === 'True') return 'true';
  if (text === 'False') return 'false';
  // An enumeration's member: `<Kind.NAME: 'name'>`.
  const member = /^<[\w.]{1,100}: ('[^']{0,200}'|-?\d{1,15})>$/.exec(text)?.[1];
  return unquote(member ?? text);
}
