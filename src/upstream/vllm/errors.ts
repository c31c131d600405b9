/** What vLLM's errors mean. Its texts are compared with these and never repeated. */
import type { ErrorMeaning } from '../openai/run.js';
import { asShape, asText, field } from '../shapes.js';

/** Prompt, or prompt and output, are longer than the context; one of the texts never says so. */
const TOO_LONG =
  /maximum context length|maximum model length|context length is only|maximum input length|greater than max_model_len|max_tokens must be at least 1, got -?\d/i;
/** Characters of an error's text that are looked at. */
const TEXT_CHARACTERS_MAX = 4_000;

/** `status` null: the error was inside a 200, and may say its own. Null: the engine failed, and no more is known. */
export function vllmError(status: number | null, error: unknown): ErrorMeaning | null {
  const shape = asShape(error) ?? {};
  const said = status ?? field(shape, 'code');
  if (said !== 400 && said !== 422) return null;
  const text = (asText(field(shape, 'message')) ?? '').slice(0, TEXT_CHARACTERS_MAX);
  return { code: TOO_LONG.test(text) ? 'context_length_exceeded' : 'invalid_request', guard: null };
}
