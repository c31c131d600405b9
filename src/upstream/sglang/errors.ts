/** What SGLang's errors mean. Its texts are compared with these and never repeated. */
import { asShape, asText, field } from '../shapes.js';
import type { ErrorMeaning } from '../openai/run.js';
import type { UpstreamEnd } from '../upstream.js';

/** The prompt, or prompt and output, are longer than one of the engine's limits: tokenizer, scheduler, either side's queue. */
const TOO_LONG =
  /exceeds the maximum allowed length|model's (?:maximum )?context length|exceeds the maximum number of tokens|exceeds the (?:unified FULL\/SWA KV byte|KV memory) budget|requires too many SWA KV tokens|prompt is too long/i;
/** KV pages that decode got are not those that prefill computed. */
const CORRUPT = /KV checksum mismatch|(?:Metadata|Context) corruption detected/i;
const FULL = /queue is full|(?:waiting|running) timeout reached/i;
/** Characters of an error's text that are looked at. */
const TEXT_CHARACTERS_MAX = 4_000;

/** `status` null: the error was inside a 200, and may say its own. Null: the engine failed, and no more is known. */
export function sglangError(status: number | null, error: unknown): ErrorMeaning | null {
  const shape = asShape(error);
  const text = (shape === null ? '' : (asText(field(shape, 'message')) ?? '')).slice(0, TEXT_CHARACTERS_MAX);
  if (CORRUPT.test(text)) return { code: 'verification_failed', guard: 'checksum' };
  if (TOO_LONG.test(text)) return { code: 'context_length_exceeded', guard: null };
  if (FULL.test(text)) return { code: 'no_capacity', guard: null };
  const said = status ?? (shape === null ? undefined : field(shape, 'code'));
  return said === 400 || said === 422 ? { code: 'invalid_request', guard: null } : null;
}

/** Whether a request ended since its connection did: then the node is looked at again. */
export function isTransportFault(end: UpstreamEnd): boolean {
  if (end.kind !== 'failed') return false;
  return end.code === 'engine_unavailable' || /^the (?:answer was cut|connection failed)/.test(end.detail);
}
