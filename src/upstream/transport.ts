/** How engines are reached: over http, or over https against authorities that are checked. */
import { Agent as HttpAgent, type ClientRequest, request as httpRequest, type RequestOptions } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { assert } from '../base/assert.js';
import { isLoopback } from '../base/loopback.js';

export interface EngineTls {
  /** Certificates of authorities in PEM, in place of the system's; null: the system's. */
  readonly ca: string | null;
  /** False: any certificate is taken. Only for engines on loopback. @default true */
  readonly isVerified?: boolean;
}

/** Idle connections that are kept for the next request. */
const IDLE_SOCKETS_MAX = 256;
/** Shorter than engines keep theirs (5 s is usual): a request must not meet a socket that the engine is closing. */
const IDLE_SOCKET_MS_MAX = 2_000;

/** Connections to one engine; `destroy` ends them. */
export function engineAgent(url: URL, tls: EngineTls | null = null): HttpAgent {
  const options = {
    keepAlive: true,
    timeout: IDLE_SOCKET_MS_MAX,
    maxFreeSockets: IDLE_SOCKETS_MAX,
    scheduling: 'lifo',
  } as const;
  if (url.protocol === 'http:') return new HttpAgent(options);
  assert(url.protocol === 'https:', 'engines are reached over http or https');
  const isVerified = tls?.isVerified ?? true;
  assert(isVerified || isLoopback(url.hostname), 'certificates go unchecked on loopback only');
  return new HttpsAgent({
    ...options,
    rejectUnauthorized: isVerified,
    ...(tls === null || tls.ca === null ? {} : { ca: tls.ca }),
  });
}

/** A request to an engine, not yet ended. `headers`: names and values in turn; `host` is added. */
export function engineRequest(
  url: URL,
  agent: HttpAgent,
  method: 'GET' | 'POST',
  headers: readonly string[],
): ClientRequest {
  const isTls = url.protocol === 'https:';
  const options: RequestOptions = {
    agent,
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? (isTls ? 443 : 80) : Number(url.port),
    path: url.pathname + url.search,
    method,
    headers: ['host', url.host, ...headers],
  };
  return isTls ? httpsRequest(options) : httpRequest(options);
}

/** Why a connection failed, for operators: a code, never an address. */
export function connectionFailure(error: NodeJS.ErrnoException): string {
  return `the connection failed (${error.code ?? 'no code'})`;
}
