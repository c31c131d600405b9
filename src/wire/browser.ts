/** What a port that people open in a browser needs beside the key and `Host`: the same origin, and a key that a browser can send. */
import type { IncomingMessage } from 'node:http';
import { CodedError } from '../base/errors.js';
import { AUTHORIZATION_CHARACTERS_MAX, headerCount, readHeader } from './headers.js';

const BASIC = /^basic +([A-Za-z0-9+/]+={0,2}) *$/i;

/** The password of `Authorization: Basic` (RFC 7617; the user's name is not looked at), or null when there is none. */
export function basicPassword(request: IncomingMessage): string | null {
  const header = readHeader(request, 'authorization');
  if (header === undefined || header.length > AUTHORIZATION_CHARACTERS_MAX) return null;
  if (headerCount(request, 'authorization') !== 1) return null;
  const encoded = BASIC.exec(header)?.[1];
  if (encoded === undefined) return null;
  const pair = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = pair.indexOf(':');
  return colon < 0 ? null : pair.slice(colon + 1);
}

/**
 * Throws `origin_not_allowed` for what a page of another origin asks: with `Origin` where the browser sends it, and with Fetch
 * Metadata (`Sec-Fetch-*`), which also comes with images, scripts and frames, where `Origin` does not. A link from elsewhere that
 * opens a page here is let through: what it opens, the other page can't read. Clients that are no browser send neither.
 * `Host` is to be checked before.
 */
export function checkSameOrigin(request: IncomingMessage): void {
  const origin = readHeader(request, 'origin');
  const host = readHeader(request, 'host');
  const own = origin === undefined || (headerCount(request, 'origin') === 1 && isOriginOf(origin, host ?? ''));
  if (own && isSameSite(request)) return;
  // What came is not repeated.
  throw new CodedError(
    'origin_not_allowed',
    'Expected a request from this server’s own page, or from no page, got one from another origin. Open the page at its own address.',
  );
}

function isOriginOf(origin: string, host: string): boolean {
  const match = /^https?:\/\/([^/]+)$/i.exec(origin);
  return match !== null && match[1]!.toLowerCase() === host.toLowerCase();
}

function isSameSite(request: IncomingMessage): boolean {
  const site = readHeader(request, 'sec-fetch-site');
  if (site === undefined || site === 'same-origin' || site === 'none') return true;
  return readHeader(request, 'sec-fetch-mode') === 'navigate' && readHeader(request, 'sec-fetch-dest') === 'document';
}
