/** Small looks at values that came from outside; nothing here throws. */
import { SECRET } from './reading.js';

export type Shape = Readonly<Record<string, unknown>>;

/** Tokens beyond this are no figure of an engine but a trap for arithmetic. */
export const TOKENS_MAX = 1_099_511_627_776;
/** Characters of one flag's or variable's value that are kept. */
export const VALUE_CHARACTERS_MAX = 2000;
/** Characters of one line of a log that are looked at (SGLang prints its whole configuration on one: some 20,000). */
export const LINE_CHARACTERS_MAX = 200_000;

export function asShape(value: unknown): Shape | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Shape) : null;
}

/** Own properties only: `__proto__` and `constructor` from outside are not looked up the chain. */
export function field(shape: Shape, name: string): unknown {
  return Object.hasOwn(shape, name) ? shape[name] : undefined;
}

export function asText(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value.slice(0, VALUE_CHARACTERS_MAX) : null;
}

export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

/** A whole number of tokens from one up; null for anything else. */
export function asTokens(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 && value <= TOKENS_MAX ? value : null;
}

/** The same of a text: `172,032` and `2048.0` are numbers too. */
export function tokensOf(text: string | null | undefined): number | null {
  if (text === null || text === undefined) return null;
  const trimmed = text.trim();
  // Commas part thousands or they part numbers: `1,2` is no twelve.
  if (trimmed.includes(',') && !/^\d{1,3}(?:,\d{3}){1,4}$/.test(trimmed)) return null;
  const plain = trimmed.replaceAll(',', '');
  return /^\d{1,13}(?:\.0{1,6})?$/.test(plain) ? asTokens(Number(plain)) : null;
}

export function asPort(value: unknown): number | null {
  const number = typeof value === 'string' && /^\d{1,5}$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isInteger(number) && number > 0 && number <= 65535 ? number : null;
}

/** A flag's value as one text: what argparse would have been given. */
export function flagText(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  const text =
    typeof value === 'string'
      ? value
      : typeof value === 'number' || typeof value === 'boolean'
        ? String(value)
        : JSON.stringify(value);
  return (text ?? '').slice(0, VALUE_CHARACTERS_MAX);
}

const SECRET_NAME =
  /(?:^|[-_.])(?:api[-_]?keys?|apikey|admin[-_]?key|master[-_]?key|access[-_]?key(?:[-_]id)?|secret(?:[-_]?(?:key|access[-_]key))?|pass(?:w(?:or)?d)?|passphrase|credentials?|auth(?:orization)?|bearer|(?:hf|hub|auth|access|api|bearer|security|session|registry|vault|github|gh)[-_]?tokens?|token|salt[-_]?secret|private[-_]?key)$/i;

/** Whether a flag, field or variable of this name holds a key. `max-total-tokens` and `tokenizer` do not. */
export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name);
}

/** The value of a flag, field or variable as it may be kept: never a key, no user and password of an address. */
export function keepable(name: string, value: string | null): string | null {
  if (value === null) return null;
  if (isSecretName(name)) return value === '' ? '' : SECRET;
  return withoutUserInfo(/^\s*\{/.test(value) ? withoutSecretPairs(value) : value);
}

/** `"access_key": "…"` inside a JSON text. */
function withoutSecretPairs(text: string): string {
  return text.replaceAll(
    /(["'])([\w.-]{1,100})\1(\s{0,10}:\s{0,10})(["'])[^"']{0,2000}\4/g,
    (whole: string, ...parts: string[]) =>
      isSecretName(parts[1] ?? '')
        ? `${parts[0]}${parts[1]}${parts[0]}${parts[2]}${parts[3]}${SECRET}${parts[3]}`
        : whole,
  );
}

/** Variables that engines, transfer libraries and caches read; of any other only the name is kept. */
const KNOWN_VARIABLE =
  /^(?:SGLANG_|SGL_|VLLM_|LLAMA_|MC_|MOONCAKE_|NIXL_|UCX_|LMCACHE_|FLEXKV_|DYN_|COFFERDAM_|NCCL_|GLOO_|POD_IP$|PYTHONHASHSEED$|RAY_)/;

/** The value of a variable as it may be kept; null: it is set, to what is not told here. */
export function keepableVariable(name: string, value: string | null): string | null {
  if (value === null || !KNOWN_VARIABLE.test(name)) return null;
  return keepable(name, value.slice(0, VALUE_CHARACTERS_MAX));
}

/** `http://user:word@host` becomes `http://host`; also `Bearer …` is taken out. */
export function withoutUserInfo(text: string): string {
  return text
    .replaceAll(/(\b[a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/@]{1,500}@/gi, '$1')
    .replaceAll(/\b(bearer|basic)\s+[^\s'",]{1,500}/gi, `$1 ${SECRET}`);
}
