/** Goal: what the probe says, in every format, and what it says of endpoints that are not as they should be. Method: the verb against small servers. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { withFolder } from '../../test/support/audit-verb.js';
import { elementsOf, readMarkup } from '../../test/support/markup-reader.js';
import {
  type Behaviour,
  type Endpoint,
  KEY_A,
  KEY_B,
  leaking,
  type ProbeRan,
  runProbeVerbHere,
  startEndpoint,
  TWO,
  usualReply,
  VARIABLES,
} from '../../test/support/probe-endpoint.js';
import { assertSarif } from '../../test/support/sarif-shape.js';
import { makeMarker } from '../markers/marker.js';

/** Of a run that is not this one. */
const ALIEN = makeMarker(new Uint8Array(32), 'x', 'y', 0).text;

interface ProbeJson {
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
function against(
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

async function probeJson(args: readonly string[]): Promise<ProbeRan & { readonly json: ProbeJson }> {
  const ran = await runProbeVerbHere([...args, '--output', 'json']);
  return { ...ran, json: JSON.parse(ran.out) as ProbeJson };
}

/** No file and no line of a run holds a key or a prompt. */
function assertNoSecret(texts: readonly string[], prompts: readonly string[]): void {
  for (const text of texts) {
    assert.ok(!text.includes(KEY_A) && !text.includes(KEY_B), 'a key is in an output');
    for (const prompt of prompts)
      assert.ok(prompt.length < 20 || !text.includes(JSON.stringify(prompt).slice(1, 24)), 'a prompt is in an output');
  }
}

test(
  'a clean endpoint is isolated, in every format of one run, and no output holds a key or a prompt',
  against(undefined, async ({ url, posted }, folder) => {
    const file = (name: string): string => join(folder, name);
    const outputs = ['html=r.html', 'junit=r.xml', 'sarif=r.sarif', 'table=r.txt'].map((each) =>
      each.replace('=', `=${folder}/`),
    );
    const record = ['--record', file('r.jsonl')];
    const ran = await probeJson([
      url,
      ...TWO,
      ...record,
      '--only',
      'boundary,canary',
      ...outputs.flatMap((each) => ['--output', each]),
    ]);
    assert.equal(ran.code, 0, ran.err);
    assert.equal(ran.json.verdict, 'isolated');
    assert.deepEqual(
      ran.json.experiments.map(({ name, verdict, hits }) => [name, verdict, hits]),
      [
        ['boundary', 'isolated', 0],
        ['canary', 'isolated', 0],
      ],
    );
    const texts = readdirSync(folder).map((name) => readFileSync(file(name), 'utf8'));
    assertNoSecret(
      [...texts, ran.out, ran.err],
      posted.map(({ prompt }) => prompt),
    );
    assert.equal(statSync(file('r.jsonl')).mode & 0o777, 0o600);
    assertSarif(readFileSync(file('r.sarif'), 'utf8'));
    assert.match(readFileSync(file('r.xml'), 'utf8'), /failures="0"/);
    // Every format is made of the record alone: converted, it is the same byte by byte.
    for (const format of ['json', 'html', 'junit', 'sarif', 'table']) {
      const again = await runProbeVerbHere(['--convert', file('r.jsonl'), '--output', format]);
      assert.equal(again.code, 0);
      const name = { json: null, html: 'r.html', junit: 'r.xml', sarif: 'r.sarif', table: 'r.txt' }[format];
      assert.equal(again.out, name === null ? ran.out : readFileSync(file(name!), 'utf8'), format);
    }
    for (const { headers } of posted) {
      assert.match(headers['user-agent'] ?? '', /^cofferdam-probe\//);
      assert.match(String(headers['x-cofferdam-probe']), /^[0-9a-f]{16}$/);
    }
  }),
);

test(
  'a leak is shown with both requests, and its script replays it with curl and without a key in it',
  against(leaking(), async ({ url, posted }, folder) => {
    const file = (name: string): string => join(folder, name);
    const ran = await probeJson([
      url,
      ...TWO,
      ...['--record', file('r.jsonl'), '--only', 'canary', '--repro', file('hit.sh')],
      ...[
        '--output',
        `sarif=${file('r.sarif')}`,
        '--output',
        `junit=${file('r.xml')}`,
        '--output',
        `html=${file('r.html')}`,
      ],
    ]);
    assert.equal(ran.code, 1, ran.err);
    assert.equal(ran.json.verdict, 'leaks');
    const hit = ran.json.hits[0]!;
    assert.match(String(hit.marker), /^KVC-[a-z2-7]{26}$/);
    assert.notEqual(hit.owner, hit.tenant);
    assert.match(String(hit.planted), /^q-\d+$/);
    assert.equal(typeof hit.overlapMs, 'number');
    const sarif = readFileSync(file('r.sarif'), 'utf8');
    assertSarif(sarif);
    assert.match(sarif, /"ruleId": "probe\.foreign-content"/);
    assert.match(readFileSync(file('r.xml'), 'utf8'), /<failure/);
    const html = readFileSync(file('r.html'), 'utf8');
    assert.ok(html.includes(String(hit.marker)));
    assertNoSecret(
      [ran.out, ran.err, sarif, html, readFileSync(file('r.jsonl'), 'utf8')],
      posted.map(({ prompt }) => prompt),
    );
    const script = readFileSync(file('hit.sh'), 'utf8');
    assertNoSecret([script], []);
    assert.equal(statSync(file('hit.sh')).mode & 0o777, 0o700);
    const before = posted.length;
    const out = await new Promise<string>((resolve, reject) => {
      execFile('sh', [file('hit.sh')], { env: { ...process.env, ...VARIABLES } }, (error, stdout, stderr) =>
        error === null ? resolve(stdout) : reject(new Error(`${stdout}${stderr}`, { cause: error })),
      );
    });
    assert.match(out, /^round \d+: the answer of tenant/);
    assert.ok(posted.length - before >= 2);
  }),
);

test(
  'a marker that nobody of this run made ends the run at once, and is kept nowhere',
  against(
    ({ prompt, stream }, usual) => (stream && prompt.length > 100 ? { ...usual, text: ALIEN } : usual),
    async ({ url, posted }, folder) => {
      const record = join(folder, 'r.jsonl');
      const ran = await probeJson([url, ...TWO, '--record', record]);
      assert.equal(ran.code, 1, ran.err);
      assert.equal(ran.json.verdict, 'leaks');
      assert.match(String(ran.json.stopped), /held a marker that this run never made, so nothing more is sent/);
      assert.equal(ran.json.hits[0]!.owner, null);
      assert.ok(posted.length < 40, `${posted.length} requests`);
      for (const text of [ran.out, ran.err, readFileSync(record, 'utf8')]) assert.ok(!text.includes(ALIEN));
    },
  ),
);

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
      ...[
        '--tenant',
        'a=env:KEY_A',
        '--model',
        'lab',
        '--only',
        'boundary,canary',
        '--record',
        join(folder, 'r.jsonl'),
      ],
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
      /in all: at most [\d,]+ requests, [\d,]+ tokens, about \d+ s, at most [\d.]+ at 2.5 per million tokens/,
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

test(
  'a placeholder is a critical finding, a truncation a high one, and neither is isolated',
  against(
    ({ prompt }, usual) => {
      if (prompt.length === 599) return { text: 'well.', usage: { prompt_tokens: 1, completion_tokens: 5 } };
      return prompt.length === 600 ? { text: 'well.', usage: { prompt_tokens: 512, completion_tokens: 5 } } : usual;
    },
    async ({ url }, folder) => {
      const sarif = join(folder, 'r.sarif');
      const { json } = await probeJson([
        url,
        ...TWO,
        '--only',
        'boundary',
        '--record',
        join(folder, 'r.jsonl'),
        '--output',
        `sarif=${sarif}`,
      ]);
      assert.equal(json.verdict, 'no-power');
      const { runs } = JSON.parse(readFileSync(sarif, 'utf8')) as {
        runs: { results: { ruleId: string; properties: { severity: string } }[] }[];
      };
      const found = runs[0]!.results.map(({ ruleId, properties }) => `${ruleId} ${properties.severity}`);
      assert.ok(found.includes('probe.answered-beyond-limit critical'), found.join());
      assert.ok(found.includes('probe.answered-beyond-limit high'), found.join());
    },
  ),
);

test(
  'what a record says is data on the page: no tag, script or link of it lives',
  against(undefined, async ({ url }, folder) => {
    const file = join(folder, 'r.jsonl');
    await runProbeVerbHere([url, ...TWO, '--only', 'canary', '--record', file]);
    const hostile = '</style><script>alert(1)</script><img src=x onerror=alert(1)>';
    const lines = readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map((line) => {
        const record = JSON.parse(line) as Record<string, unknown>;
        if (record.record === 'probe')
          return JSON.stringify({ ...record, model: hostile, tenants: [hostile], endpoint: hostile });
        return record.record === 'experiment'
          ? JSON.stringify({
              ...record,
              control: hostile,
              evidence: [hostile],
              figures: { [hostile]: [1, 2, 3, 4, 5, 6] },
            })
          : line;
      });
    writeFileSync(file, `${lines.join('\n')}\n`);
    const { out } = await runProbeVerbHere(['--convert', file, '--output', 'html']);
    const names = [...elementsOf(readMarkup(out))].map(({ name }) => name.toLowerCase());
    for (const name of ['script', 'img', 'iframe', 'link', 'object']) assert.ok(!names.includes(name), name);
    assert.match(out, /default-src 'none'/);
    assert.ok(out.includes('&lt;script&gt;'));
  }),
);
