/**
 * How a request fails, in SGLang's terms: where it failed decides the shape. What the door (its tokenizer process) refuses is an
 * HTTP status for the OpenAI routes, streamed or not. What the engine (its scheduler) refuses comes after the head of a stream
 * is out, so a stream gets 200 and a frame with the error.
 */
import { CodedError, ERROR_TABLE, type ErrorCode } from '../../base/errors.js';
import type { EngineEnd } from '../../handoff/engine-port.js';
import { RETRY_AFTER_S } from './bounds.js';

export interface Failure {
  readonly at: 'door' | 'engine';
  readonly status: number;
  readonly message: string;
}

const TOO_LONG = 413;

/** The table's status, but 500 where a gateway would say 502: this is the engine itself. */
function statusOf(code: ErrorCode): number {
  const { status } = ERROR_TABLE[code];
  return status === 502 || status === 0 ? 500 : status;
}

export function doorFailure(error: CodedError): Failure {
  return { at: 'door', status: statusOf(error.code), message: error.message };
}

export function badRequest(message: string): CodedError {
  return new CodedError('invalid_request', message);
}

/** For a request that the engine, or the joining of its legs, did not let through. */
export function engineFailure(status: number, message: string): Failure {
  return { at: 'engine', status, message };
}

export function failureOfEnd(end: EngineEnd): Failure {
  const code = end.error?.code ?? 'engine_failed';
  const status = code === 'client_closed_request' ? 500 : statusOf(code);
  return engineFailure(status, end.error?.message ?? 'The engine could not finish this request. Send it again.');
}

export const SHUTTING_DOWN: Failure = engineFailure(503, 'The engine is shutting down; send the request again later.');

export function failureHeaders(failure: Failure): string[] {
  return failure.status === 503 ? ['retry-after', String(RETRY_AFTER_S)] : [];
}

/** The names that SGLang gives errors: in a body, and in a frame of an OpenAI stream. */
export function errorType(status: number): string {
  if (status === 401) return 'Unauthorized';
  if (status < 500) return status === 404 ? 'NotFoundError' : 'BadRequestError';
  return String(status);
}

export function frameType(status: number): string {
  if (status < 500) return status === TOO_LONG ? 'REQUEST_ENTITY_TOO_LARGE' : 'BAD_REQUEST';
  return status === 503 ? 'SERVICE_UNAVAILABLE' : 'INTERNAL_SERVER_ERROR';
}
