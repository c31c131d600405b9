/** Values out of an engine's JSON, before anything is believed of them. */
export type Json = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A word of the engine's that is a mere name or number; anything else is not repeated. */
export function word(value: unknown): string {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && /^[A-Za-z_]{1,40}$/.test(value) ? value : 'unknown';
}
