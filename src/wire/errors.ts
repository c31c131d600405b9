import { CodedError, ERROR_TABLE, type ErrorCode } from '../base/errors.js';

/** OpenAI's error shape, as its clients read it from a body or from an event of a stream. */
export interface OpenAiError {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string;
  };
}

export function openAiError(code: ErrorCode, message: string, param: string | null = null): OpenAiError {
  return { error: { message, type: ERROR_TABLE[code].type, param, code } };
}

export function errorJson(error: CodedError): string {
  return JSON.stringify(openAiError(error.code, error.message, error.param ?? null));
}

/** Whatever was thrown, as an error that may be shown: nothing of an unexpected one reaches a tenant. */
export function asCodedError(thrown: unknown): CodedError {
  if (thrown instanceof CodedError) return thrown;
  return new CodedError('internal_error', 'The gateway failed while it handled this request.', { cause: thrown });
}
