/**
 * Goal: an engine that is there is named by its address alone, or refused with what was asked, what came and what to change; behind
 * the gateway an over-long prompt never reaches it. Method: what `serve` starts, in this process, over doubles of the engines.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { CannedEngine } from '../../../test/support/canned-engine.js';
import { fakeNode, sglangAnswers } from '../../../test/support/fake-node.js';
import { authority, certificate, tlsPath } from '../../../test/support/certificates.js';
import { LlamaDouble } from '../../../test/support/llama-double.js';
import { VllmDouble } from '../../../test/support/vllm-double.js';
import { CodedError } from '../../base/errors.js';
import { Served } from '../../engine/http/harness.test.help.js';
import { huggingFaceFiles } from '../../model/export/hugging-face.js';
import { LAB_CONFIG, loadLabWeights } from '../../model/lab-weights.js';
import type { ServeFlags } from '../flags.js';
import { parseServeOptions } from '../options.js';
import { type Serving, startServing } from '../serve-run.js';
import { startLines } from '../start-lines.js';

const KEY = 'sk-acme-0001';
const WORLD = { variables: { ACME: KEY, ENGINE: 'engine-key-0001' }, faultNames: [] };
const closing: (() => unknown)[] = [];
after(async () => {
  for (const close of closing.reverse()) await close();
});

async function serve(flags: ServeFlags, log: (text: string) => void = () => {}): Promise<Serving> {
  const own = { port: '0', opsPort: '0', tenant: ['acme=env:ACME'] };
  const serving = await startServing(parseServeOptions({ ...own, ...flags }, WORLD), log);
  closing.push(() => serving.close());
  return serving;
}

async function refusal(flags: ServeFlags): Promise<string> {
  try {
    await serve(flags);
  } catch (thrown) {
    assert.ok(thrown instanceof CodedError && thrown.code === 'usage', String(thrown));
    return thrown.message;
  }
  return assert.fail('it was let through');
}

async function ask(serving: Serving, content: string, maxTokens = 4) {
  const { models } = serving.facts.engines[0]!;
  const response = await fetch(`${serving.facts.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: models[0], max_tokens: maxTokens, messages: [{ role: 'user', content }] }),
  });
  const body = (await response.json()) as {
    error?: { code: string; message: string };
    usage?: { prompt_tokens: number };
  };
  return { status: response.status, code: body.error?.code, message: body.error?.message, usage: body.usage };
}

async function vllm(
  options: ConstructorParameters<typeof VllmDouble>[0] = {},
): Promise<{ double: VllmDouble; url: string }> {
  const double = new VllmDouble(options);
  const url = await double.listen();
  closing.push(() => double.close());
  return { double, url };
}

/** The files of the lab model's tokenizer, whose tokens are bytes. */
function labTokenizer(): string {
  const folder = mkdtempSync(join(tmpdir(), 'cofferdam-tokenizer-'));
  closing.push(() => rmSync(folder, { recursive: true }));
  const facts = { config: LAB_CONFIG, contextTokens: 4096 };
  for (const file of huggingFaceFiles(facts, loadLabWeights())) {
    if (file.name.startsWith('tokenizer')) writeFileSync(join(folder, file.name), Buffer.concat([...file.chunks()]));
  }
  return folder;
}

async function engine(kind: 'single' | 'pair', options: Parameters<typeof Served.start>[1]): Promise<Served> {
  const served = await Served.start(kind, options);
  closing.push(() => served.close());
  return served;
}

describe('an engine that is there', { concurrency: 2 }, () => {
  test('vLLM: its kind, model, context and pool are told, and what the pool can not hold never reaches it', async () => {
    const { double, url } = await vllm();
    const serving = await serve({ upstream: [url] });
    const { host } = new URL(url);
    assert.deepEqual(serving.facts.engines, [
      {
        name: host,
        kind: 'vllm',
        models: ['tiny'],
        counted: 'by the engine itself',
        nodes: [{ node: host, role: 'single', advertised: 4096, pool: 1920 }],
        effectiveLimit: 1920,
        limitedBy: 'prefill pool',
      },
    ]);
    const lines = startLines(serving.facts, { keys: null, keysFile: null });
    assert.match(lines, /advertised context 4096 tokens, KV pool 1920 tokens\n +effective limit +1920 tokens/);
    const long = await ask(serving, 'x'.repeat(3000));
    assert.deepEqual([long.status, long.code, double.asked.length], [400, 'context_length_exceeded', 0]);
    assert.match(long.message ?? '', /at most 1920 tokens \(set by the prefill pool\)/);
    const short = await ask(serving, 'hello');
    assert.deepEqual([short.status, double.asked.length], [200, 1]);
  });

  test('llama-server is recognised by what it answers', async () => {
    const double = new LlamaDouble();
    const url = await double.listen();
    closing.push(() => double.close());
    const serving = await serve({ upstream: [url] });
    const [facts] = serving.facts.engines;
    assert.equal(facts?.kind, 'llamacpp');
    assert.equal((await ask(serving, 'hello')).status, 200);
    assert.equal((await ask(serving, 'x'.repeat(facts.effectiveLimit + 1))).code, 'context_length_exceeded');
  });

  test('one node that speaks as SGLang does, and a pair of them: roles are what the nodes say, in whatever order they are named', async () => {
    const single = await engine('single', { prefillPool: 1024, decodePool: 2048, context: 4096 });
    const pair = await engine('pair', { prefillPool: 1024, decodePool: 8192, context: 4096 });
    const one = await serve({ upstream: [single.urls.single!] });
    assert.deepEqual(
      one.facts.engines.map(({ kind, models, effectiveLimit }) => [kind, models[0], effectiveLimit]),
      [['sglang', 'lab', one.facts.effectiveLimit]],
    );
    assert.equal((await ask(one, 'hello')).status, 200);
    const two = await serve({ upstream: [`${pair.urls.decode}`, `${pair.urls.prefill}#bootstrap=8998`] });
    const [facts] = two.facts.engines;
    assert.deepEqual([facts?.kind, facts?.nodes.map(({ role }) => role)], ['sglang-pd', ['prefill', 'decode']]);
    assert.ok(facts!.effectiveLimit <= 1024, `${facts?.effectiveLimit}`);
    assert.equal((await ask(two, 'hello')).status, 200);
    assert.equal((await ask(two, 'x'.repeat(2000))).code, 'context_length_exceeded');
  });

  test('a router is recognised, held to its workers, and said to take salts away and to repeat', async () => {
    const worker = await engine('single', { prefillPool: 1024, decodePool: 2048, context: 4096 });
    const node = await fakeNode({
      '/v1/models': { body: '{"object":"list","data":[{"id":"lab","object":"model","owned_by":"local"}]}' },
      '/get_server_info': { body: '{"router_manager":true,"routers_count":1,"workers_count":1}' },
      '/health': { body: 'OK' },
      '/workers': {
        body: JSON.stringify({ workers: [{ url: worker.urls.single, worker_type: 'regular' }], total: 1 }),
      },
    });
    closing.push(() => node.close());
    const serving = await serve({ upstream: [node.url] });
    const [facts] = serving.facts.engines;
    assert.deepEqual([facts?.kind, facts?.counted], ['sglang-router', 'by bytes']);
    assert.ok(facts!.effectiveLimit <= 1024, `${facts?.effectiveLimit}`);
    assert.equal((await ask(serving, 'x'.repeat(2000))).code, 'context_length_exceeded');
    const ids = serving.findings.list().map(({ id }) => id);
    for (const id of ['upstream.no-salt', 'upstream.repeats-elsewhere'])
      assert.ok(ids.includes(id), `${id} of ${ids.join()}`);
  });

  test('replicas serve one model together, each within its own numbers', async () => {
    const large = await vllm({ blocks: 32 });
    const small = await vllm({ blocks: 8 });
    const serving = await serve({ upstream: [large.url, small.url] });
    assert.deepEqual(
      serving.facts.engines.map(({ effectiveLimit }) => effectiveLimit),
      [3968, 896],
    );
    for (let i = 0; i < 4; i++) assert.equal((await ask(serving, `${i}${'x'.repeat(2000)}`)).status, 200);
    assert.deepEqual([large.double.asked.length, small.double.asked.length], [4, 0]);
  });

  test('is counted for by the tokenizer that is named, or that the engine names and that lies here', async () => {
    const folder = labTokenizer();
    const { double, url } = await vllm();
    const named = await serve({ upstream: [url], tokenizer: folder });
    assert.match(named.facts.engines[0]?.counted ?? '', new RegExp(`^by the tokenizer in ${folder}, or by the engine`));
    assert.equal((await ask(named, 'hello')).status, 200, 'both count alike, or the answer would be withheld');
    assert.equal((await ask(named, 'x'.repeat(3000))).code, 'context_length_exceeded');
    assert.ok(!double.requests.some(({ path }) => path === '/tokenize'));
    const flags = { tokenizer_path: folder, model_path: folder };
    const answers = sglangAnswers({ role: 'null', version: '0.5.23', context: 4096, pool: 2048, flags });
    const node = await fakeNode(answers);
    closing.push(() => node.close());
    const found = await serve({ upstream: [node.url] });
    assert.equal(found.facts.engines[0]?.counted, `by the tokenizer in ${folder}`);
    const { status, message } = await ask(found, 'x'.repeat(3000));
    assert.equal(status, 400);
    assert.match(message ?? '', /got 30\d\d tokens/);
    assert.match(
      await refusal({ upstream: [url], tokenizer: join(folder, 'none') }),
      /to hold a tokenizer\.json, found none there/,
    );
  });

  test('its own key goes to it and no tenant’s does; its numbers may be lowered, not raised', async () => {
    const { double, url } = await vllm({ key: 'engine-key-0001' });
    const serving = await serve({ upstream: [url], engineKey: 'env:ENGINE', upstreamLimit: '1k' });
    assert.deepEqual([serving.facts.effectiveLimit, serving.facts.limitedBy], [1023, 'advertised context']);
    assert.equal((await ask(serving, 'hello')).status, 200);
    assert.ok(double.requests.every(({ headers }) => !JSON.stringify(headers).includes(KEY)));
    const raised = await serve({ upstream: [url], engineKey: 'env:ENGINE', upstreamLimit: '1M' });
    assert.equal(raised.facts.effectiveLimit, 1920);
    assert.match(
      await refusal({ upstream: [url] }),
      /answer GET \/v1\/models, got: status 401\. It asks for a key: .*`--engine-key/,
    );
  });

  test('is spoken to over https where its certificate is believed', async () => {
    const models = JSON.stringify({ object: 'list', data: [{ id: 'm', object: 'model', owned_by: 'somebody' }] });
    const canned = new CannedEngine({
      count: () => 1,
      tls: certificate('local'),
      instead: ({ path }, response) => {
        response.writeHead(path === '/v1/models' ? 200 : 404, { 'content-type': 'application/json' }).end(models);
        return true;
      },
    });
    const url = await canned.listen();
    closing.push(() => canned.close());
    assert.match(await refusal({ upstream: [url] }), /Its certificate is not believed: .*`--upstream-ca FILE`/);
    const far = await refusal({ upstream: [url], upstreamCa: tlsPath('authority.pem') });
    assert.match(
      far,
      /Expected `--upstream-limit`, or `context` in the file/,
      'it answered, and is none that says its numbers',
    );
    assert.ok(authority().includes('CERTIFICATE'));
  });
});

describe('what can not be served is refused at the start', { concurrency: 2 }, () => {
  test('nothing listens there', async () => {
    const { double, url } = await vllm();
    await double.close();
    const words = await refusal({ upstream: [url] });
    assert.match(
      words,
      /^Expected an engine at http:\S+ to answer GET \/v1\/models, got: the connection failed \(ECONNREFUSED\)\. .*`--wait`/,
    );
  });

  test('it is waited for where that was asked for, and the start goes on when it answers', async () => {
    const { double, url } = await vllm();
    let tries = 0;
    double.instead = (_, response) => {
      if (++tries > 1) return false;
      response.writeHead(503).end();
      return true;
    };
    const said: string[] = [];
    const serving = await serve({ upstream: [url], wait: true }, (text) => said.push(text));
    assert.equal(serving.facts.effectiveLimit, 1920);
    assert.match(said.join(''), /^waiting for 127\.0\.0\.1:\d+: GET \/v1\/models: status 503\n$/);
  });

  test('half a pair', async () => {
    const pair = await engine('pair', {});
    const words = await refusal({ upstream: [pair.urls.prefill!] });
    assert.match(words, /Expected a decode node of its model `lab` for the prefill node .*, got none\. Name it too\./);
  });

  test('another kind than was said, and no engine at all', async () => {
    const { url } = await vllm();
    assert.match(await refusal({ upstream: [`${url}#kind=llamacpp`] }), /to be llamacpp, got vllm\. Correct its kind/);
    const page = await fakeNode({ '/v1/models': { body: '<html>hello</html>' } });
    closing.push(() => page.close());
    assert.match(
      await refusal({ upstream: [page.url] }),
      /got: an answer that is no list of models\. Check the address/,
    );
  });

  test('SGLang without a tokenizer, since it counts no chats', async () => {
    const node = await fakeNode(sglangAnswers({ role: 'null', version: '0.5.23', context: 4096, pool: 2048 }));
    closing.push(() => node.close());
    const words = await refusal({ upstream: [node.url] });
    assert.match(
      words,
      /Expected a tokenizer for .* \(it names `\/models\/GLM-5\.3`, which has no tokenizer\.json here\)\. .*`--tokenizer DIR`/,
    );
  });

  test('a pool that nobody knows', async () => {
    const { double, url } = await vllm();
    double.ranks = [{ num_gpu_blocks: 'None', kv_cache_size_tokens: 'None' }];
    assert.match(
      await refusal({ upstream: [url] }),
      /to say what its KV pool holds.* got nothing .*write `context` and `pool` down/,
    );
  });

  test('a pool smaller than the context, where that is not to be accepted', async () => {
    const { url } = await vllm();
    const words = await refusal({ upstream: [url], onSmallPool: 'refuse' });
    assert.match(
      words,
      /Expected a prefill pool of at least the advertised context of 4096 tokens at \S+, got 1920 tokens/,
    );
  });
});
