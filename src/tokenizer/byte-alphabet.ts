/** GPT-2's alphabet: a character for each byte, in which byte-level vocabularies are written. */

/** Bytes that the alphabet shows as themselves: what Latin-1 prints, but for the space and the soft hyphen. */
function showsAsItself(byte: number): boolean {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xff && byte !== 0xad);
}

/** The character of each byte: itself, or the next free one from U+0100 on. */
export function byteCharacters(): string[] {
  let free = 0x100;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(showsAsItself(byte) ? byte : free++));
}

const bytes: ReadonlyMap<string, number> = new Map(byteCharacters().map((char, byte) => [char, byte]));

/** The bytes of a token that is written in the alphabet; null where a character is not of it. */
export function alphabetBytes(token: string): Uint8Array | null {
  const found = new Uint8Array(token.length);
  for (let i = 0; i < token.length; i++) {
    const byte = bytes.get(token[i]!);
    if (byte === undefined) return null;
    found[i] = byte;
  }
  return found;
}
