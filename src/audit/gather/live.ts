/** Asking a running node: GET only, bounded in time and bytes, redirects not followed, keys only to their own origin. */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Clock } from '../../base/clock.js';
import type { EngineName, Reading } from '../../upstream/reading.js';
import type { Endpoint, RouteAnswer } from '../facts.js';
import { readAnswer, readAnyMetrics } from './classify.js';
import type { Piece } from './piece.js';

/** Bytes of one answer. */
export const ANSWER_BYTES_MAX = 16_777_216;
/** Milliseconds for one answer, and for all answers of one node. */
export const ANSWER_MS_MAX = 5_000;
export const NODE_MS_MAX = 15_000;
/** Nodes asked at once. */
export const NODES_AT_ONCE = 64;

/** Headers that go to one origin and to no other. */
export type OriginHeaders = ReadonlyMap<string, Readonly<Record<string, string>>>;

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly anyOrigin: boolean;
}

type Outcome = Answer | { readonly failure: string };

/** Asked first: which engine it is. */
const FIRST = '/v1/models';
const ROUTES: Readonly<Partial<Record<EngineName, readonly string[]>>> = {
  sglang: ['/server_info', '/model_info', '/v1/loads', '/metrics'],
  cofferdam: ['/server_info', '/metrics'],
  vllm: ['/version', '/metrics', '/server_info'],
  llamacpp: ['/props', '/slots', '/metrics'],
};
/** Where nothing tells the engine; `/workers` is a router's. */
const EVERY = ['/server_info', '/get_server_info', '/version', '/props', '/metrics', '/workers'];

export class NodeReader {
  readonly #clock: Clock;
  readonly #headers: OriginHeaders;

  constructor(clock: Clock, headers: OriginHeaders) {
    this.#clock = clock;
    this.#headers = headers;
  }

  /** Everything that one node tells. Never rejects. */
  async read(target: URL): Promise<Piece[]> {
    const visit = new Visit(target, this.#headers.get(target.origin) ?? null, this.#clock);
    try {
      return await visit.read();
    } finally {
      visit.close();
    }
  }
}

class Visit {
  readonly #target: URL;
  readonly #key: Readonly<Record<string, string>> | null;
  readonly #clock: Clock;
  readonly #agent: HttpAgent;
  readonly #endMs: number;
  readonly #routes: RouteAnswer[] = [];
  readonly #readings: { readonly path: string; readonly reading: Reading }[] = [];
  #failure: string | null = null;
  #answered = false;
  #anyOrigin = false;

  constructor(target: URL, key: Readonly<Record<string, string>> | null, clock: Clock) {
    this.#target = target;
    this.#key = key;
    this.#clock = clock;
    this.#endMs = clock.nowMs() + NODE_MS_MAX;
    const options = { keepAlive: true, maxSockets: 2 };
    this.#agent = target.protocol === 'https:' ? new HttpsAgent(options) : new HttpAgent(options);
  }

  close(): void {
    this.#agent.destroy();
  }

  async read(): Promise<Piece[]> {
    await this.#ask(FIRST);
    // One that does not answer at all is not asked again; one that answers badly may still tell more.
    if (this.#answered) {
      const engine = this.#readings[0]?.reading.engine ?? null;
      for (const path of (engine === null ? null : ROUTES[engine]) ?? EVERY) await this.#ask(path);
      if (engine === 'sglang' && !this.#has('/server_info')) await this.#ask('/get_server_info');
    }
    return this.#pieces();
  }

  #has(path: string): boolean {
    return this.#readings.some((one) => one.path === path);
  }

  async #ask(path: string): Promise<void> {
    const open = await this.#get(path, {});
    if ('failure' in open) {
      this.#failure ??= open.failure;
      this.#routes.push({ path, statusOpen: null, statusKeyed: null });
      return;
    }
    this.#answered = true;
    this.#anyOrigin ||= open.anyOrigin;
    const refused = open.status === 401 || open.status === 403;
    const keyed = refused && this.#key !== null ? await this.#get(path, this.#key) : null;
    const statusKeyed = keyed !== null && 'status' in keyed ? keyed.status : null;
    this.#routes.push({ path, statusOpen: open.status, statusKeyed });
    const answer = keyed !== null && 'status' in keyed ? keyed : open;
    if (answer.status >= 300 && answer.status < 400) this.#failure ??= `${path} redirects, which is not followed`;
    if (refused && this.#key === null) this.#failure ??= `${path} wants a key: give \`--api-key-env\``;
    if (answer.status === 200) this.#keep(path, answer.body);
  }

  #keep(path: string, body: string): void {
    const reading = path === '/metrics' ? readAnyMetrics(body) : readAnswer(json(body));
    if (reading !== null) this.#readings.push({ path, reading });
  }

  #pieces(): Piece[] {
    const told = this.#readings.length > 0;
    const endpoint: Endpoint = {
      origin: this.#target.origin,
      answered: told,
      failure: told ? null : (this.#failure ?? 'it answered, but as no engine that is known here'),
      routes: this.#routes,
      anyOrigin: this.#anyOrigin,
    };
    const base = { place: this.#target.origin, name: this.#target.host, endpoint };
    const pieces = this.#readings.map(
      ({ path, reading }): Piece => ({
        ...base,
        reading,
        source: { kind: path === '/metrics' ? 'metrics' : 'answer', name: `${this.#target.origin}${path}` },
      }),
    );
    if (told) return pieces;
    return [{ ...base, reading: { engine: null, facts: [] }, source: { kind: 'answer', name: this.#target.origin } }];
  }

  #get(path: string, headers: Readonly<Record<string, string>>): Promise<Outcome> {
    const leftMs = Math.min(ANSWER_MS_MAX, this.#endMs - this.#clock.nowMs());
    if (leftMs <= 0) return Promise.resolve({ failure: `no answer within ${NODE_MS_MAX / 1000} s` });
    const base = this.#target.pathname.replace(/\/+$/, '');
    return new Promise((resolve) => {
      const send = this.#target.protocol === 'https:' ? httpsRequest : httpRequest;
      const request = send(
        {
          agent: this.#agent,
          protocol: this.#target.protocol,
          hostname: this.#target.hostname.replace(/^\[(.*)\]$/, '$1'),
          port: this.#target.port,
          path: `${base}${path}`,
          method: 'GET',
          headers: { accept: '*/*', 'user-agent': 'cofferdam-audit', ...headers },
        },
        (response) => collect(response, done),
      );
      const timer = this.#clock.after(leftMs, () => {
        done({ failure: `no whole answer to ${path} within ${Math.round(leftMs)} ms` });
        request.destroy();
      });
      const done = (outcome: Outcome): void => {
        timer.cancel();
        resolve(outcome);
      };
      request.on('error', (error: NodeJS.ErrnoException) =>
        done({ failure: `no answer: ${error.code ?? error.name}` }),
      );
      request.end();
    });
  }
}

function collect(response: IncomingMessage, done: (outcome: Outcome) => void): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > ANSWER_BYTES_MAX) {
      done({ failure: `an answer of more than ${ANSWER_BYTES_MAX} bytes` });
      response.destroy();
    } else chunks.push(chunk);
  });
  response.on('error', () => done({ failure: 'the answer broke off' }));
  response.on('aborted', () => done({ failure: 'the answer broke off' }));
  response.on('end', () =>
    done({
      status: response.statusCode ?? 0,
      body: Buffer.concat(chunks).toString('utf8'),
      anyOrigin: response.headers['access-control-allow-origin'] === '*',
    }),
  );
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Runs `work` over `items`, so many at once; the results come in the order of the items. */
export async function inParallel<T, R>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < items.length) {
      const index = next++;
      results[index] = await work(items[index]!);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, lane));
  return results;
}
