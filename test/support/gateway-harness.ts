/** A whole gateway on real HTTP over an engine that echoes, and the means to talk to it, politely and otherwise. */
import { connect, type Socket } from 'node:net';
import { type Clock, SystemClock, sleep } from '../../src/base/clock.js';
import type { GatewayFinding } from '../../src/gateway/findings.js';
import { Gateway, type GatewayOptions } from '../../src/gateway/server.js';
import { keyDigest, TenantRegistry } from '../../src/gateway/tenants.js';
import { EmbeddedUpstream } from '../../src/upstream/embedded/adapter.js';
import type { Upstream } from '../../src/upstream/upstream.js';
import { byteCodec } from './byte-codec.js';
import { EchoEngine, type EchoOptions } from './echo-engine.js';

export const ACME_KEY = 'acme-key-0123456789';
export const ACME_SECOND_KEY = 'acme-key-second-0123';
export const GLOBEX_KEY = 'globex-key-0123456789';
export const DISABLED_KEY = 'globex-key-disabled-01';

/** Bytes of the template around one user message. */
export const TEMPLATE_TOKENS: number = byteCodec.countTokens(byteCodec.renderChat([{ role: 'user', content: '' }]));

export interface Harness {
  readonly clock: Clock;
  readonly engine: EchoEngine;
  readonly upstream: EmbeddedUpstream;
  readonly gateway: Gateway;
  readonly findings: GatewayFinding[];
  readonly url: string;
  readonly port: number;
  post(path: string, body: unknown, options?: PostOptions): Promise<Response>;
  close(): Promise<void>;
}

export interface PostOptions {
  readonly key?: string | null;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}

export type HarnessOptions = Partial<GatewayOptions> & {
  readonly engine?: Partial<EchoOptions>;
  /** The one upstream, instead of the engine that echoes. */
  readonly upstream?: Upstream;
};

export function testTenants(): TenantRegistry {
  return new TenantRegistry(
    [
      { name: 'acme', keys: [{ sha256: keyDigest(ACME_KEY) }, { sha256: keyDigest(ACME_SECOND_KEY) }] },
      {
        name: 'globex',
        keys: [{ sha256: keyDigest(GLOBEX_KEY) }, { sha256: keyDigest(DISABLED_KEY), disabled: true }],
      },
    ],
    'a secret for tests',
  );
}

export async function startHarness(options: HarnessOptions = {}): Promise<Harness> {
  const clock = new SystemClock();
  const { engine: engineOptions, upstream: other, ...rest } = options;
  const engine = new EchoEngine({ clock, ...engineOptions });
  const upstream = new EmbeddedUpstream({ engine, codec: byteCodec, clock, selfTestTenant: 255 });
  const findings: GatewayFinding[] = [];
  const gateway = new Gateway({
    upstreams: [other ?? upstream],
    tenants: testTenants(),
    clock,
    findings: { raise: (finding) => findings.push(finding) },
    stats: () => engine.stats(),
    closeGraceMs: 100,
    ...rest,
  });
  const { port, url } = await gateway.listen({ host: '127.0.0.1', port: 0 });
  const post = (path: string, body: unknown, how: PostOptions = {}): Promise<Response> => {
    const key = how.key === undefined ? ACME_KEY : how.key;
    return fetch(url + path, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...how.headers,
      },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(how.signal === undefined ? {} : { signal: how.signal }),
    });
  };
  return { clock, engine, upstream, gateway, findings, url, port, post, close: () => gateway.close() };
}

/** Waits until `test` holds; rejects after `msMax` with the words. */
export async function until(clock: Clock, words: string, test: () => boolean, msMax = 3000): Promise<void> {
  const endMs = clock.nowMs() + msMax;
  while (!test()) {
    if (clock.nowMs() > endMs) throw new Error(`waited ${msMax} ms in vain for: ${words}`);
    await sleep(clock, 2);
  }
}

/** Nothing is held for anybody any more. */
export function idle(harness: Harness): boolean {
  const { room, accounts, open } = harness.gateway;
  const empty = accounts.every(
    (each) =>
      each.running === 0 &&
      each.waiting === 0 &&
      each.leasedTokens === 0 &&
      each.drainingTokens === 0 &&
      each.bodyBytes === 0,
  );
  return empty && open === 0 && room.running === 0 && room.waiting === 0 && room.heldTokens === 0;
}

/** A raw socket, and all it has received; `closed` resolves at its end. */
export interface RawClient {
  readonly socket: Socket;
  readonly closed: Promise<void>;
  received(): string;
  /** The last two chunks: cheap to look at while megabytes come. */
  latest(): string;
}

export function rawClient(port: number): Promise<RawClient> {
  return new Promise((resolve, reject) => {
    let text = '';
    let latest: [string, string] = ['', ''];
    const socket = connect(port, '127.0.0.1');
    const closed = new Promise<void>((end) => socket.on('close', () => end()));
    socket.on('data', (chunk: Buffer) => {
      latest = [latest[1], chunk.toString('latin1')];
      text += latest[1];
    });
    socket.on('error', (error) => {
      if (socket.connecting) reject(error);
    });
    socket.on('connect', () => resolve({ socket, closed, received: () => text, latest: () => latest.join('') }));
  });
}

/** A request as bytes, with what `fetch` would not send. */
export function rawRequest(path: string, body: string, headers: readonly string[] = []): string {
  const lines = [`POST ${path} HTTP/1.1`, 'Host: localhost', 'Content-Type: application/json', ...headers];
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

export const AUTH: string = `Authorization: Bearer ${ACME_KEY}`;
