/**
 * Operating errors. One table: code, HTTP status, OpenAI error type. `docs/ERRORS.md` holds the same set (tested both ways).
 * Texts are written where the error is raised, by one formula: what was expected, what came, what to change.
 */
export type OpenAiErrorType =
  | 'invalid_request_error'
  | 'authentication_error'
  | 'rate_limit_error'
  | 'service_unavailable'
  | 'server_error';

export interface ErrorRow {
  readonly status: number;
  readonly type: OpenAiErrorType;
}

const row = (status: number, type: OpenAiErrorType): ErrorRow => ({ status, type });

/** Codes that a tenant or an operator may see. */
export type ErrorCode =
  | 'invalid_api_key'
  | 'invalid_request'
  | 'invalid_json'
  | 'body_too_large'
  | 'unsupported_encoding'
  | 'field_not_allowed'
  | 'model_not_found'
  | 'not_found'
  | 'method_not_allowed'
  | 'host_not_allowed'
  | 'origin_not_allowed'
  | 'context_length_exceeded'
  | 'rate_limit_exceeded'
  | 'capacity_unknown'
  | 'no_capacity'
  | 'shutting_down'
  | 'verification_failed'
  | 'engine_failed'
  | 'engine_unavailable'
  | 'internal_error'
  | 'client_closed_request'
  | 'usage';

/** Status 0: never an HTTP answer (command line only). */
export const ERROR_TABLE: Readonly<Record<ErrorCode, ErrorRow>> = {
  invalid_api_key: row(401, 'authentication_error'),
  invalid_request: row(400, 'invalid_request_error'),
  invalid_json: row(400, 'invalid_request_error'),
  body_too_large: row(413, 'invalid_request_error'),
  unsupported_encoding: row(415, 'invalid_request_error'),
  field_not_allowed: row(400, 'invalid_request_error'),
  model_not_found: row(400, 'invalid_request_error'),
  not_found: row(404, 'invalid_request_error'),
  method_not_allowed: row(405, 'invalid_request_error'),
  host_not_allowed: row(421, 'invalid_request_error'),
  origin_not_allowed: row(403, 'invalid_request_error'),
  context_length_exceeded: row(400, 'invalid_request_error'),
  rate_limit_exceeded: row(429, 'rate_limit_error'),
  capacity_unknown: row(503, 'service_unavailable'),
  no_capacity: row(503, 'service_unavailable'),
  shutting_down: row(503, 'service_unavailable'),
  verification_failed: row(502, 'server_error'),
  engine_failed: row(502, 'server_error'),
  engine_unavailable: row(503, 'service_unavailable'),
  internal_error: row(500, 'server_error'),
  client_closed_request: row(499, 'invalid_request_error'),
  usage: row(0, 'invalid_request_error'),
};

export interface CodedErrorOptions {
  /** The request field that was wrong, for OpenAI's `param`. */
  readonly param?: string;
  /** Seconds for `Retry-After`. Never depends on other tenants. */
  readonly retryAfterS?: number;
  /** The method that the path is served for, for `Allow`; with `method_not_allowed` only. */
  readonly allow?: string;
  readonly cause?: unknown;
}

/** An operating error. `message` may be shown to a tenant: it holds no prompt, key, room or node name. */
export class CodedError extends Error {
  override readonly name = 'CodedError';
  readonly code: ErrorCode;
  readonly param: string | undefined;
  readonly retryAfterS: number | undefined;
  readonly allow: string | undefined;

  constructor(code: ErrorCode, message: string, options: CodedErrorOptions = {}) {
    // An operating error says what to do in words. Its stack says nothing more and would cost more than the rest of a
    // refusal, and a refusal must be cheaper than an answer.
    const stackTraceLimit = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.code = code;
    this.param = options.param;
    this.retryAfterS = options.retryAfterS;
    this.allow = options.allow;
  }

  get status(): number {
    return ERROR_TABLE[this.code].status;
  }
}
