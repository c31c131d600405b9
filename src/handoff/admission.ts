/**
 * What fits: the comparison that the public incident lacked. Pure; used by the gateway's ladder and by the gateway machine alike.
 * The largest prompt served with at least one token of output is the smallest of context - 1, the prefill pool and the decode
 * pool: the first token comes from prefill, and the last token's KV is never stored.
 */
export type LimitName = 'advertised context' | 'prefill pool' | 'decode pool';

/** Tokens. A pool or context that is not known is `null`, which admits nothing. */
export interface AdmissionLimits {
  readonly context: number | null;
  readonly prefillPool: number | null;
  readonly decodePool: number | null;
}

export interface EffectiveLimit {
  readonly tokens: number;
  readonly limitedBy: LimitName;
}

/** The largest prompt served, and which number set it; `null` where one of them is unknown or holds nothing. */
export function effectiveLimit(limits: AdmissionLimits): EffectiveLimit | null {
  const { context, prefillPool, decodePool } = limits;
  if (!isCapacity(context) || !isCapacity(prefillPool) || !isCapacity(decodePool)) return null;
  let best: EffectiveLimit = { tokens: context - 1, limitedBy: 'advertised context' };
  if (prefillPool < best.tokens) best = { tokens: prefillPool, limitedBy: 'prefill pool' };
  if (decodePool < best.tokens) best = { tokens: decodePool, limitedBy: 'decode pool' };
  return best.tokens < 1 ? null : best;
}

function isCapacity(value: number | null): value is number {
  return value !== null && Number.isSafeInteger(value) && value > 0;
}

export type AdmissionVerdict =
  | { readonly kind: 'admitted'; readonly maxTokens: number; readonly clamped: boolean; readonly limit: EffectiveLimit }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'prompt-too-long'; readonly limit: EffectiveLimit }
  | { readonly kind: 'total-too-long'; readonly context: number; readonly limit: EffectiveLimit };

/**
 * Whether `promptTokens` with `maxTokens` of output (`null`: whatever is left of the context) may be sent.
 * Only an output too large for the decode pool is clamped; everything else that does not fit is refused.
 */
export function decideAdmission(
  promptTokens: number,
  maxTokens: number | null,
  limits: AdmissionLimits,
): AdmissionVerdict {
  const limit = effectiveLimit(limits);
  if (limit === null) return { kind: 'unknown' };
  if (promptTokens > limit.tokens) return { kind: 'prompt-too-long', limit };
  const context = limits.context as number;
  const wanted = maxTokens ?? context - promptTokens;
  if (promptTokens + wanted > context) return { kind: 'total-too-long', context, limit };
  // The pool stores the prompt and all of the output but its last token.
  const room = (limits.decodePool as number) - promptTokens + 1;
  return { kind: 'admitted', maxTokens: Math.min(wanted, room), clamped: wanted > room, limit };
}
