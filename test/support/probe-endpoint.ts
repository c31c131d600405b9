/** A small OpenAI-compatible endpoint that repeats codes as a model would, and the probe against it in this process. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { CliIo } from '../../src/cli/io.js';
import { runProgram } from '../../src/cli/program.js';
import { withFolder } from './audit-verb.js';

export const KEY_A = 'sk-first-key-of-tests-0001';
export const KEY_B = 'sk-second-key-of-tests-0002';
const TENANTS: Readonly<Record<string, string>> = { [KEY_A]: 'a', [KEY_B]: 'b' };
export const CONTEXT = 600;

export interface Posted {
  readonly tenant: string;
  readonly prompt: string;
  readonly maxTokens: number;
  readonly stream: boolean;
  /** From 1, over all prompts. */
  readonly number: number;
  readonly headers: IncomingMessage['headers'];
}

export interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly text?: string;
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number } | null;
  /** In place of the usual choice. */
  readonly choice?: Readonly<Record<string, unknown>>;
  /** No stream, though one was asked for. */
  readonly whole?: boolean;
  readonly error?: Readonly<Record<string, unknown>>;
}

/** What differs from the well-behaved one; null: nothing; `hang`: no answer. */
export type Behaviour = (posted: Posted, usual: Reply) => Reply | 'hang';

export interface Endpoint {
  readonly url: string;
  readonly port: number;
  readonly posted: readonly Posted[];
  close(): Promise<void>;
}

/** The code that the prompt states for the name that it asks for last. */
export function usualReply({ prompt, maxTokens }: Posted, charactersPerToken = 1): Reply {
  const tokens = Math.ceil(prompt.length / charactersPerToken);
  if (tokens > CONTEXT - 1)
    return {
      status: 400,
      error: {
        type: 'invalid_request_error',
        code: 'context_length_exceeded',
        message: `At most ${CONTEXT - 1} tokens, got ${tokens}.`,
      },
    };
  const name = /The code of (\w+):$/.exec(prompt)?.[1];
  const code = name === undefined ? undefined : new RegExp(`The code of ${name}: (\\S+)\\.\\n`).exec(prompt)?.[1];
  const text = (code === undefined ? ' and so on.' : ` ${code}.\n`).slice(0, maxTokens * charactersPerToken);
  return { text, usage: { prompt_tokens: tokens, completion_tokens: text.length } };
}

function send(response: ServerResponse, posted: Posted, reply: Reply): void {
  const { status = 200, headers = {}, text = '', usage = null, error, whole = false } = reply;
  if (error !== undefined || status !== 200) {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify({ error: error ?? { type: 'server_error', message: 'no' } }));
    return;
  }
  const choice = reply.choice ?? { index: 0, text, finish_reason: text.length >= posted.maxTokens ? 'length' : 'stop' };
  const rest = usage === null ? {} : { usage };
  if (!posted.stream || whole) {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ id: 'x', object: 'text_completion', choices: [choice], ...rest }));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.end(
    `data: ${JSON.stringify({ choices: [choice] })}\n\ndata: ${JSON.stringify({ choices: [], ...rest })}\n\ndata: [DONE]\n\n`,
  );
}

export async function startEndpoint(behaviour: Behaviour = (_, usual) => usual): Promise<Endpoint> {
  const posted: Posted[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const tenant = TENANTS[(request.headers.authorization ?? '').replace(/^Bearer /, '')];
      if (tenant === undefined) {
        send(response, { stream: false } as Posted, {
          status: 401,
          error: { type: 'authentication_error', code: 'invalid_api_key', message: 'no' },
        });
        return;
      }
      if (request.url === '/v1/models') {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ object: 'list', data: [{ id: 'lab', max_model_len: CONTEXT - 1 }] }));
        return;
      }
      if (request.method !== 'POST' || request.url?.startsWith('/v1/') !== true) {
        send(response, { stream: false } as Posted, { status: 404, error: { type: 'not_found', message: 'no' } });
        return;
      }
      const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as {
        prompt: string;
        max_tokens: number;
        stream?: boolean;
      };
      const one: Posted = {
        tenant,
        prompt: body.prompt,
        maxTokens: body.max_tokens,
        stream: body.stream === true,
        number: posted.length + 1,
        headers: request.headers,
      };
      posted.push(one);
      const reply = behaviour(one, usualReply(one));
      if (reply !== 'hang') send(response, one, reply);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${port}/v1`, port, posted, close };
}

/** Gives one tenant's last marker to the other, from the given prompt on. */
export function leaking(): Behaviour {
  const last = new Map<string, string>();
  return ({ tenant, prompt }, usual) => {
    const other = last.get(tenant === 'a' ? 'b' : 'a');
    const marker = /KVC-[a-z2-7]{26}/.exec(prompt)?.[0];
    if (marker !== undefined) last.set(tenant, marker);
    return marker === undefined && other !== undefined && usual.text !== undefined
      ? { ...usual, text: `so ${other}.` }
      : usual;
  };
}

export interface ProbeRan {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export const VARIABLES: Readonly<Record<string, string>> = { KEY_A, KEY_B };
export const TWO: readonly string[] = [
  '--tenant',
  'a=env:KEY_A',
  '--tenant',
  'b=env:KEY_B',
  '--model',
  'lab',
  '--seed',
  '7',
];

/** `cofferdam probe args…` with an io that remembers. */
export async function runProbeVerbHere(args: readonly string[], over: Partial<CliIo> = {}): Promise<ProbeRan> {
  let out = '';
  let err = '';
  const io: CliIo = {
    out: (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
    variables: VARIABLES,
    outIsTerminal: false,
    ...over,
  };
  const code = await runProgram(['probe', ...args], io, { faultNames: () => Promise.resolve([]) });
  return { code, out, err };
}

export interface ProbeJson {
  readonly verdict: string;
  readonly stopped: string | null;
  readonly throttled: number;
  readonly hits: readonly Readonly<Record<string, unknown>>[];
  readonly experiments: readonly {
    readonly name: string;
    readonly verdict: string;
    readonly sent: number;
    readonly hits: number;
    readonly bound: number | null;
    readonly control: string;
    readonly evidence: readonly string[];
  }[];
}

/** A test with an endpoint and a folder of its own. */
export function against(
  behaviour: Behaviour | undefined,
  body: (endpoint: Endpoint, folder: string) => Promise<void>,
): () => Promise<void> {
  return withFolder(async (folder) => {
    const endpoint = await startEndpoint(behaviour);
    try {
      await body(endpoint, folder);
    } finally {
      await endpoint.close();
    }
  });
}

export async function probeJson(args: readonly string[]): Promise<ProbeRan & { readonly json: ProbeJson }> {
  const ran = await runProbeVerbHere([...args, '--output', 'json']);
  return { ...ran, json: JSON.parse(ran.out) as ProbeJson };
}
