/**
 * Sends both legs of a prefill/decode pair and answers with what decode said, as balancers do today: nothing is counted, prefill's
 * answer is read and thrown away, and what a client adds to the body goes along. For the "without Cofferdam" side; not shipped.
 */
import { randomBytes } from 'node:crypto';
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';

/** Who prefills: its URL, and where decode finds its KV (SGLang). */
export interface PrefillNode {
  readonly url: string;
  readonly bootstrapPort: number;
}

export type Pairing =
  /** Both legs at once, joined by a random room. */
  | { readonly kind: 'sglang'; readonly prefill: readonly PrefillNode[]; readonly decode: string }
  /** Prefill first; decode gets the transfer parameters of its answer. A client's own go through. */
  | { readonly kind: 'nixl'; readonly prefill: string; readonly decode: string };

export interface Splitter {
  readonly url: string;
  close(): Promise<void>;
}

type Body = Readonly<Record<string, unknown>>;

const ROOM_MASK = 2n ** 63n - 1n;

export async function startSplitter(pairing: Pairing): Promise<Splitter> {
  let turn = 0;
  const server = createServer((asked, answer) => {
    answer.on('error', () => undefined);
    void readAll(asked)
      .then((bytes) => {
        const path = asked.url ?? '/';
        if (asked.method !== 'POST') return relay(answer, pairing.decode, path, null);
        if (pairing.kind === 'nixl') return oneAfterTheOther(answer, pairing, path, bytes);
        const prefill = pairing.prefill[turn++ % pairing.prefill.length]!;
        return bothAtOnce(answer, prefill, pairing.decode, path, bytes);
      })
      .catch(() => answer.destroy());
  });
  server.requestTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${portOf(server)}`, close: () => closed(server) };
}

function bothAtOnce(
  answer: ServerResponse,
  prefill: PrefillNode,
  decode: string,
  path: string,
  bytes: Buffer,
): Promise<void> {
  const room = randomBytes(8).readBigUInt64BE() & ROOM_MASK;
  const body = withRoom(bytes, new URL(prefill.url).hostname, prefill.bootstrapPort, room);
  const leg = post(prefill.url, path, body);
  leg.on('response', (response) => response.resume());
  leg.on('error', () => undefined);
  answer.on('close', () => {
    if (!answer.writableFinished) leg.destroy();
  });
  return relay(answer, decode, path, body);
}

/** The three fields after all others; written as text, since a room does not fit a number of JavaScript. */
export function withRoom(bytes: Buffer, host: string, port: number, room: bigint): Buffer {
  const {
    bootstrap_host: _host,
    bootstrap_port: _port,
    bootstrap_room: _room,
    ...rest
  } = JSON.parse(bytes.toString('utf8')) as Body;
  const text = JSON.stringify({ ...rest, bootstrap_host: host, bootstrap_port: port });
  return Buffer.from(`${text.slice(0, -1)},"bootstrap_room":${room}}`);
}

const ASK_PREFILL = {
  do_remote_decode: true,
  do_remote_prefill: false,
  remote_engine_id: null,
  remote_block_ids: null,
  remote_host: null,
  remote_port: null,
};

async function oneAfterTheOther(
  answer: ServerResponse,
  { prefill, decode }: { readonly prefill: string; readonly decode: string },
  path: string,
  bytes: Buffer,
): Promise<void> {
  const body = JSON.parse(bytes.toString('utf8')) as Body;
  const own = body.kv_transfer_params as { readonly do_remote_decode?: boolean } | undefined;
  if (own !== undefined && own !== null) return relay(answer, own.do_remote_decode ? prefill : decode, path, bytes);
  const { stream_options: _options, max_completion_tokens: _max, ...rest } = body;
  const first = { ...rest, stream: false, max_tokens: 1, kv_transfer_params: ASK_PREFILL };
  const said = await whole(post(prefill, path, Buffer.from(JSON.stringify(first))));
  if (said.status !== 200) {
    answer.writeHead(said.status, { 'content-type': 'application/json' }).end(said.bytes);
    return;
  }
  const { kv_transfer_params } = JSON.parse(said.bytes.toString('utf8')) as Body;
  await relay(answer, decode, path, Buffer.from(JSON.stringify({ ...body, kv_transfer_params })));
}

function post(url: string, path: string, bytes: Buffer): ReturnType<typeof httpRequest> {
  const headers = { 'content-type': 'application/json', 'content-length': bytes.length };
  const call = httpRequest(url + path, { method: 'POST', agent: false, headers });
  call.end(bytes);
  return call;
}

/** Asks and answers with what comes; ends the call when the client leaves. */
function relay(answer: ServerResponse, url: string, path: string, bytes: Buffer | null): Promise<void> {
  const call = bytes === null ? httpRequest(url + path, { agent: false }).end() : post(url, path, bytes);
  answer.on('close', () => {
    if (!answer.writableFinished) call.destroy();
  });
  return new Promise((resolve) => {
    call.on('error', () => {
      if (!answer.headersSent) answer.writeHead(502);
      answer.end();
      resolve();
    });
    call.on('response', (response) => {
      const type = response.headers['content-type'] ?? 'application/json';
      answer.writeHead(response.statusCode ?? 502, { 'content-type': type });
      response.on('error', () => answer.destroy());
      response.on('close', resolve);
      response.pipe(answer);
    });
  });
}

async function whole(
  call: ReturnType<typeof httpRequest>,
): Promise<{ readonly status: number; readonly bytes: Buffer }> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    call.on('error', reject);
    call.on('response', resolve);
  });
  return { status: response.statusCode ?? 502, bytes: await readAll(response) };
}

async function readAll(stream: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of stream as AsyncIterable<Buffer>) parts.push(part);
  return Buffer.concat(parts);
}

function portOf(server: Server): number {
  const address = server.address();
  return address === null || typeof address === 'string' ? 0 : address.port;
}

function closed(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}
