/**
 * Numbers and keys in tools and tool calls. Templates write them as JSON again, and engines do that in Python: 1.0 stays 1.0
 * there and is 1 here, and keys that are digits change places here. Where that could change a count, these say so.
 */

/** Digits as Python writes them and ECMAScript too: whole numbers that are exact, and fractions without exponent. */
function isWrittenAlike(value: number): boolean {
  if (Number.isInteger(value)) return Number.isSafeInteger(value) && !Object.is(value, -0);
  const size = Math.abs(value);
  return size >= 1e-4 && size < 1e16;
}

const DIGITS = /^(?:0|[1-9]\d*)$/;

/** For values that JSON.parse gave. A number written as 1.0 cannot be seen here; see `isWrittenCertainly` for the text. */
export function hasUncertainNumber(value: unknown): boolean {
  if (typeof value === 'number') return !isWrittenAlike(value);
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return value.some(hasUncertainNumber);
  const keys = Object.keys(value);
  if (keys.length > 1 && keys.some((key) => DIGITS.test(key))) return true;
  return Object.values(value).some(hasUncertainNumber);
}

/** Whether every number and key of a JSON text comes out of JSON.parse and JSON.stringify as Python would write it. */
export function isWrittenCertainly(json: string): boolean {
  // Keys that are digits, then all strings taken out, then numbers.
  if (/"(?:0|[1-9]\d*)"\s*:/.test(json)) return false;
  const bare = json.replaceAll(/"(?:[^"\\]|\\.)*"/gs, '""');
  return (bare.match(/-?\d[\d.eE+-]*/g) ?? []).every((written) => {
    const value = Number(written);
    return isWrittenAlike(value) && String(value) === written;
  });
}

/** The arguments of a tool call as engines read them; undefined where that is not certain. */
export function parseArguments(json: string): unknown {
  if (json === '') return {};
  try {
    return isWrittenCertainly(json) ? (JSON.parse(json) as unknown) : undefined;
  } catch {
    return undefined;
  }
}
