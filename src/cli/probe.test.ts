/** Goal: what the probe says, in every format, of endpoints that answer. Method: the verb against small servers. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { elementsOf, readMarkup } from '../../test/support/markup-reader.js';
import {
  against,
  KEY_A,
  KEY_B,
  leaking,
  probeJson,
  runProbeVerbHere,
  TWO,
  VARIABLES,
} from '../../test/support/probe-endpoint.js';
import { assertSarif } from '../../test/support/sarif-shape.js';
import { makeMarker } from '../markers/marker.js';

/** Of a run that is not this one. */
const ALIEN = makeMarker(new Uint8Array(32), 'x', 'y', 0).text;

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
      '--record',
      file('r.jsonl'),
      '--only',
      'canary',
      '--repro',
      file('hit.sh'),
      '--output',
      `sarif=${file('r.sarif')}`,
      '--output',
      `junit=${file('r.xml')}`,
      '--output',
      `html=${file('r.html')}`,
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
