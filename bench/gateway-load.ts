/** The requests of the gateway's figures and who sends them: a client of its own process, so that its CPU is not counted. */
import { Agent, request as httpRequest } from 'node:http';
import type { Clock } from '../src/base/clock.js';

/** Tokens are bytes here: a prompt of 4 KB fits, one a little longer does not. */
export const CONTEXT_TOKENS = 4352;
export const PROMPT_BYTES = 4096;
export const REFUSED_BYTES = 4400;
export const ANSWER_TOKENS = 16;
/** Pieces of a stream, each on its own: an engine's step comes every few milliseconds. */
export const STREAM_PIECES = 200;
export const PIECE_GAP_MS = 5;
export const KEYS: readonly string[] = ['bench-key-of-tenant-0', 'bench-key-of-tenant-1'];

const PATH = '/v1/chat/completions';
const CLIENTS_MAX = 128;

export interface Load {
  readonly promptBytes: number;
  readonly maxTokens: number;
  readonly stream: boolean;
  /** Status of every answer; another one ends the run. */
  readonly status: number;
}

export const PASS: Load = { promptBytes: PROMPT_BYTES, maxTokens: ANSWER_TOKENS, stream: false, status: 200 };
export const REFUSAL: Load = { ...PASS, promptBytes: REFUSED_BYTES, status: 400 };
export const STREAM: Load = { ...PASS, maxTokens: STREAM_PIECES, stream: true };

export class Client {
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: CLIENTS_MAX });
  readonly #clock: Clock;
  readonly #url: URL;
  #sent = 0;

  constructor(clock: Clock, url: string) {
    this.#clock = clock;
    this.#url = new URL(PATH, url);
  }

  /** `count` requests, `together` of them open at once. */
  async closedLoop(load: Load, count: number, together: number): Promise<void> {
    let left = count;
    const one = async (): Promise<void> => {
      while (left-- > 0) await this.send(load);
    };
    await Promise.all(Array.from({ length: together }, one));
  }

  /** `count` requests at a fixed rate, whatever comes back; milliseconds of each, from when it was due. */
  async openLoop(load: Load, count: number, perSecond: number): Promise<number[]> {
    const startMs = this.#clock.nowMs();
    const tookMs: number[] = [];
    const open: Promise<void>[] = [];
    const gapMs = 1000 / perSecond;
    while (open.length < count) {
      const due = Math.min(count, Math.floor((this.#clock.nowMs() - startMs) / gapMs));
      while (open.length < due) {
        const dueMs = startMs + (open.length + 1) * gapMs;
        open.push(this.send(load).then(() => void tookMs.push(this.#clock.nowMs() - dueMs)));
      }
      await new Promise<void>((resolve) => void this.#clock.after(1, resolve));
    }
    await Promise.all(open);
    return tookMs;
  }

  /** Resolves when the answer is there; rejects where its status is another one. */
  send(load: Load): Promise<void> {
    const number = this.#sent++;
    const content = `${number} `.padEnd(load.promptBytes, 'the quick brown fox jumps over the lazy dog ');
    const body = JSON.stringify({
      model: 'canned',
      messages: [{ role: 'user', content }],
      max_tokens: load.maxTokens,
      ...(load.stream ? { stream: true } : {}),
    });
    return new Promise((resolve, reject) => {
      const request = httpRequest(this.#url, {
        agent: this.#agent,
        method: 'POST',
        headers: this.#headers(number, body),
      });
      request.on('error', reject);
      request.on('response', (response) => {
        const { statusCode } = response;
        response.resume();
        response.on('error', reject);
        response.on('end', () => {
          if (statusCode === load.status) resolve();
          else reject(new Error(`Expected every answer to have status ${load.status}, got ${statusCode}.`));
        });
      });
      request.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }

  #headers(number: number, body: string): Record<string, string | number> {
    return {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      authorization: `Bearer ${KEYS[number % KEYS.length]}`,
    };
  }
}
