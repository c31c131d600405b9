/**
 * Goal: llama-server behind the contract of all engines, where one tenant's request can't end the others'. Method: the shared cases
 * over a server that answers as b11434 did, in both layouts of its pool; the gateway's own accounting over it; then each thing that
 * such a server can say wrongly.
 */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { CodedError } from '../../base/errors.js';
import { openAccount, WaitingRoom } from '../../gateway/waiting.js';
import { decideAdmission } from '../../handoff/admission.js';
import { ask, type Heard } from '../../../test/support/ask-upstream.js';
import { countNow, runUpstreamCases } from '../../../test/cases/upstream.js';
import { clock, closeAll, served, text, until } from '../../../test/support/llama-served.js';
import type { UpstreamRun } from '../upstream.js';
import { type LlamaUpstream, SELF_TEST_TOKENS } from './adapter.js';
import { llamaError } from './errors.js';

after(closeAll);

runUpstreamCases('the adapter of llama-server with one pool', { make: async () => (await served()).upstream });
runUpstreamCases('the adapter of llama-server with a part of the pool for each slot', {
  make: async () => (await served({ unified: false }, { layout: 'split' })).upstream,
});

/** The gateway's own accounting in front of an upstream: nothing is dispatched that it does not have room for. */
class Front {
  readonly #upstream: LlamaUpstream;
  readonly #room: WaitingRoom;
  #tenants = 0;

  constructor(upstream: LlamaUpstream, tenants: number) {
    this.#upstream = upstream;
    this.#room = new WaitingRoom({
      clock,
      tenants,
      size: () => {
        const { decodePool, pageTokens } = upstream.capacity();
        return {
          runningMax: upstream.describe().runningMax,
          poolTokens: decodePool,
          pageTokens,
          requestTokensMax: decodePool!,
        };
      },
    });
  }

  get running(): number {
    return this.#room.running;
  }

  get waiting(): number {
    return this.#room.waiting;
  }

  /** One request of a new tenant, from its turn to its release. */
  send(
    prompt: { readonly kind: 'text'; readonly text: string },
    maxTokens: number,
    onRun?: (run: UpstreamRun) => void,
  ): Promise<Heard> {
    const number = ++this.#tenants;
    const account = openAccount({ name: `t${number}`, number, salt: 'aa', keys: [] } as never);
    return new Promise((resolve, reject) => {
      this.#room.enter(account, prompt.text.length + maxTokens - 1, {
        granted: (ticket) => {
          const heard = ask(this.#upstream, { prompt, maxTokens, tenant: number }, onRun, () => ticket.ended());
          void heard.then((what) => {
            ticket.released();
            resolve(what);
          });
        },
        refused: reject,
      });
    });
  }
}

describe('one pool for all slots of llama-server', () => {
  const lengths = [300, 1500, 1500, 1200];

  test('asked past the gateway, four tenants end each other, the small one too', async () => {
    const { url, server } = await served();
    server.isHeld = true;
    const all = lengths.map((length) =>
      fetch(`${url}/v1/completions`, {
        method: 'POST',
        body: JSON.stringify({ prompt: 'a'.repeat(length), max_tokens: 400 }),
      }),
    );
    await until(() => server.slots.every(({ job }) => job !== null));
    server.isHeld = false;
    server.wake();
    const statuses = (await Promise.all(all)).map(({ status }) => status);
    assert.deepEqual([statuses, server.ended], [[500, 500, 500, 500], 4]);
  });

  test('through the gateway all four get their answers, since what runs together fits the pool', async () => {
    const { upstream, server } = await served();
    const front = new Front(upstream, 4);
    const heard = await Promise.all(lengths.map((length) => front.send(text(length), 400)));
    assert.deepEqual(
      heard.map(({ end }) => end.kind),
      ['finished', 'finished', 'finished', 'finished'],
    );
    assert.equal(server.ended, 0);
    assert.ok(server.peak <= 4096 - SELF_TEST_TOKENS, `${server.peak} tokens at once`);
  });

  test('a request whose client left counts until the server has found out', async () => {
    const { upstream, server } = await served();
    const front = new Front(upstream, 2);
    server.isHeld = true;
    server.findsOrphans = false;
    let run: UpstreamRun | null = null;
    const first = front.send(text(2500), 100, (each) => (run = each));
    await until(() => server.slots.some(({ job }) => job !== null));
    run!.abort();
    const second = front.send(text(2500, 'b'), 10);
    await until(() => server.slots.some(({ job }) => job?.isOrphan === true));
    await new Promise((resolve) => clock.after(150, () => resolve(null)));
    assert.deepEqual([front.running, front.waiting], [0, 1], 'the second waits for its room');
    server.findsOrphans = true;
    server.isHeld = false;
    server.wake();
    assert.equal((await first).end.kind, 'aborted');
    assert.equal((await second).end.kind, 'finished');
    assert.equal(server.ended, 0);
  });

  test('a request that was given up before the server began it counts until its slot stays idle', async () => {
    const { upstream, server } = await served();
    // The server reads the request late, when its client has long gone.
    server.instead = (request, response) => {
      if (!request.path.endsWith('completions') || request.body.prompt !== 'a'.repeat(2500)) return false;
      clock.after(30, () => server.begin(request, response));
      return true;
    };
    server.findsOrphans = false;
    const front = new Front(upstream, 2);
    const first = front.send(text(2500), 100, (each) => clock.after(10, () => each.abort()));
    await until(() => server.slots.some(({ job }) => job !== null));
    server.isHeld = true;
    const second = front.send(text(2500, 'b'), 10);
    await new Promise((resolve) => clock.after(150, () => resolve(null)));
    assert.equal(front.waiting, 1);
    server.findsOrphans = true;
    server.isHeld = false;
    server.wake();
    await Promise.all([first, second]);
    assert.equal(server.ended, 0);
  });

  test('where the server hides its slots, one that was given up counts for a fixed time, and the operators hear of it', async () => {
    const { upstream, notice } = await served({}, {}, (server) => (server.showsSlots = false));
    assert.match((await notice('slots-hidden')).words, /counts for a fixed time/);
    const began = clock.nowMs();
    const heard = await ask(upstream, { maxTokens: 100 }, (run) => run.abort());
    assert.equal(heard.end.kind, 'aborted');
    assert.ok(clock.nowMs() - began >= 100, 'released after its time');
  });

  test('a pool that was exceeded all the same is a failure of the engine, whole and streamed', async () => {
    for (const streamed of [false, true]) {
      const { upstream, server, notice } = await served();
      server.isHeld = true;
      const both = [
        ask(upstream, { prompt: text(2500), streamed }),
        ask(upstream, { prompt: text(2500, 'b'), tenant: 2, streamed }),
      ];
      await until(() => server.slots.filter(({ job }) => job !== null).length === 2);
      server.isHeld = false;
      server.wake();
      for (const { end } of await Promise.all(both)) assert.ok(end.kind === 'failed' && end.code === 'engine_failed');
      assert.match((await notice('pool-exceeded')).words, /ended every request/);
    }
  });
});

describe('the numbers of a llama-server', () => {
  test('unless the operator knows better, the slots are taken to share what one of them takes', async () => {
    const { upstream } = await served();
    const { context, decodePool, prefillPool, nodes, pageTokens } = upstream.capacity();
    assert.deepEqual(
      [context, decodePool, prefillPool, pageTokens],
      [4096, 4096 - SELF_TEST_TOKENS, 4096 - SELF_TEST_TOKENS, 1],
    );
    assert.equal(upstream.describe().runningMax, 4);
    assert.match(nodes[0]!.source, /does not say whether its slots share the pool/);
    const part = await served({ unified: false });
    assert.deepEqual(
      [part.upstream.capacity().context, part.upstream.capacity().decodePool],
      [1024, 1024 - SELF_TEST_TOKENS],
    );
  });

  test('as the operator configures it, each slot has its part, or all share a pool of another size', async () => {
    const split = await served({ unified: false }, { layout: 'split' });
    assert.deepEqual([split.upstream.capacity().context, split.upstream.capacity().decodePool], [1024, 4096]);
    const pooled = await served({}, { layout: 'unified', pool: 8192, context: 2048, runningMax: 3 });
    assert.deepEqual(
      [pooled.upstream.capacity().context, pooled.upstream.capacity().decodePool],
      [2048, 8192 - SELF_TEST_TOKENS],
    );
    assert.equal(pooled.upstream.describe().runningMax, 3);
  });

  test('a prompt of exactly what a slot takes is refused there, so admission by these numbers never sends it', async () => {
    const { upstream, server } = await served({}, { pool: 8192 });
    const verdict = async (length: number) =>
      decideAdmission(await countNow(upstream, text(length)), 1, upstream.capacity()).kind;
    assert.deepEqual([await verdict(4096), await verdict(4095)], ['prompt-too-long', 'admitted']);
    assert.equal((await ask(upstream, { prompt: text(4095), maxTokens: 1 })).end.kind, 'finished');
    const direct = await ask(upstream, { prompt: text(4096), maxTokens: 1 });
    assert.ok(direct.end.kind === 'failed' && direct.end.code === 'context_length_exceeded');
    assert.match(direct.end.detail, /status 400, type exceed_context_size_error, code 400/);
    assert.equal(server.asked.length, 2);
  });

  test('what it calls an invalid request is one, and what it fails over is its own failure', () => {
    const code = (status: number | null, error: unknown) => llamaError(status, error)?.code ?? null;
    assert.equal(
      code(400, { code: 400, message: 'unrecognized type', type: 'invalid_request_error' }),
      'invalid_request',
    );
    assert.equal(code(null, { code: 400, type: 'exceed_context_size_error' }), 'context_length_exceeded');
    assert.deepEqual(
      [code(500, { code: 500, type: 'server_error' }), code(null, 'words'), code(503, undefined)],
      [null, null, null],
    );
  });

  for (const said of [0, -1, null, 'None', 1e300, 4096.5]) {
    test(`a context of ${JSON.stringify(said)} admits nothing, and the operators hear why`, async () => {
      const { upstream, notice } = await served({}, {}, (server) => (server.contextSaid = said));
      assert.deepEqual([upstream.capacity().context, upstream.capacity().decodePool], [null, null]);
      assert.equal(decideAdmission(1, 1, upstream.capacity()).kind, 'unknown');
      assert.match((await notice('capacity-unknown')).words, /does not say what its slots hold/);
    });
  }

  test('a pool that shrinks while it serves is the pool from the next reading on', async () => {
    const { upstream, server, notice } = await served();
    server.pool = 2048;
    assert.equal((await notice('pool-shrank')).words, 'from 4096 tokens to 2048 tokens');
    assert.equal(upstream.capacity().decodePool, 2048 - SELF_TEST_TOKENS);
  });

  test('another version is told, another model takes the server out until it has the old one again', async () => {
    const { upstream, server, notice } = await served();
    server.build = 'b12000';
    assert.equal((await notice('version-changed')).words, 'from `b11434` to `b12000`');
    server.models = ['other'];
    assert.match((await notice('model-changed')).words, /does not serve `lab` but `other`/);
    const health = upstream.health();
    assert.ok(!health.isUp && health.reason === 'changed');
    server.models = ['lab'];
    await until(() => upstream.health().isUp);
  });

  test('a server that is loading, or not there, takes no requests', async () => {
    const { upstream, server } = await served({}, {}, (each) => (each.isLoading = true));
    assert.deepEqual(upstream.health(), { isUp: false, reason: 'unreachable', words: 'status 503' });
    assert.equal(upstream.capacity().decodePool, null);
    server.isLoading = false;
    await until(() => upstream.health().isUp);
    await server.close();
    await until(() => !upstream.health().isUp);
  });

  test('what a template may write is rendered with what it may write it from, and a picture is not counted as nothing', async () => {
    const { upstream, server } = await served();
    const messages = [{ role: 'user', content: 'hi' }];
    const tools = [{ type: 'function', function: { name: 'f' } }];
    const rich = { messages, tools, fields: { tool_choice: 'auto' }, hasData: false };
    await countNow(upstream, { kind: 'chat', messages, rich });
    const [asked] = server.requests.filter(({ path }) => path === '/apply-template');
    assert.deepEqual(asked!.body, { messages, tools, tool_choice: 'auto' });
    const picture = { kind: 'chat', messages, rich: { ...rich, hasData: true } } as const;
    assert.throws(
      () => upstream.count(picture),
      (error) => error instanceof CodedError && error.code === 'invalid_request',
    );
  });

  test('a chat is rendered and counted by the server, and a template that refuses is the prompt’s fault', async () => {
    const { upstream, server } = await served();
    assert.equal(await countNow(upstream, { kind: 'chat', messages: [{ role: 'user', content: 'hé' }] }), 21);
    const asked = server.requests.filter(({ path }) => path === '/tokenize');
    assert.deepEqual([asked[0]!.body.add_special, asked[0]!.body.parse_special], [true, true]);
    server.instead = ({ path }, response) => {
      if (path !== '/apply-template') return false;
      response.writeHead(400).end('{"error":{"message":"secret"}}');
      return true;
    };
    const refused = countNow(upstream, { kind: 'chat', messages: [{ role: 'tool', content: 'x' }] });
    await assert.rejects(refused, (error) => error instanceof CodedError && error.code === 'invalid_request');
    server.instead = ({ path }, response) => {
      if (path !== '/tokenize') return false;
      response.end('{"tokens":7}');
      return true;
    };
    await assert.rejects(
      countNow(upstream, text(3)),
      (error) => error instanceof CodedError && error.code === 'engine_unavailable',
    );
  });
});
