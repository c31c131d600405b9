import { createHash } from 'node:crypto';

/** Control characters, bidi overrides and line separators as escapes, so that a string from outside cannot move a terminal. */
export function escapeControl(text: string): string {
  return text.replace(
    /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
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
