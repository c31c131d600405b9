import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Clock } from '../base/clock.js';
import { SseOverflow, SseReader } from '../wire/index.js';
import { type Answer, AnswerReader, type Outcome } from './answer.js';
import type { ProbeRoute, ProbeTarget, ProbeTenant } from './target.js';

/** When the client leaves of its own accord. With `when`: once it is told; of a stream it takes `reads` pieces of text, then no more. */
export type Leave =
  | { readonly afterMs: number }
  | { readonly atBytes: number }
  | { readonly atText: number }
  | { readonly when: Promise<void>; readonly reads: number };

export interface Ask {
  readonly tenant: ProbeTenant;
  /** The prompt, or the user's message where the route is chat. */
  readonly prompt: string;
  readonly maxTokens: number;
  readonly stream: boolean;
  /** Milliseconds from sending to the end; then it hung or fell silent. */
  readonly deadlineMs: number;
  /** @default the target's */
  readonly route?: ProbeRoute;
  /** @default 0 */
  readonly temperature?: number;
  /** Further fields of the body. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** Further headers, none of which may replace ours. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly leave?: Leave;
  /** A 429 is what the experiment asks about: it is its answer, and not waited out. */
  readonly returns429?: true;
}

/** Another request than a prompt: an admin route, for instance. */
export interface PlainAsk {
  readonly tenant: ProbeTenant | null;
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** As it goes onto the wire: encoded dots stay encoded. */
  readonly path: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly deadlineMs: number;
}

/** Bytes of one answer that are read. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;
const HTTP_OK = 200;

/**
 * Sends requests to the one origin that was named, says who it is, and never rejects: whatever happens is an answer. Redirects are not
 * followed and nothing is sent twice.
 */
export class ProbeClient {
  readonly #target: ProbeTarget;
  readonly #clock: Clock;
  readonly #agent: HttpAgent;
  readonly #identity: Readonly<Record<string, string>>;
  readonly #open = new Set<ProbeExchange>();
  #sent: number;

  /** `runId` goes with every request, so that the endpoint's operators can tell ours from their tenants'. Ids go on after `lastId`. */
  constructor(target: ProbeTarget, clock: Clock, version: string, runId: string, lastId: number = 0) {
    this.#sent = lastId;
    this.#target = target;
    this.#clock = clock;
    const options = { keepAlive: true, maxFreeSockets: Number.POSITIVE_INFINITY, timeout: 2_000 };
    this.#agent = target.origin.protocol === 'https:' ? new HttpsAgent(options) : new HttpAgent(options);
    this.#identity = { 'user-agent': `cofferdam-probe/${version}`, 'x-cofferdam-probe': runId };
  }

  get sent(): number {
    return this.#sent;
  }

  ask(ask: Ask): Promise<Answer> {
    return this.#send({ ...ask, ...postOf(this.#target, ask) }, ask.leave ?? null);
  }

  plain(ask: PlainAsk): Promise<Answer> {
    return this.#send(ask, null);
  }

  /** Leaves everything that is open: the operator wants the end now. */
  leaveAll(): void {
    for (const exchange of this.#open) exchange.leave();
  }

  close(): void {
    this.#agent.destroy();
  }

  #send(ask: PlainAsk, leave: Leave | null): Promise<Answer> {
    const id = `q-${++this.#sent}`;
    const { origin } = this.#target;
    const send = origin.protocol === 'https:' ? httpsRequest : httpRequest;
    const exchange = new ProbeExchange(this.#clock, id, ask, leave);
    const request = send({
      agent: this.#agent,
      host: origin.hostname.replace(/^\[|\]$/g, ''),
      ...(origin.port === '' ? {} : { port: origin.port }),
      method: ask.method,
      path: `${origin.pathname.replace(/\/$/, '')}${ask.path}`,
      headers: {
        ...ask.headers,
        ...(ask.body === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(ask.body) }),
        ...(ask.tenant === null || ask.tenant.key === null ? {} : { authorization: `Bearer ${ask.tenant.key}` }),
        ...this.#identity,
      },
    });
    this.#open.add(exchange);
    return exchange.run(request, ask.body).finally(() => this.#open.delete(exchange));
  }
}

/** How a prompt goes onto the wire. */
export function postOf(
  target: ProbeTarget,
  ask: Ask,
): { readonly method: 'POST'; readonly path: string; readonly body: string } {
  const route = ask.route ?? target.route;
  const body = JSON.stringify({
    model: target.model,
    ...(route === 'chat' ? { messages: [{ role: 'user', content: ask.prompt }] } : { prompt: ask.prompt }),
    max_tokens: ask.maxTokens,
    temperature: ask.temperature ?? 0,
    ...(ask.stream ? { stream: true, stream_options: { include_usage: true } } : {}),
    ...ask.fields,
  });
  return { method: 'POST', path: route === 'chat' ? '/v1/chat/completions' : '/v1/completions', body };
}

type Sending = ReturnType<typeof httpRequest>;

class ProbeExchange {
  readonly #clock: Clock;
  readonly #id: string;
  readonly #ask: PlainAsk;
  readonly #leave: Leave | null;
  readonly #reader = new AnswerReader();
  readonly #sentMs: number;
  #request: Sending | null = null;
  #response: IncomingMessage | null = null;
  #status: number | null = null;
  #retryAfterS: number | null = null;
  #sse: SseReader | null = null;
  #whole: Buffer[] = [];
  #bytes = 0;
  #texts = 0;
  #firstByteMs: number | null = null;
  #firstTextMs: number | null = null;
  #done = false;
  #ended = false;
  #finish: (answer: Answer) => void = () => {};

  constructor(clock: Clock, id: string, ask: PlainAsk, leave: Leave | null) {
    this.#clock = clock;
    this.#id = id;
    this.#ask = ask;
    this.#leave = leave;
    this.#sentMs = clock.nowMs();
  }

  run(request: Sending, body: string | undefined): Promise<Answer> {
    this.#request = request;
    return new Promise((resolve) => {
      const deadline = this.#clock.after(this.#ask.deadlineMs, () => this.#end(this.#bytes === 0 ? 'hung' : 'silent'));
      const leaving =
        this.#leave !== null && 'afterMs' in this.#leave
          ? this.#clock.after(this.#leave.afterMs, () => this.#end('left'))
          : null;
      if (this.#leave !== null && 'when' in this.#leave) void this.#leave.when.then(() => this.#end('left'));
      this.#finish = (answer) => {
        deadline.cancel();
        leaving?.cancel();
        resolve(answer);
      };
      request.on('error', () => this.#end(this.#status === null ? 'failed' : 'cut'));
      request.on('response', (response) => this.#onResponse(response));
      request.end(body);
    });
  }

  leave(): void {
    this.#end('left');
  }

  #onResponse(response: IncomingMessage): void {
    if (this.#done) return;
    this.#response = response;
    this.#status = response.statusCode ?? null;
    const retryAfter = Number(response.headers['retry-after'] ?? Number.NaN);
    this.#retryAfterS = Number.isFinite(retryAfter) && retryAfter >= 0 ? retryAfter : null;
    if ((response.headers['content-type'] ?? '').startsWith('text/event-stream')) {
      this.#sse = new SseReader((data) => this.#onEvent(data));
    }
    response.on('data', (chunk: Buffer) => this.#onData(chunk));
    response.on('error', () => this.#end('cut'));
    response.on('close', () => this.#end('cut'));
    response.on('end', () => this.#onEnd(response.complete));
  }

  #onData(chunk: Buffer): void {
    if (this.#done) return;
    this.#firstByteMs ??= this.#clock.nowMs() - this.#sentMs;
    this.#bytes += chunk.length;
    if (this.#bytes > ANSWER_BYTES_MAX) return this.#end('cut');
    try {
      if (this.#sse === null) this.#whole.push(chunk);
      else this.#sse.push(chunk);
    } catch (thrown) {
      if (!(thrown instanceof SseOverflow)) throw thrown;
      this.#reader.garbled = true;
      return this.#end('cut');
    }
    if (this.#leave !== null && 'atBytes' in this.#leave && this.#bytes >= this.#leave.atBytes) this.#end('left');
  }

  #onEvent(data: string): void {
    if (this.#done || data === '[DONE]') return;
    if (!this.#reader.take(data)) return;
    this.#firstTextMs ??= this.#clock.nowMs() - this.#sentMs;
    this.#texts++;
    if (this.#leave !== null && 'atText' in this.#leave && this.#texts >= this.#leave.atText) this.#end('left');
    if (this.#leave !== null && 'when' in this.#leave && this.#texts >= this.#leave.reads) this.#response?.pause();
  }

  #onEnd(complete: boolean): void {
    if (this.#done) return;
    if (
      this.#sse === null &&
      this.#whole.length > 0 &&
      this.#reader.take(Buffer.concat(this.#whole).toString('utf8'))
    ) {
      this.#firstTextMs ??= this.#clock.nowMs() - this.#sentMs;
    }
    this.#ended = complete;
    this.#end(this.#outcome(complete));
  }

  #outcome(complete: boolean): Outcome {
    if (this.#reader.error !== null || this.#status !== HTTP_OK) return 'refused';
    const cut =
      !complete ||
      this.#reader.garbled ||
      (this.#sse !== null && (this.#sse.cut || this.#reader.finishReason === null));
    return cut ? 'cut' : 'answered';
  }

  #end(outcome: Outcome): void {
    if (this.#done) return;
    this.#done = true;
    // A whole answer leaves its connection for the next request.
    if (!this.#ended) this.#request!.destroy();
    const reader = this.#reader;
    this.#finish({
      id: this.#id,
      tenant: this.#ask.tenant?.name ?? '',
      outcome,
      status: this.#status,
      sentMs: this.#sentMs,
      firstByteMs: this.#firstByteMs,
      firstTextMs: this.#firstTextMs,
      endMs: this.#clock.nowMs(),
      streamed: this.#sse !== null,
      content: reader.content,
      strings: reader.strings,
      usage: reader.usage,
      finishReason: reader.finishReason,
      error: reader.error,
      retryAfterS: this.#retryAfterS,
      models: reader.models,
      transfer: reader.transfer,
    });
  }
}
