/** What llama-server's errors mean. Its texts are compared with these and never repeated. */
import type { ErrorMeaning } from '../openai/run.js';
import { asShape, field } from '../shapes.js';

const POOL_EXCEEDED = 'Context size has been exceeded';

/** Whether it has ended all that ran, since its pool was full. */
export function isPoolExceeded(error: unknown): boolean {
  const message = field(asShape(error) ?? {}, 'message');
  return typeof message === 'string' && message.startsWith(POOL_EXCEEDED);
}

/** `status` null: the error was inside a 200, and may say its own. Null: the engine failed, and no more is known. */
export function llamaError(status: number | null, error: unknown): ErrorMeaning | null {
  const shape = asShape(error) ?? {};
  const said = status ?? field(shape, 'code');
  if (said !== 400) return null;
  const tooLong = field(shape, 'type') === 'exceed_context_size_error';
  return { code: tooLong ? 'context_length_exceeded' : 'invalid_request', guard: null };
}
