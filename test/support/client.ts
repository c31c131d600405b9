/** A client over node:http that can leave at any moment: half a body, before the answer, or in the middle of it. */
import { type IncomingMessage, request } from 'node:http';

export interface Answered {
  /** 0: it left before an answer began. */
  readonly status: number;
  /** The answer's text, put together from its frames where it was streamed. */
  readonly text: string;
  /** The code of an error, whole or as a frame; null without one. */
  readonly error: string | null;
  /** Whether the answer came to its proper end. */
  readonly whole: boolean;
}

export interface Asking {
  readonly answered: Promise<Answered>;
  /** Leaves now. */
  leave(): void;
}

export interface AskOptions {
  readonly url: string;
  readonly key: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** Bytes of the body that are sent; the rest never comes. */
  readonly bytes?: number;
  /** Called with the text so far whenever some came. */
  readonly onText?: (text: string) => void;
}

interface Shape {
  readonly choices?: readonly { readonly text?: string; readonly finish_reason?: string | null }[];
  readonly error?: { readonly code: string };
}

/** `POST /v1/completions`. Never rejects: a connection that breaks gives what came until then. */
export function askCompletion(options: AskOptions): Asking {
  const bytes = Buffer.from(JSON.stringify({ model: 'lab', ...options.body }));
  const call = request(`${options.url}/v1/completions`, {
    method: 'POST',
    agent: false,
    headers: {
      authorization: `Bearer ${options.key}`,
      'content-type': 'application/json',
      'content-length': bytes.length,
    },
  });
  const answered = new Promise<Answered>((resolve) => {
    call.on('error', () => resolve({ status: 0, text: '', error: null, whole: false }));
    call.on('response', (response) => void readAnswer(response, options.onText).then(resolve));
  });
  if (options.bytes === undefined) call.end(bytes);
  else call.write(bytes.subarray(0, options.bytes));
  return { answered, leave: () => call.destroy() };
}

async function readAnswer(response: IncomingMessage, onText?: (text: string) => void): Promise<Answered> {
  const streamed = (response.headers['content-type'] ?? '').startsWith('text/event-stream');
  const status = response.statusCode ?? 0;
  let raw = '';
  let text = '';
  let error: string | null = null;
  let whole = false;
  try {
    for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) {
      raw += chunk;
      if (!streamed) continue;
      const frames = raw.split('\n\n');
      raw = frames.pop() ?? '';
      for (const frame of frames) {
        const data = frame.slice('data: '.length);
        if (data === '[DONE]') whole = true;
        else ({ text, error } = taken(JSON.parse(data) as Shape, text, error));
      }
      onText?.(text);
    }
    if (!streamed) {
      ({ text, error } = taken(JSON.parse(raw) as Shape, text, error));
      whole = response.complete;
    }
  } catch {
    // Left, or broken off: what came is what counts.
  }
  return { status, text, error, whole };
}

function taken(shape: Shape, text: string, error: string | null): { text: string; error: string | null } {
  return { text: text + (shape.choices?.[0]?.text ?? ''), error: shape.error?.code ?? error };
}
