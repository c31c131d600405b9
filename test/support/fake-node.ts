/** An engine's HTTP face for the audit's tests: fixed answers, and a memory of what was asked. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface FakeAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export type Handler = (request: IncomingMessage, response: ServerResponse) => void;

export interface FakeNode {
  readonly url: string;
  readonly asked: { readonly method: string; readonly path: string; readonly authorization: string | null }[];
  close(): Promise<void>;
}

/** Answers by path; what is not named is a 404. With `key`, everything but `/metrics` wants it. */
export async function fakeNode(
  answers: Readonly<Record<string, FakeAnswer | Handler>>,
  key: string | null = null,
): Promise<FakeNode> {
  const asked: FakeNode['asked'] = [];
  const server: Server = createServer((request, response) => {
    const path = request.url ?? '';
    const authorization = request.headers.authorization ?? null;
    asked.push({ method: request.method ?? '', path, authorization });
    if (key !== null && path !== '/metrics' && authorization !== `Bearer ${key}`) {
      response.writeHead(401).end('{"error":"Unauthorized"}');
      return;
    }
    const answer = answers[path];
    if (typeof answer === 'function') answer(request, response);
    else if (answer === undefined) response.writeHead(404).end('{"detail":"Not Found"}');
    else response.writeHead(answer.status ?? 200, answer.headers ?? {}).end(answer.body ?? '');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

export interface SglangShape {
  readonly role: 'prefill' | 'decode' | 'null';
  readonly version: string;
  readonly context: number;
  readonly pool: number;
  readonly flags?: Readonly<Record<string, unknown>>;
  readonly variables?: Readonly<Record<string, string>>;
}

/** The answers of one SGLang node, with the fields that 0.5.18 to 0.5.23 have. */
export function sglangAnswers(shape: SglangShape): Record<string, FakeAnswer> {
  const { role, version, context, pool } = shape;
  const state = {
    disaggregation_mode: role,
    memory_usage: { token_capacity: pool, token_capacity_swa: null },
    ...(shape.variables === undefined ? {} : { env_vars: shape.variables }),
  };
  const info = {
    model_path: '/models/GLM-5.3',
    served_model_name: 'glm',
    context_length: context,
    page_size: 64,
    tp_size: 8,
    dp_size: 1,
    host: '127.0.0.1',
    port: 30000,
    api_key: null,
    admin_api_key: null,
    disaggregation_mode: role,
    disaggregation_transfer_backend: 'mooncake',
    ...shape.flags,
    status: 'ready',
    max_total_num_tokens: pool,
    max_req_input_len: Math.min(context, pool) - 6,
    internal_states: [state],
    version,
  };
  const models = {
    object: 'list',
    data: [{ id: 'glm', object: 'model', owned_by: 'sglang', root: 'glm', parent: null, max_model_len: context }],
  };
  return { '/server_info': { body: JSON.stringify(info) }, '/v1/models': { body: JSON.stringify(models) } };
}
