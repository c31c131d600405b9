/** Lines of a log, without holding them all. */
import { LINE_CHARACTERS_MAX } from './shapes.js';

/** Calls `see` with each line (cut to what is looked at) and its number from 1. */
export function eachLine(text: string, see: (line: string, number: number) => void): void {
  let start = 0;
  for (let number = 1; start <= text.length; number++) {
    const at = text.indexOf('\n', start);
    const end = at < 0 ? text.length : at;
    see(text.slice(start, Math.min(end, start + LINE_CHARACTERS_MAX)), number);
    start = end + 1;
  }
}

/** A sign of a log: the line holds `part`, and then `and` where one is given. */
export interface SignText<Sign> {
  readonly sign: Sign;
  readonly part: string;
}
