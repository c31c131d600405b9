/** The engine over HTTP on free ports of 127.0.0.1, and a client for it. */
import assert from 'node:assert/strict';
import { type ClientRequest, request } from 'node:http';
import type { EngineStats } from '../../handoff/engine-port.js';
import { type EngineConfig, engineConfig, type EngineOptions } from '../config.js';
import { clock, isIdle, until } from '../harness.test.help.js';
import { ThreadedEngine } from '../threaded-engine.js';
import { EngineServer, type EngineServerOptions } from './server.js';

export { clock, until };

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

export interface Sent {
  readonly answer: Promise<Answer>;
  /** What has come so far. */
  soFar(): string;
  /** The client goes, without a word. */
  leave(): void;
}

export class Served {
  readonly engine: ThreadedEngine;
  readonly server: EngineServer;
  readonly config: EngineConfig;
  readonly urls: Readonly<Record<string, string>>;

  constructor(engine: ThreadedEngine, server: EngineServer, urls: Readonly<Record<string, string>>) {
    this.engine = engine;
    this.server = server;
    this.config = engine.config;
    this.urls = urls;
  }

  static async start(
    kind: 'single' | 'pair',
    options: EngineOptions = {},
    http: Partial<EngineServerOptions> = {},
  ): Promise<Served> {
    const config = engineConfig(options);
    const engine = await ThreadedEngine.start({ config, clock });
    const server = new EngineServer({ engine, config, clock, ...http });
    const ports = kind === 'single' ? { kind, port: 0 } : { kind, prefillPort: 0, decodePort: 0 };
    const urls = await server.listen('127.0.0.1', ports);
    return new Served(engine, server, Object.fromEntries(urls.map(({ role, url }) => [role, url])));
  }

  async close(): Promise<void> {
    await this.server.close();
    await this.engine.close();
  }

  send(role: string, method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Sent {
    return send(`${this.urls[role]}${path}`, method, body, headers);
  }

  async get(path: string, role = 'single'): Promise<Answer> {
    return this.send(role, 'GET', path).answer;
  }

  async getJson(path: string, role = 'single'): Promise<Json> {
    const { status, text } = await this.get(path, role);
    assert.equal(status, 200, text);
    return JSON.parse(text) as Json;
  }

  async post(path: string, body: unknown, role = 'single'): Promise<Answer> {
    return this.send(role, 'POST', path, body).answer;
  }

  async postJson(path: string, body: unknown, role = 'single'): Promise<Json> {
    const { status, text } = await this.post(path, body, role);
    assert.equal(status, 200, text);
    return JSON.parse(text) as Json;
  }

  /** Both legs at once, as a router sends them. */
  sendPair(path: string, body: Record<string, unknown>): { prefill: Sent; decode: Sent } {
    return { prefill: this.send('prefill', 'POST', path, body), decode: this.send('decode', 'POST', path, body) };
  }

  async pair(path: string, body: Record<string, unknown>): Promise<{ prefill: Answer; decode: Answer }> {
    const sent = this.sendPair(path, body);
    const [prefill, decode] = await Promise.all([sent.prefill.answer, sent.decode.answer]);
    return { prefill, decode };
  }

  /** Waits until every page of both pools is free, nobody runs and no room is held. */
  async idle(): Promise<EngineStats> {
    await until(
      () => isIdle(this.engine.stats()) && this.server.liveRooms === 0 && this.server.waitingLegs === 0,
      'the engine comes to rest',
    );
    return this.engine.stats();
  }
}

/** JSON whose shape the test knows. */
export type Json = ReturnType<typeof JSON.parse>;

function send(url: string, method: string, body: unknown, headers: Record<string, string>): Sent {
  const bytes = body === undefined ? null : typeof body === 'string' ? body : jsonWithRooms(body);
  let text = '';
  let made: ClientRequest | undefined;
  const answer = new Promise<Answer>((resolve, reject) => {
    made = request(url, { method, headers: { 'content-type': 'application/json', ...headers } }, (response) => {
      response.setEncoding('utf8');
      response.on('data', (piece: string) => {
        text += piece;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
      response.on('error', reject);
    });
    made.on('error', reject);
    made.end(bytes ?? undefined);
  });
  answer.catch(() => {});
  return { answer, soFar: () => text, leave: () => made?.destroy() };
}

/** JSON with 63-bit rooms as digits, as routers write them. */
export function jsonWithRooms(body: unknown): string {
  const marked = JSON.stringify(body, (_, value: unknown) => (typeof value === 'bigint' ? `digits:${value}` : value));
  return marked.replaceAll(/"digits:(\d+)"/g, '$1');
}

/** The frames of a stream; `[DONE]` as text. */
export function framesOf(text: string): Json[] {
  return text
    .split('\n\n')
    .filter((frame) => frame !== '')
    .map((frame) => {
      assert.ok(frame.startsWith('data: '), frame);
      const data = frame.slice('data: '.length);
      return data === '[DONE]' ? data : (JSON.parse(data) as Json);
    });
}
