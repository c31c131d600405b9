/**
 * Goal: only an engine that nobody reaches goes out of service, never one that one tenant’s requests make cut connections. Method: a
 * real OpenAI-compatible endpoint on a socket, which cuts the connection when it is told to; real HTTP, two tenants.
 */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, test } from 'node:test';
import { SystemClock } from '../base/clock.js';
import { OpenAiUpstream } from '../upstream/openai/adapter.js';
import { GLOBEX_KEY, type Harness, startHarness, until } from '../../test/support/gateway-harness.js';

const TEXT = '/v1/completions';
const CUT = 'cut me off';

type Play = 'well' | 'cut' | 'error';

interface Endpoint {
  /** How it treats a prompt. */
  play: (prompt: string) => Play;
  prompts: string[];
  readonly server: Server;
  readonly upstream: OpenAiUpstream;
}

let ends: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of ends.reverse()) await end();
  ends = [];
});

async function endpoint(): Promise<Endpoint> {
  const clock = new SystemClock();
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8');
    });
    request.on('end', () => {
      const asked = JSON.parse(text) as { prompt: string; max_tokens: number; stream?: boolean };
      made.prompts.push(asked.prompt);
      const play = made.play(asked.prompt);
      if (play === 'cut') return void request.socket.destroy();
      response.statusCode = play === 'error' ? 503 : 200;
      if (play === 'error') return void response.end('{}');
      const usage = { prompt_tokens: asked.prompt.length, completion_tokens: 1 };
      const choice = { index: 0, text: 'y', finish_reason: 'stop' };
      if (asked.stream !== true) {
        response.setHeader('content-type', 'application/json');
        return void response.end(JSON.stringify({ choices: [choice], usage }));
      }
      response.setHeader('content-type', 'text/event-stream');
      response.end(
        `data: ${JSON.stringify({ choices: [choice] })}\n\ndata: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`,
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const upstream = new OpenAiUpstream({
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    key: null,
    models: ['lab'],
    context: 4096,
    pool: 8192,
    runningMax: 8,
    clock,
    count: (prompt) => ({ kind: 'exact', tokens: prompt.kind === 'text' ? prompt.text.length : 0 }),
  });
  const made: Endpoint = { play: () => 'well', prompts: [], server, upstream };
  ends.push(async () => {
    await upstream.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return made;
}

async function start(upstream: OpenAiUpstream): Promise<Harness> {
  const harness = await startHarness({ upstream });
  ends.push(() => harness.close());
  return harness;
}

const ask = (harness: Harness, prompt: string, key?: string): Promise<Response> =>
  harness.post(TEXT, { model: 'lab', prompt, max_tokens: 4 }, key === undefined ? {} : { key });
const sentinels = ({ prompts }: Endpoint): string[] => prompts.filter((prompt) => prompt.startsWith('KVC-'));

describe('a connection that fails', () => {
  test('for the prompts of one tenant costs that tenant alone: the sentinel passes, and others are served', async () => {
    const engine = await endpoint();
    engine.play = (prompt) => (prompt.includes(CUT) ? 'cut' : 'well');
    const harness = await start(engine.upstream);
    const [only] = harness.gateway.engines;
    for (let i = 0; i < 20; i++) {
      const response = await ask(harness, `${CUT}, ${'x'.repeat(500)}`);
      assert.equal(response.status, 503);
      assert.match(await response.text(), /"code":"engine_unavailable"/);
      assert.equal((await ask(harness, 'hello', GLOBEX_KEY)).status, 200, `globex, round ${i}`);
    }
    await until(harness.clock, 'a sentinel', () => sentinels(engine).length === 1);
    assert.ok(sentinels(engine)[0]!.length < 100, 'it is short, whatever the prompt was');
    assert.ok(only!.isServing);
    assert.equal(engine.prompts.length, 41, 'nothing is sent twice, and one sentinel in five seconds');
    const text = await harness.gateway.metrics.registry.metrics();
    assert.match(text, /cofferdam_sentinels_total\{engine="engine-1",outcome="passed"\} 1\n/);
  });

  test('for everybody takes the engine out by the gateway’s own sentinel, and brings it back by one', async () => {
    const engine = await endpoint();
    const harness = await start(engine.upstream);
    const [only] = harness.gateway.engines;
    engine.play = () => 'cut';
    assert.equal((await ask(harness, 'hello')).status, 503);
    await until(harness.clock, 'it is out', () => !only!.isServing);
    assert.equal(only!.watch.rotation.reason, 'sentinel-failed');
    engine.play = () => 'well';
    await until(harness.clock, 'it is back', () => only!.isServing, 5000);
    assert.equal((await ask(harness, 'hello')).status, 200);
  });

  test('is no answer with an error status: that leads to no sentinel', async () => {
    const engine = await endpoint();
    engine.play = () => 'error';
    const harness = await start(engine.upstream);
    for (let i = 0; i < 5; i++) assert.equal((await ask(harness, 'hello')).status, 503);
    engine.play = () => 'well';
    assert.equal((await ask(harness, 'hello')).status, 200);
    assert.equal(sentinels(engine).length, 0);
    assert.ok(harness.gateway.engines[0]!.isServing);
  });
});
