/** Goal: endpoints that are not as they should be are said to be so, and never isolated by mistake. Method: the verb against small servers. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { withFolder } from '../../test/support/audit-verb.js';
import {
  against,
  KEY_A,
  probeJson,
  runProbeVerbHere,
  startEndpoint,
  TWO,
  usualReply,
} from '../../test/support/probe-endpoint.js';

test('a port where nobody listens could not be probed, and every experiment says so', async () => {
  const endpoint = await startEndpoint();
  await endpoint.close();
  await withFolder(async (folder) => {
    const { code, json, err } = await probeJson([endpoint.url, ...TWO, '--record', join(folder, 'r.jsonl')]);
    assert.equal(code, 3);
    assert.equal(json.verdict, 'could-not-run');
    assert.ok(json.experiments.length >= 3 && json.experiments.every(({ verdict }) => verdict === 'could-not-run'));
    assert.match(err, /Check the URL, the key and `--model`/);
  })();
});

test(
  'a wrong key could not be probed, with the status that came and without the key',
  against(undefined, async ({ url }, folder) => {
    const ran = await runProbeVerbHere([url, ...TWO, '--record', join(folder, 'r.jsonl')], {
      variables: { KEY_A, KEY_B: 'sk-wrong-key-of-tests' },
    });
    assert.equal(ran.code, 3);
    assert.match(ran.out.replaceAll('\n', ' '), /the tenant b to be answered, got: refused, status 401/);
    assert.ok(!(ran.out + ran.err).includes('sk-wrong'));
  }),
);

test(
  'with one tenant, the plan says which experiments can not run, and the verdict is not isolated',
  against(undefined, async ({ url }, folder) => {
    const { code, json, err } = await probeJson([
      url,
      '--tenant',
      'a=env:KEY_A',
      '--model',
      'lab',
      '--only',
      'boundary,canary',
      '--record',
      join(folder, 'r.jsonl'),
    ]);
    assert.equal(code, 3);
    assert.equal(json.verdict, 'could-not-run');
    assert.match(err, /canary: can not run: it needs two tenants, and one was given/);
    assert.match(err, /boundary: at most \d+ requests/);
  }),
);

for (const [words, choice] of [
  ['refuses in words', { index: 0, text: "I can't help with that.", finish_reason: 'stop' }],
  [
    'answers with a tool',
    {
      index: 0,
      message: { content: null, tool_calls: [{ function: { name: 'f', arguments: '{}' } }] },
      finish_reason: 'tool_calls',
    },
  ],
] as const) {
  test(
    `a model that ${words} leaves no power to tell`,
    against(
      (_, usual) => (usual.text === undefined ? usual : { ...usual, choice }),
      async ({ url }, folder) => {
        const { code, json } = await probeJson([
          url,
          ...TWO,
          '--only',
          'boundary,canary',
          '--record',
          join(folder, 'r.jsonl'),
        ]);
        assert.equal(code, 3);
        assert.equal(json.verdict, 'no-power');
        assert.match(json.experiments[1]!.control, /^0 of \d+ prompts that planted a marker got it back/);
      },
    ),
  );
}

test(
  'an endpoint without usage and without streams is probed as far as it goes',
  against(
    (posted) => ({ ...usualReply(posted, 4), usage: null, whole: true }),
    async ({ url, posted }, folder) => {
      const { code, json, err } = await probeJson([
        url,
        ...TWO,
        '--only',
        'boundary,canary',
        '--record',
        join(folder, 'r.jsonl'),
      ]);
      assert.equal(code, 3);
      assert.deepEqual(
        json.experiments.map(({ verdict }) => verdict),
        ['could-not-run', 'isolated'],
      );
      assert.match(err, /prompts are not counted, no streams/);
      assert.equal(posted.filter(({ stream }) => stream).length, 1, 'only the one that tried');
    },
  ),
);

test(
  'answers of 429 are waited out, counted and reported, and the verdict stays',
  against(
    ({ number }, usual) =>
      number % 25 === 20
        ? { status: 429, headers: { 'retry-after': '0' }, error: { type: 'rate_limit_error', message: 'slow' } }
        : usual,
    async ({ url }, folder) => {
      const { code, json, err } = await probeJson([
        url,
        ...TWO,
        '--only',
        'canary',
        '--record',
        join(folder, 'r.jsonl'),
      ]);
      assert.equal(code, 0, err);
      assert.ok(json.throttled >= 2);
      assert.equal(json.experiments[0]!.verdict, 'isolated');
    },
  ),
);

test(
  'a storm of 429 that asks for an hour ends the experiment without power, and sends no more',
  against(
    ({ number }, usual) =>
      number > 20
        ? { status: 429, headers: { 'retry-after': '3600' }, error: { type: 'rate_limit_error', message: 'slow' } }
        : usual,
    async ({ url, posted }, folder) => {
      const { code, json } = await probeJson([url, ...TWO, '--only', 'canary', '--record', join(folder, 'r.jsonl')]);
      assert.equal(code, 3);
      assert.equal(json.experiments[0]!.verdict, 'no-power');
      assert.match(json.experiments[0]!.control, /the endpoint answers 429 and asks to wait 3600 s/);
      assert.ok(posted.length < 50, `${posted.length} requests`);
      // What was open when it ended is in the record too, and nothing comes after its end.
      const records = readFileSync(join(folder, 'r.jsonl'), 'utf8').trim().split('\n');
      const sent = records.filter((line) => line.startsWith('{"record":"request","experiment":"canary"')).length;
      assert.ok(sent >= 10, `${sent} of the 10 prompts that were sent at once`);
      assert.match(records.at(-1)!, /^\{"record":"end"/);
    },
  ),
);

test(
  'a budget or a bound that leaves no power is said before anything is sent for it',
  against(undefined, async ({ url, posted }, folder) => {
    const dry = await runProbeVerbHere([
      url,
      ...TWO,
      '--dry-run',
      '--budget-requests',
      '60',
      '--bound',
      '0.001',
      '--price',
      '2.5',
    ]);
    assert.equal(dry.code, 0, dry.err);
    assert.equal(dry.out, '');
    assert.match(dry.err, /too small: --budget-requests 60 may end before canary is through/);
    assert.match(dry.err, /no power: --bound 0.001 takes 2,995 answers without a leak, and canary sends at most/);
    assert.match(
      dry.err,
      /in all: at most [\d,]+ requests, [\d,]+ tokens, about .* s, at most [\d.]+ at 2.5 per million tokens/,
    );
    assert.ok(posted.length < 20, 'learning alone');
    const { code, json } = await probeJson([
      url,
      ...TWO,
      '--only',
      'canary',
      '--budget-requests',
      '60',
      '--record',
      join(folder, 'r.jsonl'),
    ]);
    assert.equal(code, 3);
    assert.match(json.experiments[0]!.control, /stopped, since 60 requests are spent/);
    assert.equal(json.stopped, '60 requests are spent');
  }),
);

test('beyond loopback somebody has to say yes, and nothing is sent before', async () => {
  const endpoint = await startEndpoint();
  // It is this machine, and does not look like it.
  const url = `http://0.0.0.0:${endpoint.port}/v1`;
  try {
    await withFolder(async (folder) => {
      const args = [url, ...TWO, '--only', 'boundary', '--record', join(folder, 'r.jsonl')];
      const refused = await runProbeVerbHere(args);
      assert.equal(refused.code, 2);
      assert.match(refused.err, /Expected `--yes`/);
      assert.equal(endpoint.posted.length, 0);
      const asked: string[] = [];
      const no = await runProbeVerbHere(args, {
        ask: (question) => {
          asked.push(question);
          return Promise.resolve('n');
        },
      });
      assert.equal(no.code, 3);
      assert.equal(asked.length, 1);
      const learned = endpoint.posted.length;
      assert.ok(learned < 20);
      const yes = await runProbeVerbHere([...args.slice(0, -1), join(folder, 's.jsonl'), '--yes']);
      assert.equal(yes.code, 0, yes.err);
      assert.ok(endpoint.posted.length > 2 * learned);
    })();
  } finally {
    await endpoint.close();
  }
});
