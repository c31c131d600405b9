import { createHash } from 'node:crypto';

/**
 * What has no shape of its own or moves what stands beside it: control and format characters (bidi overrides, zero widths),
 * line separators, lone surrogates, fillers, and the code points that XML and JSON may not carry.
 */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}]/gu;

const PLAIN = /^[ -~]*$/;

/** Such characters as escapes, so that a string from outside cannot move a terminal or hide what it says. */
export function escapeControl(text: string): string {
  if (PLAIN.test(text)) return text;
  return text.replace(UNSEEN, (char) => {
    const hex = char.codePointAt(0)!.toString(16).padStart(4, '0');
    return hex.length > 4 ? `\\u{${hex}}` : `\\u${hex}`;
  });
}

/** Cuts to `charactersMax` and says that it did. */
export function truncate(text: string, charactersMax: number): string {
  return text.length <= charactersMax ? text : `${text.slice(0, Math.max(0, charactersMax - 1))}…`;
}

/** The first 12 hex digits of SHA-256: what may be shown of a key or a text. */
export function fingerprint(text: string | Uint8Array): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}

/** What came, for an error message: short, escaped, with its type when it is not a string. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return `\`${truncate(escapeControl(value), 40)}\``;
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return `\`${String(value)}\``;
  return Array.isArray(value) ? 'an array' : value === undefined ? 'nothing' : `a value of type ${typeof value}`;
}
