/**
 * Goal: a vLLM server behind the contract of all engines, its hang never met and its stall seen. Method: the shared cases over a
 * server that answers as vLLM 0.32.0 did, then each number that such a server can say wrongly.
 */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { SystemClock } from '../../base/clock.js';
import { CodedError } from '../../base/errors.js';
import { decideAdmission } from '../../handoff/admission.js';
import { countNow, runUpstreamCases } from '../../../test/cases/upstream.js';
import { ask } from '../../../test/support/ask-upstream.js';
import { VllmDouble, type VllmDoubleOptions } from '../../../test/support/vllm-double.js';
import type { UpstreamNotice } from '../notice.js';
import type { UpstreamRun } from '../upstream.js';
import { type VllmOptions, VllmUpstream } from './adapter.js';

const clock = new SystemClock();
const open: { close(): Promise<void> }[] = [];
after(() => Promise.all(open.map((each) => each.close())));

async function served(
  options: VllmDoubleOptions = {},
  more: Partial<VllmOptions> = {},
  prepare?: (server: VllmDouble) => void,
) {
  const server = new VllmDouble(options);
  prepare?.(server);
  const notices: UpstreamNotice[] = [];
  let told = (): void => {};
  const upstream = await VllmUpstream.open({
    url: new URL(`${await server.listen()}/v1`),
    key: options.key ?? null,
    models: ['tiny'],
    runningMax: 8,
    clock,
    everyMs: 20,
    retryMs: 20,
    stallMs: 60,
    onNotice: (notice) => {
      notices.push(notice);
      told();
    },
    ...more,
  });
  open.push(upstream, server);
  /** Waits for a notice of this kind. */
  const notice = async (kind: string): Promise<UpstreamNotice> => {
    for (;;) {
      const found = notices.find((each) => each.kind === kind);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => (told = resolve));
    }
  };
  return { server, upstream, notices, notice };
}

runUpstreamCases('the adapter of vLLM', { make: async () => (await served()).upstream });

describe('the adapter of vLLM', () => {
  test('the pool is what its blocks hold but for the one that is never given out, the context its model length', async () => {
    const { upstream } = await served();
    const { context, prefillPool, decodePool, pageTokens, nodes } = upstream.capacity();
    assert.deepEqual([context, prefillPool, decodePool, pageTokens], [4096, 1920, 1920, 128]);
    assert.deepEqual([nodes.length, nodes[0]!.advertised, nodes[0]!.pool], [1, 4096, 1920]);
  });

  test('a prompt that fits the context and not the pool hangs there, so admission by these numbers never sends it', async () => {
    const { server, upstream } = await served();
    const prompt = (length: number) => ({ kind: 'text', text: 'a'.repeat(length) }) as const;
    const asked = async (length: number) =>
      decideAdmission(await countNow(upstream, prompt(length)), 1, upstream.capacity());
    assert.equal((await asked(1921)).kind, 'prompt-too-long');
    assert.equal((await asked(1920)).kind, 'admitted');
    assert.equal((await ask(upstream, { prompt: prompt(1920), maxTokens: 1 })).end.kind, 'finished');
    const verdict = decideAdmission(1800, 400, upstream.capacity());
    assert.ok(verdict.kind === 'admitted');
    const { end } = await ask(upstream, { prompt: prompt(1800), maxTokens: verdict.maxTokens });
    assert.ok(end.kind === 'finished' && end.usage.completionTokens === 121, 'the answer stops where the pool does');
    assert.equal(server.stuck.length, 0);
  });

  test('the salt, the length and the id are set here, and nothing cuts a prompt', async () => {
    const { server, upstream } = await served();
    await ask(upstream, {
      salt: 'ab12',
      engineFields: { cache_salt: 'forged', truncate_prompt_tokens: 5, priority: 1 },
    });
    const { body, headers } = server.asked[0]!;
    assert.deepEqual(
      [body.cache_salt, body.max_tokens, body.priority, body.truncate_prompt_tokens],
      ['ab12', 3, 1, undefined],
    );
    assert.equal(headers['x-request-id'], 'a'.repeat(32));
  });

  test('no salt is sent with the guard off, nor to a version that knows none, and the operators hear of the latter', async () => {
    const { server, upstream, notices } = await served();
    await ask(upstream, { salt: '' });
    assert.equal(server.asked[0]!.body.cache_salt, undefined);
    assert.deepEqual(notices, []);
    const old = await served({ version: '0.8.5' });
    await ask(old.upstream, { salt: 'ab12' });
    assert.equal(old.server.asked[0]!.body.cache_salt, undefined);
    assert.match((await old.notice('no-salt')).words, /shared by all tenants: version `0\.8\.5`, salts since 0\.9\.0/);
    const uncached = await served(
      { version: '0.8.5' },
      {},
      (server) => (server.ranks = [{ enable_prefix_caching: 'False' }]),
    );
    assert.deepEqual(uncached.notices, []);
  });

  test('what came out of the cache is told of the own salt only, and only as a figure that can be one', async () => {
    const { server, upstream } = await served();
    const prompt = { kind: 'text', text: 'b'.repeat(300) } as const;
    const cached = async (salt: string): Promise<number | null> => {
      const { end } = await ask(upstream, { prompt, salt });
      assert.ok(end.kind === 'finished');
      return end.usage.cachedTokens;
    };
    assert.deepEqual([await cached('aa'), await cached('aa'), await cached('bb')], [0, 256, 0]);
    assert.equal((await cached('')) ?? (await cached('')), null);
    server.instead = ({ path }, response) => {
      if (!path.endsWith('completions')) return false;
      const usage = '{"prompt_tokens":300,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":999999}}';
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(`data: {"choices":[{"text":"abc","finish_reason":"length"}],"usage":${usage}}\n\ndata: [DONE]\n\n`);
      return true;
    };
    assert.equal(await cached('aa'), null);
  });

  test('prompts are counted by its own endpoint, once, with the template of a chat', async () => {
    const { server, upstream } = await served();
    const count = upstream.count({ kind: 'chat', messages: [{ role: 'user', content: 'hé' }] });
    assert.ok(count.kind === 'bounds');
    assert.deepEqual([count.least, count.most], [1, Number.MAX_SAFE_INTEGER]);
    assert.equal(server.requests.filter(({ path }) => path === '/tokenize').length, 0);
    assert.deepEqual([await count.exact(), await count.exact()], [21, 21]);
    const asked = server.requests.filter(({ path }) => path === '/tokenize');
    assert.deepEqual(
      asked.map(({ body }) => [body.add_generation_prompt, body.add_special_tokens]),
      [[true, false]],
    );
    assert.equal(await countNow(upstream, { kind: 'text', text: 'hé' }), 3);
  });

  test('tools and reasoning are counted with the chat, and a picture is not counted as nothing', async () => {
    const { server, upstream } = await served();
    const messages = [{ role: 'user', content: 'hi' }];
    const tools = [{ type: 'function', function: { name: 'f' } }];
    const rich = { messages, tools, fields: { reasoning_effort: 'low' }, hasData: false };
    await countNow(upstream, { kind: 'chat', messages, rich });
    const [asked] = server.requests.filter(({ path }) => path === '/tokenize');
    assert.deepEqual([asked!.body.tools, asked!.body.chat_template_kwargs], [tools, { reasoning_effort: 'low' }]);
    const picture = { kind: 'chat', messages, rich: { ...rich, hasData: true } } as const;
    assert.throws(
      () => upstream.count(picture),
      (error) => error instanceof CodedError && error.code === 'invalid_request',
    );
    assert.ok(upstream.describe().features?.has('tools'));
  });

  const counts: [string, number, string, string][] = [
    ['a count of −1', 200, '{"count":-1}', 'engine_unavailable'],
    ['no count', 200, '{"tokens":[1,2]}', 'engine_unavailable'],
    ['a count of 1e300', 200, '{"count":1e300}', 'engine_unavailable'],
    ['nonsense', 200, '<html>secret</html>', 'engine_unavailable'],
    ['status 500', 500, 'secret', 'engine_unavailable'],
    ['a refusal', 400, '{"error":{"message":"secret"}}', 'invalid_request'],
  ];
  for (const [title, status, body, code] of counts) {
    test(`${title} for a count is an error without the engine's words`, async () => {
      const { server, upstream } = await served();
      server.instead = ({ path }, response) => {
        if (path !== '/tokenize') return false;
        response.writeHead(status).end(body);
        return true;
      };
      await assert.rejects(countNow(upstream, { kind: 'text', text: 'a' }), (error: unknown) => {
        assert.ok(error instanceof CodedError && error.code === code && !error.message.includes('secret'));
        return true;
      });
    });
  }

  test('a key goes with every question under /v1, and a wrong one is said as what it is', async () => {
    const { upstream } = await served({ key: 'engine-key' });
    assert.deepEqual(upstream.health(), { isUp: true });
    const wrong = await served({ key: 'engine-key' }, { key: 'other' });
    assert.deepEqual(wrong.upstream.health(), { isUp: false, reason: 'unreachable', words: 'status 401' });
  });
});

describe('the numbers of a vLLM server', () => {
  const infos: [string, Record<string, string | null>, number | null][] = [
    ['a pool of 0', { num_gpu_blocks: '0', kv_cache_size_tokens: '0' }, null],
    ['a pool of None', { num_gpu_blocks: 'None', kv_cache_size_tokens: 'None' }, null],
    ['a pool of −1', { num_gpu_blocks: '-1', kv_cache_size_tokens: '-1' }, null],
    ['one block, which is never given out', { num_gpu_blocks: '1', kv_cache_size_tokens: '128' }, null],
    ['a size without blocks', { num_gpu_blocks: 'None', kv_cache_size_tokens: '2048' }, null],
    ['a size of None beside blocks', { kv_cache_size_tokens: 'None' }, null],
    ['an older version, which prints no size', { kv_cache_size_tokens: null }, 1920],
    ['an older version of a hybrid model', { kv_cache_size_tokens: null, mamba_block_size: '128' }, null],
    ['an older version with sliding windows', { kv_cache_size_tokens: null, sliding_window: '512' }, null],
    ['a hybrid model', { kv_cache_size_tokens: '40960', mamba_block_size: '128' }, 38_400],
  ];
  for (const [title, changes, pool] of infos) {
    test(`${title} is a pool of ${pool ?? 'no known size, which admits nothing'}`, async () => {
      const { upstream, notices } = await served({}, {}, (server) => (server.ranks = [changes]));
      const capacity = upstream.capacity();
      assert.deepEqual([capacity.decodePool, capacity.prefillPool, capacity.context], [pool, pool, 4096]);
      assert.equal(decideAdmission(1, 1, capacity).kind, pool === null ? 'unknown' : 'admitted');
      assert.deepEqual(
        notices.map(({ kind }) => kind),
        pool === null ? ['capacity-unknown'] : [],
      );
    });
  }

  test('of several engines behind one server the least pool counts, and one that does not say its own makes it unknown', async () => {
    const two = await served(
      {},
      {},
      (server) => (server.ranks = [{}, { num_gpu_blocks: '9', kv_cache_size_tokens: '1152' }]),
    );
    assert.equal(two.upstream.capacity().decodePool, 1024);
    assert.deepEqual(
      two.upstream.capacity().nodes.map(({ pool }) => pool),
      [1920, 1024],
    );
    const silent = await served({}, {}, (server) => (server.ranks = [{}, { num_gpu_blocks: 'None' }]));
    assert.equal(silent.upstream.capacity().decodePool, null);
  });

  test("an operator's limits lower what the server says and stand in where it says nothing", async () => {
    const lower = await served({}, { pool: 1000, context: 2000 });
    assert.deepEqual([lower.upstream.capacity().decodePool, lower.upstream.capacity().context], [1000, 2000]);
    const higher = await served({}, { pool: 100_000, context: 100_000 });
    assert.deepEqual([higher.upstream.capacity().decodePool, higher.upstream.capacity().context], [1920, 4096]);
    const unsaid = await served({}, { pool: 1000 }, (server) => (server.ranks = [{ num_gpu_blocks: 'None' }]));
    assert.equal(unsaid.upstream.capacity().decodePool, 1000);
    assert.deepEqual(unsaid.notices, []);
  });

  test('a pool that shrinks while it serves is the pool from the next reading on', async () => {
    const { server, upstream, notice } = await served();
    server.blocks = 9;
    assert.equal((await notice('pool-shrank')).words, 'from 1920 tokens to 1024 tokens');
    assert.equal(upstream.capacity().decodePool, 1024);
  });

  test('a restart with another version is told, and what it says now holds', async () => {
    const { server, upstream, notice } = await served();
    server.version = '0.33.0';
    server.startedS++;
    server.context = 2048;
    assert.equal((await notice('version-changed')).words, 'from `0.32.0` to `0.33.0`');
    await notice('restarted');
    assert.equal(upstream.capacity().context, 2048);
    assert.deepEqual(upstream.health(), { isUp: true });
  });

  test('a server with another model takes no requests until it has the old one again', async () => {
    const { server, upstream, notice } = await served();
    server.models = ['other\u001b[31m'];
    const { words } = await notice('model-changed');
    assert.match(words, /does not serve `tiny` but `other/);
    assert.ok(!words.includes('\u001b'));
    const health = upstream.health();
    assert.ok(!health.isUp && health.reason === 'changed');
    server.models = ['other', 'tiny'];
    while (!upstream.health().isUp) await new Promise((resolve) => clock.after(5, () => resolve(null)));
  });

  test('a server that answers nonsense, or not at all, is unreachable until it answers', async () => {
    const { server, upstream, notice } = await served({}, {}, (each) => {
      each.instead = (_, response) => {
        response.end('<');
        return true;
      };
    });
    assert.deepEqual(upstream.capacity().decodePool, null);
    assert.equal(upstream.health().isUp, false);
    server.instead = null;
    while (!upstream.health().isUp) await new Promise((resolve) => clock.after(5, () => resolve(null)));
    await server.close();
    await notice('unreachable');
    const health = upstream.health();
    assert.ok(!health.isUp && health.reason === 'unreachable');
  });
});

describe('a vLLM server whose queue stands still', () => {
  const tooLong = { kind: 'text', text: 'x'.repeat(3000) } as const;

  test('is out with a reason, its requests end as failed, and it is back when it moves', async () => {
    const { server, upstream, notice, notices } = await served();
    // What nobody lets through here: a prompt beyond the pool, as a client of the server itself may send it.
    const elsewhere = new AbortController();
    const url = `http://${upstream.capacity().nodes[0]!.node}/v1/completions`;
    const body = JSON.stringify({ model: 'tiny', prompt: tooLong.text, max_tokens: 4 });
    const lost = fetch(url, { method: 'POST', body, signal: elsewhere.signal }).catch(() => null);
    while (server.stuck.length === 0) await new Promise((resolve) => clock.after(2, () => resolve(null)));
    const behind = ask(upstream);
    await notice('stalled');
    const health = upstream.health();
    assert.ok(!health.isUp && health.reason === 'stalled');
    assert.equal(await upstream.selfTest(AbortSignal.timeout(5000)), health.words);
    const { end } = await behind;
    assert.ok(end.kind === 'failed' && end.code === 'engine_unavailable', `got ${end.kind}`);
    elsewhere.abort();
    await lost;
    await notice('back');
    assert.deepEqual(upstream.health(), { isUp: true });
    assert.equal((await ask(upstream)).end.kind, 'finished');
    assert.deepEqual(
      notices.map(({ kind }) => kind),
      ['stalled', 'back'],
    );
  });

  test('with the head one of ours, that one is given up and the rest goes on', async () => {
    const { server, upstream, notice } = await served();
    const { end } = await ask(upstream, { prompt: tooLong, maxTokens: 4 });
    assert.ok(end.kind === 'failed' && end.code === 'engine_unavailable');
    await notice('back');
    assert.equal(server.stuck.length, 0);
  });

  test('what another of its engines gets on with is left alone', async () => {
    const { server, upstream, notice } = await served({}, { stallMs: 150 });
    server.instead = ({ path, body }, response) => {
      if (!path.endsWith('completions') || body.prompt !== 'slow') return false;
      // One of two engines stands still, and this request is at the other one.
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const more = (): void => {
        if (response.destroyed) return;
        response.write('data: {"choices":[{"text":"a","finish_reason":null}]}\n\n');
        clock.after(10, more);
      };
      more();
      return true;
    };
    let run: UpstreamRun | null = null;
    const slow = ask(upstream, { prompt: { kind: 'text', text: 'slow' }, maxTokens: 10_000 }, (each) => (run = each));
    const stuck = ask(upstream, { prompt: tooLong });
    await notice('stalled');
    assert.equal((await stuck).end.kind, 'failed');
    run!.abort();
    assert.equal((await slow).end.kind, 'aborted', 'it went on until its client left');
  });

  test('a client that leaves a standing queue ends its request as its own abort', async () => {
    const { upstream } = await served({}, { stallMs: 60_000 });
    const heard = ask(upstream, { prompt: tooLong }, (run) => clock.after(20, () => run.abort()));
    assert.equal((await heard).end.kind, 'aborted');
  });

  test('a server that sleeps takes no requests', async () => {
    const { server, upstream } = await served();
    server.isAwake = false;
    while (upstream.health().isUp) await new Promise((resolve) => clock.after(5, () => resolve(null)));
    assert.deepEqual(upstream.health(), { isUp: false, reason: 'stalled', words: 'it sleeps' });
  });
});
