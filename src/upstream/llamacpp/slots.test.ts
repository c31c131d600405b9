/**
 * Goal: what a slot keeps of a prompt serves nobody else, and each request has a slot of its own. Method: requests of several
 * tenants over a server that answers as b11434 did, and a look at what it was asked.
 */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { ask } from '../../../test/support/ask-upstream.js';
import { closeAll, served, text, until } from '../../../test/support/llama-served.js';
import type { UpstreamRun } from '../upstream.js';

after(closeAll);

describe('what llama-server keeps of a prompt', () => {
  const same = text(200);

  test('is used for nobody: every request says so, and names its own slot', async () => {
    const { upstream, server } = await served();
    const first = await ask(upstream, { prompt: same, engineFields: { cache_prompt: true, id_slot: 3, slot_id: 3 } });
    const again = await ask(upstream, { prompt: same });
    for (const { body } of server.asked) assert.equal(body.cache_prompt, false);
    assert.deepEqual(
      server.asked.map(({ body }) => [body.id_slot, body.slot_id, body.max_tokens]),
      [
        [0, undefined, 3],
        [0, undefined, 3],
      ],
    );
    for (const { end } of [first, again]) assert.ok(end.kind === 'finished' && end.usage.cachedTokens === null);
  });

  test('is used for its own tenant where slots are kept per tenant, and the figure stays here', async () => {
    const { upstream, server } = await served({ slots: 2 }, { slots: 'per-tenant' });
    for (const tenant of [1, 2, 1, 2, 3, 1]) {
      const { end } = await ask(upstream, { prompt: same, tenant });
      assert.ok(end.kind === 'finished' && end.usage.cachedTokens === null);
    }
    assert.deepEqual(
      server.asked.map(({ body }) => [body.id_slot, body.cache_prompt]),
      [
        [0, false],
        [1, false],
        [0, true],
        [1, true],
        [0, false],
        [1, false],
      ],
    );
  });

  test('and used all the same is withheld', async () => {
    const { upstream, server } = await served({ slots: 1 });
    server.instead = ({ path, body }, response) => {
      if (!path.endsWith('completions')) return false;
      server.begin({ path, headers: {}, body: { ...body, cache_prompt: true } }, response);
      return true;
    };
    assert.equal((await ask(upstream, { prompt: same })).end.kind, 'finished');
    const { end } = await ask(upstream, { prompt: same, tenant: 2 });
    assert.ok(end.kind === 'failed' && end.code === 'verification_failed' && end.guard === 'salt');
    assert.match(end.detail, /199 tokens came out of the cache/);
  });

  test('is anybody’s with the guard off', async () => {
    const { upstream, server } = await served();
    await ask(upstream, { prompt: same, salt: '' });
    assert.equal((await ask(upstream, { prompt: same, salt: '', tenant: 2 })).end.kind, 'finished');
    assert.deepEqual(
      server.asked.map(({ body }) => body.cache_prompt),
      [true, true],
    );
  });
});

describe('slots of llama-server', () => {
  test('more requests than slots wait here, in order, and one that is given up waiting was never sent', async () => {
    const { upstream, server } = await served({ slots: 1 });
    server.isHeld = true;
    const first = ask(upstream);
    let waiting: UpstreamRun | null = null;
    const second = ask(upstream, { tenant: 2 }, (run) => (waiting = run));
    const third = ask(upstream, { tenant: 3 });
    await until(() => server.asked.length === 1);
    waiting!.abort();
    assert.equal((await second).end.kind, 'aborted');
    server.isHeld = false;
    server.wake();
    assert.deepEqual([(await first).end.kind, (await third).end.kind], ['finished', 'finished']);
    assert.equal(server.asked.length, 2);
  });

  test('a request never meets a connection that the server closes behind a stream, and is streamed whatever the tenant wants', async () => {
    const { upstream, server } = await served();
    for (const streamed of [true, false, true]) {
      assert.equal((await ask(upstream, { streamed })).end.kind, 'finished');
    }
    assert.deepEqual(
      server.asked.map(({ headers, body }) => [headers.connection, body.stream]),
      Array(3).fill(['close', true]),
    );
  });

  test('a self-test takes a slot of its own and gives up when none becomes free', async () => {
    const { upstream, server } = await served({ slots: 1 });
    const two = await Promise.all([1, 2].map(() => upstream.selfTest(AbortSignal.timeout(5000))));
    assert.deepEqual([two, server.asked.length], [[null, null], 1]);
    server.isHeld = true;
    const busy = ask(upstream);
    await until(() => server.asked.length === 2);
    assert.match((await upstream.selfTest(AbortSignal.timeout(30)))!, /no slot became free/);
    server.isHeld = false;
    server.wake();
    await busy;
    assert.equal(await upstream.selfTest(AbortSignal.timeout(5000)), null);
  });

  test('requests past the gateway are told to the operators', async () => {
    const { server, url, notice, notices, upstream } = await served();
    await ask(upstream);
    assert.deepEqual(notices, []);
    server.isHeld = true;
    const stranger = fetch(`${url}/v1/completions`, { method: 'POST', body: '{"prompt":"abc","max_tokens":2}' });
    assert.match((await notice('foreign-requests')).words, /did not come from here/);
    server.isHeld = false;
    server.wake();
    await stranger;
  });

  test('closing releases what runs, waits or leaves', async () => {
    const { upstream, server } = await served({ slots: 1 });
    server.isHeld = true;
    server.findsOrphans = false;
    const heard = [ask(upstream), ask(upstream), ask(upstream)];
    await until(() => server.asked.length === 1);
    await upstream.close();
    assert.deepEqual(
      (await Promise.all(heard)).map(({ end }) => end.kind),
      ['aborted', 'aborted', 'aborted'],
    );
    server.isHeld = false;
  });
});
