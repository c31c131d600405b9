/** One request of a tenant on its way through the gateway, as the script sees it from outside and from inside. */
import { type ClientRequest, request } from 'node:http';
import type { EngineEnd } from './engine-types.js';

export type TenantName = 'acme' | 'globex';

/** The tenants in the order of their numbers in the page ledgers, which begin at 1. */
export const TENANTS: readonly TenantName[] = ['acme', 'globex'];

export interface CallOptions {
  readonly maxTokens: number;
  /** Fields beside the usual ones, such as engine-internal ones. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

export interface Answer {
  readonly status: number;
  /** The text of the answer; empty in an error. */
  readonly text: string;
  readonly errorCode: string | null;
  readonly errorMessage: string | null;
  /** What the engine put into the answer, such as a transfer handle. */
  readonly fields: Readonly<Record<string, unknown>>;
}

export class Call {
  readonly tenant: TenantName;
  readonly prompt: string;
  /** Slot and first attempt in the engine; null while it has none. */
  slot: number | null = null;
  attempt = 0;
  /** The engine took it; false where the gateway answered by itself, or has it wait. */
  isSubmitted = false;
  isReleased = false;
  end: EngineEnd | null = null;
  answer: Answer | null = null;
  /** Tokens that decode generated, whoever got them. */
  readonly tokens: number[] = [];
  readonly #request: ClientRequest;
  #hasLeft = false;

  constructor(tenant: TenantName, prompt: string, at: { readonly port: number; readonly key: string }, o: CallOptions) {
    this.tenant = tenant;
    this.prompt = prompt;
    // Greedy and with a seed, so that an answer depends on nothing but the pages that were read.
    const body = JSON.stringify({
      model: 'lab',
      prompt,
      max_tokens: o.maxTokens,
      temperature: 0,
      seed: 1,
      ...o.fields,
    });
    this.#request = request(
      {
        host: '127.0.0.1',
        port: at.port,
        path: '/v1/completions',
        method: 'POST',
        agent: false,
        headers: {
          authorization: `Bearer ${at.key}`,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
        },
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          this.answer = readAnswer(response.statusCode ?? 0, Buffer.concat(chunks).toString('utf8'));
        });
        response.on('error', () => {});
      },
    );
    // A client that leaves sees its own socket end; nobody else is told of it.
    this.#request.on('error', () => {});
    this.#request.end(body);
  }

  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** The client closes its connection. */
  leave(): void {
    this.#hasLeft = true;
    this.#request.destroy();
  }

  /** What the request's pages hold in the end: its prompt and what was generated for it; one character a token. */
  get pageText(): string {
    return this.prompt + String.fromCharCode(...this.tokens.map((id) => (id < 128 ? id : 0)));
  }
}

function readAnswer(status: number, body: string): Answer {
  const { choices, error, ...fields } = JSON.parse(body) as {
    choices?: { text: string }[];
    error?: { code: string; message: string };
  };
  return {
    status,
    text: choices?.[0]?.text ?? '',
    errorCode: error?.code ?? null,
    errorMessage: error?.message ?? null,
    fields,
  };
}
