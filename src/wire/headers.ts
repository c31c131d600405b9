/**
 * Header rules. Nothing of a client's headers is passed on to an engine, and nothing of an engine's to a client: what is
 * answered is written here, by name.
 */
import type { IncomingMessage } from 'node:http';
import { CodedError } from '../base/errors.js';

/** Meant for one connection only, never relayed (RFC 9110, section 7.6.1; `keep-alive` and `proxy-connection` are older). */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Every header of a client that is read, on either port; nothing looks at another. */
export const READ_HEADERS = [
  'authorization',
  'content-encoding',
  'content-length',
  'host',
  'origin',
  'sec-fetch-dest',
  'sec-fetch-mode',
  'sec-fetch-site',
  'traceparent',
  'transfer-encoding',
  'x-request-id',
] as const;

export type ReadHeader = (typeof READ_HEADERS)[number];

/** A header of a client, by a name of the list; two of one name come joined with `, `, but for `authorization` and `host`. */
export function readHeader(request: IncomingMessage, name: ReadHeader): string | undefined {
  return request.headers[name] as string | undefined;
}

/** Every header that an answer may carry. No `access-control-*`: a browser page has no business here. */
export const ANSWERED_HEADERS: ReadonlySet<string> = new Set([
  'cache-control',
  'connection',
  'content-length',
  'content-type',
  'date',
  'keep-alive',
  'retry-after',
  'allow',
  'transfer-encoding',
  'www-authenticate',
  'x-accel-buffering',
  'x-content-type-options',
  'x-cofferdam-fault',
  'x-cofferdam-guards-off',
  'x-request-id',
]);

/** Characters of an `Authorization` header that is looked at. */
export const AUTHORIZATION_CHARACTERS_MAX = 4096;
const SCHEME = /^bearer +(\S+) *$/i;

/** How often a header came: node keeps the first `authorization` and `host` and drops the others in silence. */
export function headerCount(request: IncomingMessage, name: ReadHeader): number {
  const raw = request.rawHeaders;
  let count = 0;
  for (let i = 0; i < raw.length; i += 2) {
    const each = raw[i]!;
    if (each.length === name.length && each.toLowerCase() === name) count++;
  }
  return count;
}

/** The key of `Authorization: Bearer KEY` (RFC 6750, section 2.1), or null when there is none, or more than one. */
export function bearerKey(request: IncomingMessage): string | null {
  const header = readHeader(request, 'authorization');
  if (header === undefined || header.length > AUTHORIZATION_CHARACTERS_MAX) return null;
  if (headerCount(request, 'authorization') !== 1) return null;
  return SCHEME.exec(header)?.[1] ?? null;
}

const LOOPBACK_NAMES: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

/** The name of a `Host` header in lower case, without its port; null where it is none. */
export function hostName(header: string): string | null {
  const match = /^(\[[0-9a-fA-F:.]+\]|[^:[\]/@\s]+)(?::\d{1,5})?$/.exec(header);
  return match ? match[1]!.toLowerCase() : null;
}

export function isLoopback(address: string): boolean {
  return address === 'localhost' || address === '::1' || address === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(address);
}

/**
 * Which names a listener answers to: the loopback names, the address it is bound to and the configured names. A page in a
 * browser that has its own name point here (DNS rebinding) fails on this.
 */
export class HostRule {
  readonly #names: Set<string>;

  constructor(boundAddress: string, configured: readonly string[] = []) {
    const bound = boundAddress.includes(':') && !boundAddress.startsWith('[') ? `[${boundAddress}]` : boundAddress;
    this.#names = new Set([...LOOPBACK_NAMES, bound, ...configured].map((name) => name.toLowerCase()));
  }

  /** Throws `host_not_allowed`. The name that came is not repeated: a page could read it. */
  check(request: IncomingMessage): void {
    const header = readHeader(request, 'host');
    const name = header === undefined ? null : hostName(header);
    if (name !== null && this.#names.has(name) && headerCount(request, 'host') === 1) return;
    throw new CodedError(
      'host_not_allowed',
      'Expected one `Host` header that names this server (a loopback name, the bound address or a configured name).',
    );
  }
}
