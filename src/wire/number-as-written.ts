/** Numbers of a JSON body as they were written: a 63-bit room does not survive JSON.parse. */
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;

/**
 * The digits of the top-level field `name` of a body that JSON.parse has accepted; null where it is absent or no whole number of
 * 1 to 19 digits. Of several the last counts, as with JSON.parse. A name written with escapes is not found.
 */
export function numberAsWritten(body: Buffer, name: string): string | null {
  const wanted = Buffer.from(name);
  let found: string | null = null;
  let depth = 0;
  for (let i = 0; i < body.length; i++) {
    const byte = body[i]!;
    if (byte === 0x5b || byte === 0x7b) depth++;
    else if (byte === 0x5d || byte === 0x7d) depth--;
    else if (byte === QUOTE) {
      const start = i + 1;
      i = endOfString(body, start);
      if (depth !== 1 || i - start !== wanted.length || body.compare(wanted, 0, wanted.length, start, i) !== 0)
        continue;
      const after = skipSpace(body, i + 1);
      // A string that no colon follows is a value.
      if (body[after] === COLON) found = digitsAt(body, skipSpace(body, after + 1));
    }
  }
  return found;
}

/** Index of the closing quote. */
function endOfString(body: Buffer, start: number): number {
  let at = start;
  while (at < body.length && body[at] !== QUOTE) at += body[at] === BACKSLASH ? 2 : 1;
  return at;
}

function skipSpace(body: Buffer, start: number): number {
  let at = start;
  while (body[at] === 0x20 || body[at] === 0x09 || body[at] === 0x0a || body[at] === 0x0d) at++;
  return at;
}

function digitsAt(body: Buffer, start: number): string | null {
  // One more than the longest, so that a longer number is seen to be longer.
  const text = body.toString('latin1', start, start + 21);
  return /^(\d{1,19})(?![\d.eE])/.exec(text)?.[1] ?? null;
}
