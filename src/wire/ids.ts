/**
 * Ids of requests and of traces. A client may name its request and its trace; an engine gets a request id of our own, since
 * engines abort, cache and log by it, and a span of our own inside the client's trace.
 */
import { randomUUID } from 'node:crypto';

export const REQUEST_ID_CHARACTERS_MAX = 64;
const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

/** 32 hex digits of which 122 bits are random. */
export function freshId(): string {
  return randomUUID().replaceAll('-', '');
}

/** The id that a client gave its request, where it is one: 1 to 64 of `[A-Za-z0-9._-]`; else null. Two headers make none. */
export function checkedRequestId(header: string | undefined): string | null {
  return header !== undefined && REQUEST_ID.test(header) ? header : null;
}

/** Version, trace id, parent id and flags of a `traceparent` (W3C Trace Context, section 3.2), version 00 alone. */
const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;
const SAMPLED = 1;

/**
 * A `traceparent` for an engine: a new span in the client's trace, or in a new trace where the client's header is missing or not
 * exactly as the standard writes it. Of the flags only `sampled` is kept, and of the client's span nothing.
 */
export function childTraceparent(header: string | undefined): string {
  const match = header === undefined ? null : TRACEPARENT.exec(header);
  const known = match !== null && !isZero(match[1]!) && !isZero(match[2]!);
  const traceId = known ? match[1]! : freshId();
  const flags = known ? Number.parseInt(match[3]!, 16) & SAMPLED : 0;
  // The second half of an id begins with the bits of its variant, so that it is never all zero.
  return `00-${traceId}-${freshId().slice(16)}-0${flags}`;
}

function isZero(hex: string): boolean {
  return /^0+$/.test(hex);
}
