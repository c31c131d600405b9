/**
 * One process of the gateway's figures, forked by `bench/gateway.ts`: the canned engine, the bare relay, or the gateway with
 * everything on. Says where it listens, and its CPU time whenever it is asked.
 */
import { Agent, createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SystemClock } from '../src/base/clock.js';
import { Gateway } from '../src/gateway/server.js';
import { keyDigest, TenantRegistry } from '../src/gateway/tenants.js';
import { countTokens, renderChat } from '../src/tokenizer/bytes.js';
import { OpenAiUpstream } from '../src/upstream/openai/adapter.js';
import { CannedEngine } from '../test/support/canned-engine.js';
import { CONTEXT_TOKENS, KEYS, PIECE_GAP_MS } from './gateway-load.js';

const RUNNING_MAX = 256;
/** One side rests while the other is measured: its sockets must not be closed under the next request. */
const KEEP_ALIVE_MS = 600_000;

/** Counts by length, so that its own work is small: the prompts are ASCII, and the template's share is always the same. */
const TEMPLATE_TOKENS = countTokens(renderChat([{ role: 'user', content: '' }]));

async function engine(): Promise<string> {
  const canned = new CannedEngine({
    count: (body) => TEMPLATE_TOKENS + (body.messages as { content: string }[])[0]!.content.length,
    gapMs: PIECE_GAP_MS,
  });
  canned.keepsRequests = false;
  canned.keepAliveMs = KEEP_ALIVE_MS;
  return canned.listen();
}

/** What a relay costs that reads and parses the body, as it must to route by model, and passes all else on. */
function bareRelay(engineUrl: string): Promise<string> {
  const { hostname, port } = new URL(engineUrl);
  const agent = new Agent({ keepAlive: true, maxFreeSockets: RUNNING_MAX });
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      if (typeof (JSON.parse(body.toString('utf8')) as { model?: unknown }).model !== 'string') {
        response.writeHead(400).end();
        return;
      }
      const headers = { 'content-type': 'application/json', 'content-length': body.length };
      const forward = httpRequest({ agent, hostname, port, method: 'POST', path: request.url, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      });
      forward.end(body);
    });
  });
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
  });
}

async function gateway(engineUrl: string): Promise<string> {
  const clock = new SystemClock();
  const upstream = new OpenAiUpstream({
    url: new URL(engineUrl),
    key: 'engine-key',
    models: ['canned'],
    context: CONTEXT_TOKENS,
    // Room for all that run at once: the figures are of the path, not of waiting.
    pool: CONTEXT_TOKENS * RUNNING_MAX,
    runningMax: RUNNING_MAX,
    clock,
    count: (prompt) => ({
      kind: 'exact',
      tokens: countTokens(prompt.kind === 'text' ? prompt.text : renderChat(prompt.messages)),
    }),
  });
  const server = new Gateway({
    upstreams: [upstream],
    tenants: new TenantRegistry(
      KEYS.map((key, index) => ({ name: `tenant-${index}`, keys: [{ sha256: keyDigest(key) }] })),
      'a secret for figures',
    ),
    clock,
    findings: { raise: (finding) => process.stderr.write(`${finding.id}: ${finding.observed}\n`) },
  });
  return (await server.listen({ host: '127.0.0.1', port: 0 })).url;
}

const [role, engineUrl] = process.argv.slice(2);
const start = { engine, relay: () => bareRelay(engineUrl!), gateway: () => gateway(engineUrl!) }[role ?? ''];
if (start === undefined) throw new Error('Expected `engine`, `relay` or `gateway`; run dist/bench/gateway.js.');
const url = await start();
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send!({ cpuUs: user + system });
});
process.on('disconnect', () => process.kill(process.pid));
process.send!({ url });
