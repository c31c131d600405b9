/** The one door to engines: http and https alike, keep-alive, redirects never followed. */
import { Agent as HttpAgent, type ClientRequest, request as httpRequest, type RequestOptions } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { assert } from '../base/assert.js';
import { isLoopback } from '../base/loopback.js';

/** How an engine's certificate is checked. */
export interface EngineTls {
  /** Certificates (PEM) to trust instead of the system's. @default the system's */
  readonly ca?: string;
  /** The name that the certificate is for, where it is not the URL's host. @default the URL's host */
  readonly serverName?: string;
  /** Any certificate is taken; only for an engine on loopback. @default false */
  readonly insecure?: boolean;
}

/** Idle connections that are kept for the next request. */
const IDLE_SOCKETS_MAX = 256;
/** Shorter than engines keep theirs (5 s is usual): a request must not meet a socket that the engine is closing. */
const IDLE_SOCKET_MS_MAX = 2_000;

/**
 * Connections to one engine, for `EngineCall` and `EndpointReader`; `destroy` closes them. `keepAlive` false: one for each request,
 * for an engine that closes them without saying so.
 */
export function engineAgent(url: URL, tls: EngineTls = {}, keepAlive = true): HttpAgent {
  const options = {
    keepAlive,
    timeout: IDLE_SOCKET_MS_MAX,
    maxFreeSockets: IDLE_SOCKETS_MAX,
    scheduling: 'lifo' as const,
  };
  if (url.protocol !== 'https:') return new HttpAgent(options);
  const { ca, serverName, insecure = false } = tls;
  assert(!insecure || isLoopback(url.hostname), 'certificates go unchecked on loopback only');
  return new HttpsAgent({
    ...options,
    rejectUnauthorized: !insecure,
    ...(ca === undefined ? {} : { ca }),
    ...(serverName === undefined ? {} : { servername: serverName }),
  });
}

/** A request to `url`, not sent yet. `headers` are names and values in turn; `host` is added in front. */
export function engineRequest(
  url: URL,
  options: Pick<RequestOptions, 'agent' | 'method'> & { readonly headers: readonly string[] },
): ClientRequest {
  assert(url.protocol === 'http:' || url.protocol === 'https:', 'engines are reached over http or https');
  const secure = url.protocol === 'https:';
  return (secure ? httpsRequest : httpRequest)({
    agent: options.agent,
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? (secure ? 443 : 80) : Number(url.port),
    path: url.pathname + url.search,
    method: options.method,
    headers: ['host', url.host, ...options.headers],
  });
}
