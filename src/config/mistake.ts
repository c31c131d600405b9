import { escapeControl, truncate } from '../base/text.js';

/** Both from 1; columns count UTF-16 units, as editors do. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** One thing that is wrong in a file. Repeats no key: whoever makes one sees to it. */
export interface Mistake {
  readonly at: Place;
  /** Follows `Expected`. */
  readonly expected: string;
  /** Follows `got`. */
  readonly came: string;
  /** A sentence: what to change. */
  readonly change: string;
}

/** Mistakes of one file that are shown; more follow from these, or nobody reads them. */
export const MISTAKES_SHOWN_MAX = 50;
const FILE_CHARACTERS_MAX = 200;

/** `FILE:LINE:COLUMN: Expected …, got …. What to change.` */
export function mistakeText(file: string, { at, expected, came, change }: Mistake): string {
  const place = `${truncate(escapeControl(file), FILE_CHARACTERS_MAX)}:${at.line}:${at.column}`;
  return `${place}: Expected ${expected}, got ${came}. ${change}`;
}

/** In the order of the file, each once, within a bound that is said. */
export function mistakeLines(file: string, mistakes: readonly Mistake[]): string[] {
  const sorted = [...mistakes].sort((a, b) => a.at.line - b.at.line || a.at.column - b.at.column);
  const lines = [...new Set(sorted.map((mistake) => mistakeText(file, mistake)))];
  if (lines.length <= MISTAKES_SHOWN_MAX) return lines;
  return [...lines.slice(0, MISTAKES_SHOWN_MAX), `${file}: and ${lines.length - MISTAKES_SHOWN_MAX} more mistakes`];
}
