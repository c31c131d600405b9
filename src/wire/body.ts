/** Bodies: read up to a bound, never decompressed, parsed only when their nesting is bounded too. */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { CodedError } from '../base/errors.js';
import { readHeader } from './headers.js';

/** A prompt of a million tokens is about 4 MiB; twice that is refused. */
export const BODY_BYTES_MAX: number = 8 * 1024 * 1024;

/** Levels of `[` and `{`. OpenAI's own requests need six; no walk over a body goes deeper than this. */
export const JSON_DEPTH_MAX = 64;

/**
 * Values in a body of OpenAI's shape: 8192 messages of a few parts each need fewer. A body of 8 MiB can hold millions of empty
 * arrays, and to build and walk those holds up every other tenant for seconds.
 */
export const JSON_VALUES_MAX: number = 128 * 1024;

export interface BodyRules {
  readonly bytesMax: number;
  /** Called with the bytes of each chunk before it is kept; may throw a CodedError, which ends the reading. */
  readonly charge?: (bytes: number) => void;
}

/**
 * What the head alone decides: throws 415 or 413 before a byte of the body is read. A length together with chunked
 * (RFC 9112, section 6.3) is refused by node's parser already, and here again for parsers that are more lenient.
 */
export function checkBodyHead(request: IncomingMessage, bytesMax: number): void {
  const encoding = readHeader(request, 'content-encoding');
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity') {
    throw new CodedError('unsupported_encoding', 'Expected a body without `Content-Encoding`, got an encoded one.');
  }
  const length = readHeader(request, 'content-length');
  if (length !== undefined && readHeader(request, 'transfer-encoding') !== undefined) {
    throw new CodedError('invalid_request', 'Expected either `Content-Length` or `Transfer-Encoding`, got both.');
  }
  if (length !== undefined && Number(length) > bytesMax) throw tooLarge(bytesMax);
}

function tooLarge(bytesMax: number): CodedError {
  return new CodedError('body_too_large', `Expected a body of at most ${bytesMax} bytes, got more.`);
}

/** Resolves with the whole body; rejects with a CodedError: too large, or the client left. */
export function readBody(request: IncomingMessage, rules: BodyRules): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const settle = (outcome: () => void): void => {
      request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose);
      // A late error of the socket must find a listener.
      request.on('error', () => {});
      outcome();
    };
    const onData = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (bytes > rules.bytesMax) {
        request.pause();
        settle(() => reject(tooLarge(rules.bytesMax)));
        return;
      }
      try {
        rules.charge?.(chunk.length);
      } catch (thrown) {
        request.pause();
        settle(() => reject(thrown instanceof Error ? thrown : new CodedError('internal_error', 'The body failed.')));
        return;
      }
      chunks.push(chunk);
    };
    const onEnd = (): void => settle(() => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, bytes)));
    const onClose = (): void =>
      settle(() => reject(new CodedError('client_closed_request', 'The client left before its body was complete.')));
    request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose);
  });
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

const COMMA = 0x2c;

export interface JsonBounds {
  readonly depthMax: number;
  readonly valuesMax: number;
}

/** Which bound the JSON goes beyond; null: none. Reads bytes, builds nothing, and counts values as commas and openings. */
export function beyondBounds(bytes: Uint8Array, bounds: JsonBounds): 'depth' | 'values' | null {
  const { depthMax, valuesMax } = bounds;
  let depth = 0;
  let values = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    if (byte === QUOTE) {
      for (i++; i < bytes.length && bytes[i] !== QUOTE; i++) if (bytes[i] === BACKSLASH) i++;
    } else if (byte === 0x5b || byte === 0x7b) {
      if (++depth > depthMax) return 'depth';
      if (++values > valuesMax) return 'values';
    } else if (byte === COMMA) {
      if (++values > valuesMax) return 'values';
    } else if (byte === 0x5d || byte === 0x7d) depth--;
  }
  return null;
}

/** The body as a JSON object; throws `invalid_json` or, for another kind of value, `invalid_request`. */
export function parseJsonObject(body: Buffer, valuesMax: number = JSON_VALUES_MAX): Record<string, unknown> {
  if (!isUtf8(body)) throw new CodedError('invalid_json', 'Expected the body to be JSON in UTF-8, got other bytes.');
  const beyond = beyondBounds(body, { depthMax: JSON_DEPTH_MAX, valuesMax });
  if (beyond === 'depth') {
    throw new CodedError('invalid_json', `Expected JSON nested at most ${JSON_DEPTH_MAX} deep, got deeper.`);
  }
  if (beyond === 'values') {
    throw new CodedError('invalid_json', `Expected JSON of at most ${valuesMax} values, got more.`);
  }
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch {
    // V8's own message repeats a piece of the body, and bodies are not repeated.
    throw new CodedError('invalid_json', 'Expected the body to be JSON, got something that does not parse.');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new CodedError('invalid_request', 'Expected the body to be a JSON object, got another kind of value.');
  }
  return value as Record<string, unknown>;
}
