/** One request over node:http, whatever becomes of it: whole or streamed, with a deadline, with a client that can leave. */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { type Clock, SystemClock } from '../../src/base/clock.js';

export interface Said {
  /** 0: no answer began. */
  readonly status: number;
  /** All text of the answer, put together from its frames where it was streamed. */
  readonly text: string;
  /** Of `usage`; null where none was there. */
  readonly promptTokens: number | null;
  readonly finish: string | null;
  /** Message of an error, whole or as a frame; null without one. */
  readonly error: string | null;
  /** `silent`: the deadline came first. `left`: the client went. `broken`: the connection ended early. */
  readonly end: 'whole' | 'silent' | 'left' | 'broken';
  readonly ms: number;
  /** The answer as JSON where it is such, for what is not read here. */
  readonly json: Readonly<Record<string, unknown>> | null;
}

export interface Ask {
  readonly url: string;
  /** @default /v1/completions */
  readonly path?: string;
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Absent: GET. Text goes out as it is. */
  readonly body?: Readonly<Record<string, unknown>> | string;
  readonly deadlineMs: number;
}

export interface Asking {
  readonly said: Promise<Said>;
  /** Text that came so far. */
  text(): string;
  leave(): void;
}

const clock: Clock = new SystemClock();

/** Greedy, for the model `lab`. */
export function completion(
  prompt: string,
  maxTokens: number,
  more: Readonly<Record<string, unknown>> = {},
): Readonly<Record<string, unknown>> {
  return { model: 'lab', prompt, max_tokens: maxTokens, temperature: 0, ...more };
}

export function ask(options: Ask): Promise<Said> {
  return begin(options).said;
}

export function begin(options: Ask): Asking {
  const { url, path = '/v1/completions', key, headers = {}, body, deadlineMs } = options;
  const startMs = clock.nowMs();
  const reader = new Reader();
  const bytes = body === undefined ? null : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  const call = httpRequest(url + path, {
    method: bytes === null ? 'GET' : 'POST',
    agent: false,
    headers: {
      ...headers,
      ...(bytes === null ? {} : { 'content-type': 'application/json', 'content-length': bytes.length }),
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    },
  });
  let ended: Said['end'] | null = null;
  const leave = (why: 'silent' | 'left'): void => {
    ended ??= why;
    call.destroy();
  };
  const timer = clock.after(deadlineMs, () => leave('silent'));
  const over = new Promise<boolean>((resolve) => {
    call.on('error', () => resolve(false));
    call.on('close', () => resolve(false));
    call.on('response', (response) => void reader.read(response).then(resolve));
  });
  call.end(bytes ?? undefined);
  const said = over.then((isWhole): Said => {
    timer.cancel();
    return { ...reader.seen(), end: ended ?? (isWhole ? 'whole' : 'broken'), ms: Math.round(clock.nowMs() - startMs) };
  });
  return { said, text: () => reader.text, leave: () => leave('left') };
}

interface Shape {
  readonly choices?: readonly {
    readonly text?: string;
    readonly message?: { readonly content?: string | null };
    readonly delta?: { readonly content?: string | null };
    readonly finish_reason?: string | null;
  }[];
  readonly usage?: { readonly prompt_tokens?: number } | null;
  readonly error?: { readonly message?: string } | string | null;
  readonly message?: string;
  readonly object?: string;
}

class Reader {
  text = '';
  #status = 0;
  #promptTokens: number | null = null;
  #finish: string | null = null;
  #error: string | null = null;
  #json: Record<string, unknown> | null = null;

  seen(): Omit<Said, 'end' | 'ms'> {
    const { text } = this;
    const said = { promptTokens: this.#promptTokens, finish: this.#finish, error: this.#error, json: this.#json };
    return { status: this.#status, text, ...said };
  }

  /** Whether the answer came to its proper end. */
  async read(response: IncomingMessage): Promise<boolean> {
    this.#status = response.statusCode ?? 0;
    const isStream = (response.headers['content-type'] ?? '').startsWith('text/event-stream');
    let rest = '';
    let isDone = false;
    try {
      for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) {
        rest += chunk;
        if (!isStream) continue;
        const frames = rest.split(/\r?\n\r?\n/);
        rest = frames.pop() ?? '';
        for (const frame of frames) isDone = this.#frame(frame) || isDone;
      }
      if (!isStream) this.#whole(rest);
      return isStream ? isDone : response.complete;
    } catch {
      return false;
    }
  }

  #frame(frame: string): boolean {
    const data = /^data: ?(.*)$/m.exec(frame)?.[1];
    if (data === undefined) return false;
    if (data === '[DONE]') return true;
    this.#whole(data);
    return false;
  }

  #whole(text: string): void {
    try {
      this.#take(JSON.parse(text) as Shape);
    } catch {
      this.#error ??= this.#status === 200 ? null : text.slice(0, 300);
    }
  }

  #take(shape: Shape): void {
    this.#json = shape as Record<string, unknown>;
    for (const { text, message, delta, finish_reason } of shape.choices ?? []) {
      this.text += text ?? message?.content ?? delta?.content ?? '';
      this.#finish = finish_reason ?? this.#finish;
    }
    this.#promptTokens = shape.usage?.prompt_tokens ?? this.#promptTokens;
    const { error } = shape;
    if (error !== undefined && error !== null) {
      this.#error = typeof error === 'string' ? error : (error.message ?? JSON.stringify(error));
    } else if (shape.object === 'error' && shape.message !== undefined) this.#error = shape.message;
  }
}

/** What came back, in a few words: status, counts, the beginning of an error. Never the text. */
export function inWords({ status, end, promptTokens, error, finish, ms }: Said): string {
  const seconds = `${(ms / 1000).toFixed(1)} s`;
  if (status === 0) return end === 'silent' ? `nothing for ${seconds}` : `no answer (${end})`;
  const parts = [
    String(status),
    ...(promptTokens === null ? [] : [`prompt_tokens ${promptTokens}`]),
    ...(finish === null || finish === 'length' || finish === 'stop' ? [] : [`finish ${finish}`]),
    ...(error === null ? [] : [`"${error.replaceAll(/\s+/g, ' ').slice(0, 160)}"`]),
    ...(end === 'whole' ? [] : [end === 'silent' ? `then silence, ${seconds} in all` : end]),
  ];
  return parts.join(', ');
}
