/**
 * Goal: one file tells the server everything, its mistakes are told to people, a change is taken whole or not at all, and an end drains.
 * Method: the real program in processes of its own, in folders of their own, on free ports.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { SystemClock, sleep } from '../src/base/clock.js';
import {
  type Ended,
  readMetrics,
  runCommand,
  type Served,
  startProgram,
  startServe,
  stopProgram,
  untilSaid,
} from './support/program.js';

const clock = new SystemClock();
const FREE = 'listen: {port: 0}\noperators: {port: 0}\noutput: json\n';
const SECRET = 'sk-never-to-be-shown';
const PROMPT = 'The word of the day is cofferdam. Today the word of the day is ';
/** What one look of the watch takes, twice, and a machine that is busy. */
const CHANGE_MS_MAX = 10_000;

let folder = '';
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'cofferdam-configuration-'));
});
after(() => rmSync(folder, { recursive: true }));

let files = 0;
function write(text: string | Uint8Array): string {
  const path = join(folder, `${++files}.yaml`);
  writeFileSync(path, text);
  return path;
}

const serveWith = (path: string, variables: Readonly<Record<string, string>> = {}): Promise<Ended> =>
  runCommand(['serve', '--config', path], variables);

const MISTAKES = `listen:
  port: "0"
  prot: 1
  port: 0
operators: {port: 0, key: ${SECRET}}
tenants:
  - {name: acme, keys: [env:ACME_KEY]}
  - {name: acme, keys: [env:COFFERDAM_NOT_SET]}
  - {name: globex, keys: [env:ACME_KEY]}
  - {name: third, keys: [file:no-such-file, ${SECRET}]}
limits: {wait: 30}
upstreams:
  - {kind: sgland}
`;

describe('a file that is wrong', { concurrency: 2 }, () => {
  test('ends the start with all of its mistakes, each with its place, and repeats no key', async () => {
    const path = write(MISTAKES);
    const ended = await serveWith(path, { ACME_KEY: SECRET });
    assert.deepEqual([ended.code, ended.out], [2, ''], ended.err);
    const said = ended.err.trimEnd().split('\n');
    const wanted: readonly (readonly [place: string, words: RegExp])[] = [
      ['2:9', /`listen\.port` to be a whole number.*got the text `0`/],
      ['3:3', /got `prot`\. Did you mean `port`\?/],
      ['4:3', /`listen\.port` once, got it again; the first is in line 2/],
      ['5:27', /`operators\.key` to be `env:NAME`, .* not repeated here/],
      ['8:12', /each tenant once, got `acme` again; the first is in line 7/],
      ['8:25', /the variable `COFFERDAM_NOT_SET`.* got nothing/],
      ['9:27', /each key to be used once.* the key of tenant `acme` \(line 7\) for tenant `globex`/],
      ['10:26', /the file `no-such-file`.* got none/],
      ['10:45', /`tenants\[3\]\.keys\[1\]` to be `env:NAME`, .* not repeated here/],
      ['11:16', /`limits\.wait` to be a time .* got `30`/],
      [
        '13:12',
        /`upstreams\[0\]\.kind` to be one of `embedded`, .*`openai`, got the text `sgland`\. Did you mean `sglang`\?/,
      ],
    ];
    assert.equal(said.length, wanted.length, ended.err);
    wanted.forEach(([place, words], index) => {
      assert.ok(said[index]?.startsWith(`error: ${path}:${place}: Expected `), `${place}: ${said[index]}`);
      assert.match(said[index] ?? '', words);
    });
    assert.ok(!ended.err.includes(SECRET));
  });

  const WHOLE: readonly (readonly [what: string, text: string | Uint8Array | null, words: RegExp])[] = [
    ['an empty file', '', /:1:1: .* got an empty file/],
    ['a tab', 'listen:\n\tport: 0\n', /:2:1: .* got a tab/],
    ['a bomb of aliases', 'a: &a [1]\nb: [*a, *a]\n', /:1:\d+: .* got an anchor[\s\S]*:2:5: .* got an alias/],
    ['bytes that are no UTF-8', Buffer.from('output: "\xff"', 'latin1'), /:1:10: Expected text in UTF-8/],
    ['a file over its bound', '#'.repeat(262_145), /:1:1: Expected a file of at most 262144 bytes, got 262145 bytes/],
    ['a folder', null, /:1:1: .* got a folder/],
  ];
  for (const [what, text, words] of WHOLE) {
    test(`${what} ends the start with exit code 2 and its place`, async () => {
      const ended = await serveWith(text === null ? folder : write(text));
      assert.deepEqual([ended.code, ended.out], [2, ''], ended.err);
      assert.match(ended.err, words);
    });
  }

  test('a port that is in use ends the start', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const ended = await serveWith(write(`listen: {port: ${port}}\noperators: {port: 0}\n`));
    server.close();
    assert.equal(ended.code, 2);
    assert.match(
      ended.err,
      new RegExp(`Expected port \`${port}\` on \`127\\.0\\.0\\.1\` to be free, got: it is in use`),
    );
  });
});

test('init writes an example that starts as it stands, and goes over no file unless told', async () => {
  const place = join(folder, 'init');
  mkdirSync(place);
  const output = join(place, 'cofferdam.yaml');
  const first = await runCommand(['init', '--output', output]);
  assert.equal(first.code, 0, first.err);
  const text = readFileSync(output, 'utf8');
  const schema = /^# yaml-language-server: \$schema=(\S+)\n/.exec(text)?.[1] ?? '';
  assert.ok(existsSync(join(place, schema)), schema);
  writeFileSync(output, 'mine');
  const second = await runCommand(['init', '--output', output]);
  assert.deepEqual([second.code, readFileSync(output, 'utf8')], [2, 'mine']);
  assert.match(second.err, /^error: Expected `.*` not to be there yet, got a file\. .*`--force`\.\n$/);
  assert.equal((await runCommand(['init', '--force', '--output', output])).code, 0);
  assert.equal(readFileSync(output, 'utf8'), text);
  const nowhere = await runCommand(['init', '--output', join(place, 'no', 'such', 'folder')]);
  assert.equal(nowhere.code, 2);
  assert.match(nowhere.err, /^error: Expected .* to be a file that can be written, got the error ENOENT/);

  const served = await startServe(['--config', output]);
  try {
    assert.deepEqual([served.facts.advertised, served.facts.tenants.length], [4096, 2]);
    assert.match(served.err(), /^warning: `--port` overrides `listen\.port` of .*cofferdam\.yaml$/m);
  } finally {
    await served.stop();
  }
});

interface Facts {
  readonly url: string;
  readonly opsUrl: string;
  readonly advertised: number;
  readonly config: { readonly path: string; readonly fingerprint: string };
}

/** The server on a file alone: no flag but `--config`. */
async function startOn(path: string, variables: Readonly<Record<string, string>>) {
  const program = startProgram(['serve', '--config', path], variables);
  await untilSaid(program, () => program.out().includes('\n'));
  const facts = JSON.parse(program.out().split('\n', 1)[0] ?? '') as Facts;
  const ask = (key: string, more: object = {}): Promise<Response> =>
    fetch(`${facts.url}/v1/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: 'lab', max_tokens: 9, prompt: PROMPT, ...more }),
    });
  const status = async (key: string): Promise<number> => {
    const response = await ask(key);
    await response.arrayBuffer();
    return response.status;
  };
  const outcomes = async (outcome: string): Promise<number> =>
    (await readMetrics(facts.opsUrl)).get(`cofferdam_config_reloads_total{outcome="${outcome}"}`) ?? Number.NaN;
  return { ...program, facts, ask, status, outcomes };
}

const tenants = (rows: string): string => `${FREE}tenants:\n${rows}`;

describe('while it serves', () => {
  const ACME = '  - {name: acme, keys: [env:ACME_KEY]}\n';
  const GLOBEX = '  - {name: globex, keys: [file:globex.key]}\n';
  let path = '';
  let served: Awaited<ReturnType<typeof startOn>>;
  before(async () => {
    writeFileSync(join(folder, 'globex.key'), 'globex-1\n');
    path = write(tenants(ACME));
    served = await startOn(path, { ACME_KEY: 'acme-1' });
  });
  after(() => stopProgram(served, 'SIGINT'));

  const hangUp = async (said: string): Promise<void> => {
    const from = served.err().length;
    served.child.kill('SIGHUP');
    await untilSaid(served, () => served.err().slice(from).includes(said));
  };

  test('SIGHUP adds a tenant at once, and an open request keeps what it had', async () => {
    assert.deepEqual([await served.status('acme-1'), await served.status('globex-1')], [200, 401]);
    const open = await served.ask('acme-1', { stream: true, max_tokens: 600 });
    writeFileSync(path, tenants(GLOBEX));
    await hangUp('is applied');
    assert.deepEqual([await served.status('acme-1'), await served.status('globex-1')], [401, 200]);
    assert.match(await open.text(), /data: \[DONE\]\n\n$/, 'a request of a tenant that is gone was cut');
    assert.ok((await served.outcomes('applied')) >= 1);
    const metrics = await readMetrics(served.facts.opsUrl);
    const fingerprints = [...metrics.keys()].filter((name) => name.startsWith('cofferdam_config_info{'));
    assert.equal(fingerprints.length, 1);
    assert.ok(!fingerprints[0]?.includes(served.facts.config.fingerprint), 'the fingerprint is still the first one');
    assert.ok(![...metrics.keys()].some((name) => name.includes('tenant="acme"')), 'a tenant that is gone has a row');
  });

  test('a wrong file is refused whole, said, counted and found, and what held before goes on', async () => {
    writeFileSync(path, `${tenants(ACME)}limits: {wait: soon}\n`);
    await hangUp('is refused whole');
    assert.match(served.err(), /configuration: \S+:6:16: Expected `limits\.wait` to be a time/);
    assert.deepEqual([await served.status('acme-1'), await served.status('globex-1')], [401, 200]);
    assert.ok((await served.outcomes('invalid')) >= 1);
    const findings = (await (await fetch(`${served.facts.opsUrl}/findings`)).json()) as { id: string; where: object }[];
    const [found] = findings.filter(({ id }) => id === 'config.invalid');
    assert.deepEqual(found?.where, { node: 'gateway', source: path, line: 6 });
  });

  test('what only a restart applies is named, and nothing else of the file is applied', async () => {
    writeFileSync(path, `${tenants(ACME + GLOBEX)}upstreams: [{kind: embedded, context: 2k}]\nseed: 5\n`);
    await hangUp('is refused whole');
    assert.match(served.err(), /a restart is needed for `upstreams\[0\]\.context`, `seed`\n/);
    assert.equal(await served.status('acme-1'), 401);
    assert.ok((await served.outcomes('restart-needed')) >= 1);
  });

  test('a file that is put in its place, and a new key in a file, are taken without a signal', async () => {
    const said = (): number => served.err().split('is applied').length;
    const until = async (before: number): Promise<void> => {
      const endMs = clock.nowMs() + CHANGE_MS_MAX;
      while (said() === before && clock.nowMs() < endMs) await sleep(clock, 20);
    };
    let before = said();
    const next = write(tenants(ACME + GLOBEX));
    renameSync(next, path);
    await until(before);
    assert.deepEqual([await served.status('acme-1'), await served.status('globex-1')], [200, 200]);
    before = said();
    writeFileSync(join(folder, 'globex.key'), 'globex-2\n');
    await until(before);
    assert.deepEqual([await served.status('globex-1'), await served.status('globex-2')], [401, 200]);
  });

  test('no key is in anything that was said', () => {
    for (const key of ['acme-1', 'globex-1', 'globex-2']) assert.ok(!(served.out() + served.err()).includes(key));
  });
});

describe('the end', () => {
  const start = (timeout: string) =>
    startOn(write(`${tenants('  - {name: acme, keys: [env:K]}\n')}drain: {timeout: ${timeout}}\n`), { K: 'k1' });

  test('SIGTERM refuses what comes, and lets what is open finish', async () => {
    const served = await start('20s');
    const open = await served.ask('k1', { stream: true, max_tokens: 1500 });
    const idle = await fetch(`${served.facts.url}/health`);
    assert.equal(idle.status, 200);
    served.child.kill('SIGTERM');
    let health = idle;
    while (health.status === 200) health = await fetch(`${served.facts.url}/health`);
    assert.deepEqual([health.status, health.headers.get('connection')], [503, 'close']);
    const refused = await served.ask('k1');
    assert.deepEqual([refused.status, refused.headers.get('connection')], [503, 'close']);
    assert.match(await refused.text(), /"code":"shutting_down"/);
    const ready = await fetch(`${served.facts.opsUrl}/healthz`);
    assert.deepEqual([ready.status, await ready.text()], [503, '{"status":"draining"}']);
    assert.match(await open.text(), /data: \[DONE\]\n\n$/, 'an open request was cut');
    const ended = await served.ended;
    assert.deepEqual([ended.code, ended.signal], [0, null], ended.err);
  });

  test('what is still open after the time ends with one error, and the exit code is 0', async () => {
    const served = await start('100ms');
    const open = await served.ask('k1', { stream: true, max_tokens: 4000 });
    const ended = await stopProgram(served, 'SIGTERM');
    assert.deepEqual([ended.code, ended.signal], [0, null], ended.err);
    const text = await open.text();
    assert.equal(text.split('"code":"shutting_down"').length, 2, 'one error');
    assert.ok(ended.tookMs < 2_000, `${ended.tookMs} ms`);
  });

  test('a second SIGTERM ends it at once', async () => {
    const served = await start('60s');
    const open = await served.ask('k1', { stream: true, max_tokens: 4000 });
    served.child.kill('SIGTERM');
    while ((await fetch(`${served.facts.opsUrl}/healthz`)).status === 200);
    const ended = await stopProgram(served, 'SIGTERM');
    assert.deepEqual([ended.code, ended.signal], [null, 'SIGTERM']);
    await open.text().catch(() => 'cut, as was asked for');
  });
});

test('a flag takes the place of what the file says, and the start says so', async () => {
  const path = write(tenants('  - {name: acme, keys: [env:PATH]}\n'));
  const served: Served = await startServe(['--config', path, '--tenant', 'other=k2']);
  try {
    assert.match(served.err(), /^warning: `--tenant` overrides `tenants` of /m);
    assert.deepEqual(
      served.facts.tenants.map(({ name }) => name),
      ['other'],
    );
  } finally {
    await served.stop();
  }
});
